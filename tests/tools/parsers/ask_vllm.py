"""Whether vLLM takes arguments: its parser, its checks, and the configuration it makes of them.

A question is a command's arguments, `serve …` or `run-batch …`. The answer has the settings that
the engine would run with. A model's class is looked at in this process. Runs in the environment of
the parsers, knows no gpuplan.
"""

from __future__ import annotations

from typing import Any

import answers
import gpu

gpu.modules(
    *("vllm._C_stable_libtorch", "vllm._qutlass_C", "vllm._C", "vllm._moe_C"),
    *("vllm.vllm_flash_attn._vllm_fa2_C", "vllm.vllm_flash_attn._vllm_fa3_C"),
)
gpu.kernels("_C", "_moe_C", "_C_cache_ops", "_C_custom_ar", "_vllm_fa2_C", "_vllm_fa3_C")

import vllm.platforms  # noqa: E402
from vllm.platforms.cuda import CudaPlatformBase  # noqa: E402
from vllm.platforms.interface import DeviceCapability  # noqa: E402


class Platform(CudaPlatformBase):  # type: ignore[misc]
    """vLLM's own for NVIDIA's GPUs, on a stand-in for them."""

    @classmethod
    def get_device_capability(cls, device_id: int = 0) -> Any:
        return DeviceCapability(*gpu.CAPABILITY)

    @classmethod
    def get_device_name(cls, device_id: int = 0) -> str:
        return gpu.NAME

    @classmethod
    def get_device_total_memory(cls, device_id: int = 0) -> int:
        return gpu.MEMORY

    @classmethod
    def is_fully_connected(cls, ids: list[int]) -> bool:
        return True

    @classmethod
    def device_count(cls) -> int:
        return gpu.COUNT

    @classmethod
    def num_compute_units(cls, device_id: int = 0) -> int:
        return gpu.PROCESSORS

    @classmethod
    def get_cuda_runtime_major(cls) -> int:
        return 13


vllm.platforms._current_platform = Platform()

from vllm.engine.arg_utils import AsyncEngineArgs  # noqa: E402
from vllm.entrypoints.openai import run_batch  # noqa: E402
from vllm.entrypoints.openai.cli_args import (  # noqa: E402
    make_arg_parser,
    validate_parsed_serve_args,
)
from vllm.model_executor.models import registry  # noqa: E402
from vllm.usage.usage_lib import UsageContext  # noqa: E402
from vllm.utils.argparse_utils import FlexibleArgumentParser  # noqa: E402

registry._LazyRegisteredModel.inspect_model_cls = lambda self: registry._ModelInfo.from_model_cls(
    self.load_model_cls()
)
SERVE = make_arg_parser(FlexibleArgumentParser())
BATCH = run_batch.make_arg_parser(FlexibleArgumentParser())


def parse(words: list[str]) -> dict[str, Any]:
    if words[0] == "run-batch":
        told, headless = BATCH.parse_args(words[1:]), False
    else:
        told = SERVE.parse_args(words[1:])
        validate_parsed_serve_args(told)
        told.model = told.model_tag or told.model
        headless = told.headless
    engine = AsyncEngineArgs.from_cli_args(told)
    made = engine.create_engine_config(UsageContext.OPENAI_API_SERVER, headless=headless)
    sizes, scheduler = made.parallel_config, made.scheduler_config
    drafts, transfer = made.speculative_config, made.kv_transfer_config
    return {
        "tensor": sizes.tensor_parallel_size,
        "pipeline": sizes.pipeline_parallel_size,
        "data": sizes.data_parallel_size,
        "expert": sizes.enable_expert_parallel,
        "nodes": sizes.nnodes,
        "rank": sizes.node_rank,
        "local": sizes.data_parallel_size_local,
        "start": sizes.data_parallel_rank,
        "max_model_len": made.model_config.max_model_len,
        "max_num_seqs": scheduler.max_num_seqs,
        "max_num_batched_tokens": scheduler.max_num_batched_tokens,
        "runner": made.model_config.runner_type,
        "revision": made.model_config.revision,
        "quantization": made.model_config.quantization,
        "drafts": drafts and drafts.num_speculative_tokens,
        "transfer": transfer and [transfer.kv_connector, transfer.kv_role],
        "shutdown": getattr(told, "shutdown_timeout", None),
    }


if __name__ == "__main__":
    answers.answer(parse)
