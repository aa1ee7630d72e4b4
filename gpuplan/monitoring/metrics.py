"""The names of metrics. Sources: vLLM, vllm/v1/metrics/loggers.py, and SGLang, srt/metrics, as
captured from live servers; NVIDIA's DCGM, dcgm_fields.h."""

from __future__ import annotations

from gpuplan.plan.model import record


@record
class EngineMetrics:
    """Histograms of seconds (`ttft`, `tpot`, `latency`), gauges (`running`, `waiting`
    requests, `cache` in use from 0 to 1) and counters of tokens."""

    ttft: str
    tpot: str
    latency: str
    running: str
    waiting: str
    cache: str
    output_tokens: str
    input_tokens: str


ENGINES = {
    "vllm": EngineMetrics(
        ttft="vllm:time_to_first_token_seconds",
        tpot="vllm:request_time_per_output_token_seconds",
        latency="vllm:e2e_request_latency_seconds",
        running="vllm:num_requests_running",
        waiting="vllm:num_requests_waiting",
        cache="vllm:kv_cache_usage_perc",
        output_tokens="vllm:generation_tokens_total",
        input_tokens="vllm:prompt_tokens_total",
    ),
    "sglang": EngineMetrics(
        ttft="sglang:time_to_first_token_seconds",
        tpot="sglang:time_per_output_token_seconds",
        latency="sglang:e2e_request_latency_seconds",
        running="sglang:num_running_reqs",
        waiting="sglang:num_queue_reqs",
        cache="sglang:token_usage",
        output_tokens="sglang:generation_tokens_total",
        input_tokens="sglang:prompt_tokens_total",
    ),
}

MEMORY_USED, MEMORY_FREE = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"  # MiB
POWER, TEMPERATURE = "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_TEMP"  # W, °C
FAULT = "DCGM_FI_DEV_XID_ERRORS"  # the number of the last one
REMAP_FAILED = "DCGM_FI_DEV_ROW_REMAP_FAILURE"
# Ratios from 0 to 1, of parts of GPUs too; `DCGM_FI_DEV_GPU_UTIL` says only that a kernel is there,
# and nothing of parts.
ACTIVE, TENSOR_ACTIVE, MEMORY_ACTIVE = (
    f"DCGM_FI_PROF_{name}" for name in ("GR_ENGINE_ACTIVE", "PIPE_TENSOR_ACTIVE", "DRAM_ACTIVE")
)
UTILIZATION = "DCGM_FI_DEV_GPU_UTIL"  # per cent; what GPUs without profiling have

# What dcgm-exporter is told to collect: its own default lacks some of these.
COUNTERS = (
    (UTILIZATION, "gauge", "Time in which a kernel ran (%)."),
    (ACTIVE, "gauge", "Time in which the graphics or compute engine was active (0 to 1)."),
    (TENSOR_ACTIVE, "gauge", "Cycles in which the tensor pipe was active (0 to 1)."),
    (MEMORY_ACTIVE, "gauge", "Cycles in which the memory interface was active (0 to 1)."),
    (MEMORY_USED, "gauge", "Framebuffer memory used (MiB)."),
    (MEMORY_FREE, "gauge", "Framebuffer memory free (MiB)."),
    (POWER, "gauge", "Power draw (W)."),
    (TEMPERATURE, "gauge", "GPU temperature (C)."),
    (FAULT, "gauge", "Number of the last XID error."),
    (REMAP_FAILED, "gauge", "Whether remapping of rows has failed."),
)


def counters() -> str:
    """The exporter's CSV: field, type, help."""
    return "".join(f"{name}, {kind}, {text}\n" for name, kind, text in COUNTERS)
