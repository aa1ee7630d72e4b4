"""The flags of each serving engine that carry the plan's sizes.

An argument is `--flag=value` in one string, so that no value is taken for a flag. Flags are those
of the engines' own command lines: vLLM 0.27, SGLang 0.5.16, vLLM-Omni 0.14, TEI 1.9.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from gpuplan.engines import drafts, pooling, weights
from gpuplan.engines.launch import Argument
from gpuplan.plan.model import ModelRef, Workload
from gpuplan.releases import release_numbers
from gpuplan.render.commented import Because
from gpuplan.units import format_bytes

# Probes and clients connect from outside the container: loopback would serve neither.
HOST = "0.0.0.0"  # noqa: S104 - the target's network says who may connect

DTYPE = {"bf16": "bfloat16", "fp16": "float16"}
# These engines quantize a 16-bit checkpoint to fp8 while they load it. For any other low precision
# the checkpoint itself must be quantized, and its own configuration says how.
ONLINE = {"fp8": "fp8"}
# Checkpoints of NVIDIA's Model Optimizer, by their precision. Some releases of SGLang choose
# kernels of experts by the flag alone; which, and on which GPUs, its notes in the catalogue say.
MODELOPT = {"fp8": "modelopt_fp8", "nvfp4": "modelopt_fp4"}
# By default SGLang's graphs are of 8 to 512 requests by the GPU's memory, and it starts each kernel
# of a step of more (server_args.py, _handle_gpu_memory_settings; the flag's name is from 0.5.14).
GRAPHS, GRAPHS_BEFORE = "cuda-graph-max-bs-decode", "cuda-graph-max-bs"
GRAPHS_SINCE = (0, 5, 14)


def flag(name: str, value: object) -> str:
    return f"--{name}={value}"


def vllm(workload: Workload) -> Iterator[Argument]:
    assert workload.serving is not None
    yield model_of(workload).identifier
    yield from _revision(workload)
    yield from _listen(workload.serving.port)
    yield from _vllm_engine(workload)


def vllm_batch(workload: Workload) -> Iterator[Argument]:
    yield flag("model", model_of(workload).identifier)
    yield from _revision(workload)
    yield from _vllm_engine(workload)


def _vllm_engine(workload: Workload) -> Iterator[Argument]:
    parallel, serving = workload.parallelism, workload.serving
    assert serving is not None
    yield from _precision(workload)
    if serving.images is not None:
        yield from _vllm_images(workload)
        return
    if serving.pooling is not None:
        yield from pooling.vllm(serving.pooling)
    yield Because(flag("tensor-parallel-size", parallel.tensor_parallel_size), _memory(workload))
    if parallel.pipeline_parallel_size > 1:
        yield flag("pipeline-parallel-size", parallel.pipeline_parallel_size)
    if parallel.data_parallel_size > 1:
        yield flag("data-parallel-size", parallel.data_parallel_size)
    if parallel.expert_parallel_size > 1:
        yield "--enable-expert-parallel"
    yield flag("max-model-len", serving.max_model_len)
    places = flag("max-num-seqs", serving.max_num_seqs)
    yield Because(places, pooling.PLACES if serving.pooling else _cache(workload))
    yield flag("max-num-batched-tokens", serving.max_num_batched_tokens)
    yield Because(flag("gpu-memory-utilization", serving.gpu_memory_utilization), _share(workload))
    if serving.pooling is None:
        yield flag("kv-cache-dtype", serving.kv_cache_dtype)
    yield from (flag(name, value) for name, value in drafts.vllm(workload))


def _vllm_images(workload: Workload) -> Iterator[Argument]:
    """Of CLIPModel and SiglipModel, which have a pooler of their own; an image takes the place of a
    text, whose length is the model's (docs/models/pooling_models/embed.md)."""
    serving = workload.serving
    assert serving is not None
    yield Because("--runner=pooling", "images are read, none is written")
    yield Because(flag("max-num-seqs", serving.max_num_seqs), "images of a step")
    yield Because(flag("gpu-memory-utilization", serving.gpu_memory_utilization), _share(workload))


