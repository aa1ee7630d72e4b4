"""TensorRT-LLM: the flags of `trtllm-serve` that carry the plan's sizes, and its file of settings.

Sources: NVIDIA/TensorRT-LLM tensorrt_llm/commands/serve.py (at
00209af149e7774406881a37283dce303571eb11), llmapi/llm_args.py of the same, and docs/source/features
of release 1.2: paged-attention-ifb-scheduler.md, parallel-strategy.md, quantization.md. What has no
flag stands in a file that overwrites flags.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from gpuplan.engines.arguments import HOST, flag, model_of
from gpuplan.engines.container import CONFIG
from gpuplan.engines.launch import Argument
from gpuplan.plan.model import MemoryBudget, Workload
from gpuplan.render import commented
from gpuplan.render.commented import Because, Tree
from gpuplan.units import format_bytes

FILE = "tensorrt-llm.yaml"
SHARES = 10000  # parts of what is free that a share is written in


def arguments(workload: Workload) -> Iterator[Argument]:
    """The model stands first: it is the command's one argument."""
    serving, parallel, model = workload.serving, workload.parallelism, model_of(workload)
    assert serving is not None
    yield model.identifier
    if model.revision:
        yield flag("revision", model.revision)
    yield flag("host", HOST)
    yield flag("port", serving.port)
    weights, gpus = format_bytes(workload.memory.weights_bytes), parallel.gpus
    yield Because(flag("tp_size", _ranks(workload)), f"{weights} of weights on each of {gpus} GPUs")
    if parallel.pipeline_parallel_size > 1:
        yield flag("pp_size", parallel.pipeline_parallel_size)
    if parallel.expert_parallel_size > 1:
        yield flag("ep_size", parallel.expert_parallel_size)
    yield flag("max_seq_len", serving.max_model_len)
    cache = format_bytes(workload.memory.kv_cache_bytes)
    places = f"requests at once; their KV cache takes {cache} of a GPU"
    yield Because(flag("max_batch_size", serving.max_num_seqs), places)
    yield flag("max_num_tokens", serving.max_num_batched_tokens)
    yield Because("--enable_chunked_prefill", "else no prompt may be longer than a step")
    share, why = _free(workload.memory)
    yield Because(flag("free_gpu_memory_fraction", share), why)
    yield flag("extra_llm_api_options", f"{CONFIG}/{FILE}")


def files(workload: Workload) -> Iterator[tuple[str, str]]:
    """What no flag says."""
    serving = workload.serving
    assert serving is not None
    tree: Tree = {"kv_cache_config": {"dtype": serving.kv_cache_dtype}}
    share, _ = _free(workload.memory)
    # A table of the file takes the place of what the flags make of it.
    tree["kv_cache_config"]["free_gpu_memory_fraction"] = float(share)
    # Else CUDA graphs are of 1 to 32, 64 and 128 requests alone, and other steps start each kernel.
    places = Because(serving.max_num_seqs, "every step that only decodes is a CUDA graph")
    tree["cuda_graph_config"] = {"enable_padding": True, "max_batch_size": places}
    if _apart(workload):
        reason = "requests are divided over the ranks of attention"
        tree["enable_attention_dp"] = Because(value=True, reason=reason)
    plain, comments = commented.strip(tree)
    yield FILE, commented.dumps(plain, dict(comments), "Settings of trtllm-serve")


def _apart(workload: Workload) -> bool:
    return workload.parallelism.data_parallel_size > 1


def _ranks(workload: Workload) -> int:
    """With data-parallel attention all GPUs of the replica count as tensor ranks."""
    parallel = workload.parallelism
    return parallel.gpus if _apart(workload) else parallel.tensor_parallel_size


def _free(memory: MemoryBudget) -> tuple[str, str]:
    """The cache's part of what is free once weights are loaded and a step was tried, so that the
    engine takes what the plan lets it have; with the reason."""
    taken = memory.weights_bytes + memory.activations_bytes + memory.overhead_bytes
    free = max(1, memory.capacity_bytes - taken)
    share = max(0, memory.usable_bytes - taken) / free
    usable, capacity = format_bytes(memory.usable_bytes), format_bytes(memory.capacity_bytes)
    return f"{math.floor(share * SHARES) / SHARES:g}", f"{usable} of {capacity} with all beside it"
