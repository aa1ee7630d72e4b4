"""What a serving engine takes for itself on one GPU, as its release does."""

from __future__ import annotations

import math

from gpuplan.models.model import Transformer
from gpuplan.releases import minor
from gpuplan.sizing.data.serving_memory import (
    BLOCK_TOKENS,
    DRIVER_BYTES,
    DRIVER_SOURCE,
    ENGINE_BYTES,
    ENGINE_SOURCE,
    GRAPH_BYTES,
    GRAPH_PLACES,
    GRAPHS_COUNTED,
    LINK_BYTES,
    LOGIT_BYTES,
    PADDED,
    PADDED_SOURCE,
    SAMPLER_SINCE,
    SERVER_BYTES,
    SMALL_STEPS,
    START_SOURCE,
    STEP_SOURCE,
    STEP_TOKENS,
    WORKSPACE_SINCE,
)
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.hardware.devices import Device
from gpuplan.units import GIB


def engine_memory(engine: str) -> dict[str, Quantity]:
    """What an engine allocates for itself, and in which blocks it gives out the cache."""
    name = engine if engine in ENGINE_BYTES else "vllm"
    return {
        "context_bytes": constant(ENGINE_BYTES[name], "B", f"{ENGINE_SOURCE[name]}, {name}"),
        "block_tokens": constant(BLOCK_TOKENS[name], "1", f"block of the paged cache, {name}"),
    }


def server_memory(engine: str, release: str, device: Device) -> dict[str, Quantity]:
    """The same of a server of language models, of the share that it is told to take."""
    since = minor(release) or (1_000,)
    linked = device.gpu.nvlink_bytes_per_s is not None
    printed = engine == "vllm"
    workspace = printed and linked and since >= WORKSPACE_SINCE
    logit = LOGIT_BYTES["sorted" if printed and since < SAMPLER_SINCE else "sampled"]
    graphs = GRAPH_BYTES if printed and since >= GRAPHS_COUNTED else 0.0
    link = LINK_BYTES["workspace" if workspace else "buffers"]
    own = engine_memory(engine) | {
        "link_bytes": _at_start(link, "buffers between GPUs"),
        "graph_bytes": _at_start(graphs, f"CUDA graphs of {GRAPH_PLACES} places and more"),
        "logit_bytes": _at_start(logit, "of a logit with what a sampler makes of it"),
        "driver_bytes": constant(0.0 if device.partition else DRIVER_BYTES, "B", DRIVER_SOURCE),
        "graph_places": constant(GRAPH_PLACES, "1", "from which on a server captures every size"),
    }
    return own | {"context_bytes": _at_start(SERVER_BYTES, "beside tensors")} if printed else own


def _at_start(count: float, what: str) -> Quantity:
    return constant(count, "B", f"{what}, {START_SOURCE}")


def expert_padding(
    model: Transformer, engine: str, form: str, shards: float
) -> dict[str, Quantity]:
    """What vLLM's kernels of mxfp4 experts, each cut into `shards`, fill up beside the weights."""
    if model.experts is None:
        return {}
    times, why = 1.0, "experts take what their weights are"
    if engine == "vllm" and form == "mxfp4":
        width = model.experts.intermediate_size / shards
        times = _filled(model.hidden_size, PADDED[0]) * _filled(width, PADDED[1])
        why = PADDED_SOURCE
    return {"expert_padding": constant(times, "1", why)}


def _filled(width: float, multiple: int) -> float:
    return math.ceil(width / multiple) * multiple / width


def step_tokens(engine: str, gpu: str, memory_bytes: float) -> dict[str, Quantity]:
    """How many tokens an engine computes in a step by default, in a service and at most."""
    name = engine if engine in STEP_TOKENS else "vllm"
    rows = STEP_TOKENS[name]
    _, service, most = next(row for row in rows if memory_bytes >= row[0] * GIB)
    if gpu.startswith(SMALL_STEPS.get(name, "-")):
        _, service, most = rows[-1]
    cited = f"{name} on {gpu}, {STEP_SOURCE[name]}"
    return {
        "default_step_tokens": constant(service, "1", f"default of a server: {cited}"),
        "largest_step_tokens": constant(most, "1", f"default for throughput alone: {cited}"),
    }