def sglang(workload: Workload) -> Iterator[Argument]:
    parallel, serving = workload.parallelism, workload.serving
    assert serving is not None
    yield flag("model-path", model_of(workload).identifier)
    yield from _revision(workload)
    yield from _listen(serving.port)
    yield from _precision(workload)
    yield from _modelopt(workload)
    if serving.moe_runner_backend is not None:
        told = flag("moe-runner-backend", serving.moe_runner_backend)
        yield Because(told, "this release chooses no kernels for such experts here")
    attention_data_parallel = parallel.data_parallel_size > 1 and parallel.expert_parallel_size > 1
    # With data-parallel attention this engine counts all GPUs of the replica as tensor ranks.
    ranks = parallel.gpus if attention_data_parallel else parallel.tensor_parallel_size
    # It also divides what it takes at once by the groups, where a plan counts for one of them
    # (server_args.py, pool_configurator.py).
    groups = parallel.data_parallel_size if attention_data_parallel else 1
    yield Because(flag("tp-size", ranks), _memory(workload))
    if parallel.pipeline_parallel_size > 1:
        yield flag("pp-size", parallel.pipeline_parallel_size)
    if parallel.data_parallel_size > 1:
        yield flag("dp-size", parallel.data_parallel_size)
    if attention_data_parallel:
        yield "--enable-dp-attention"
    if parallel.expert_parallel_size > 1:
        yield flag("ep-size", parallel.expert_parallel_size)
    yield flag("context-length", serving.max_model_len)
    places = flag("max-running-requests", serving.max_num_seqs * groups)
    shared = f"; of {groups} groups" if groups > 1 else ""
    yield Because(places, _cache(workload) + shared)
    numbers = release_numbers(workload.engine.version)
    graphs = GRAPHS_BEFORE if numbers and numbers < GRAPHS_SINCE else GRAPHS
    # Of one group, whose ranks share its requests evenly in a graph.
    apart = parallel.tensor_parallel_size if attention_data_parallel else 1
    captured = math.ceil(serving.max_num_seqs / apart) * apart
    yield Because(flag(graphs, captured), "every step that only decodes is a graph")
    yield flag("chunked-prefill-size", serving.max_num_batched_tokens * groups)
    yield Because(flag("mem-fraction-static", serving.gpu_memory_utilization), _share(workload))
    yield flag("kv-cache-dtype", {"fp8": "fp8_e4m3"}.get(serving.kv_cache_dtype, "auto"))
    yield from (flag(name, value) for name, value in drafts.sglang(workload))
    yield "--enable-metrics"


def tei(workload: Workload) -> Iterator[Argument]:
    serving = workload.serving
    assert serving is not None
    yield flag("model-id", model_of(workload).identifier)
    yield from _revision(workload)
    yield flag("hostname", HOST)
    yield flag("port", serving.port)
    yield flag("dtype", "float16")
    yield Because(flag("max-batch-tokens", serving.max_num_batched_tokens), _memory(workload))
    yield from pooling.tei(workload)


def vllm_omni(workload: Workload) -> Iterator[Argument]:
    images = workload.image_generation
    assert images is not None
    yield weights.folder_of(workload)
    yield flag("served-model-name", model_of(workload).identifier)
    yield "--omni"
    yield from _listen(images.port)
    ranks = workload.parallelism.tensor_parallel_size
    yield Because(flag("tensor-parallel-size", ranks), _memory(workload))
    if images.frames is None:  # of videos it limits nothing
        yield Because(
            flag("max-generated-image-size", images.width * images.height),
            f"{images.width} × {images.height} pixels: what memory was sized for",
        )
    usual = {"num_inference_steps": images.steps}
    if images.frames is not None:  # else a request that does not say gets one frame
        size = {"width": images.width, "height": images.height}
        usual |= {**size, "num_frames": images.frames}
    yield flag("default-sampling-params", json.dumps({"0": usual}))


def model_of(workload: Workload) -> ModelRef:
    assert workload.model is not None
    return workload.model


def _revision(workload: Workload) -> Iterator[Argument]:
    revision = model_of(workload).revision
    if revision:
        yield flag("revision", revision)


def _listen(port: int) -> Iterator[Argument]:
    yield flag("host", HOST)
    yield flag("port", port)


def _precision(workload: Workload) -> Iterator[Argument]:
    precision = workload.precision or ""
    if precision in DTYPE:
        yield flag("dtype", DTYPE[precision])
    stored = workload.model.checkpoint_precision if workload.model else None
    if precision in ONLINE and precision != stored:
        yield flag("quantization", ONLINE[precision])


def _modelopt(workload: Workload) -> Iterator[Argument]:
    model, serving = model_of(workload), workload.serving
    if model.quant_method != "modelopt" or model.checkpoint_precision not in MODELOPT:
        return
    told = flag("quantization", MODELOPT[model.checkpoint_precision])
    yield Because(told, "kernels are chosen by this, not by the checkpoint alone")
    if serving is not None and serving.speculative and serving.speculative.model is not None:
        apart = flag("speculative-draft-model-quantization", "unquant")
        yield Because(apart, "as its own checkpoint says, not as the model's does")


def _memory(workload: Workload) -> str:
    weights, gpus = format_bytes(workload.memory.weights_bytes), workload.parallelism.gpus
    return f"{weights} of weights" + (f" on each of {gpus} GPUs" if gpus > 1 else "")


def _cache(workload: Workload) -> str:
    cache = format_bytes(workload.memory.kv_cache_bytes)
    return f"requests at once; their KV cache takes {cache} of a GPU"


def _share(workload: Workload) -> str:
    memory = workload.memory
    return f"{format_bytes(memory.usable_bytes)} of {format_bytes(memory.capacity_bytes)}"
