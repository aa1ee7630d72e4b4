"""Memory of served models: room for the cache, weights and work space on a GPU, as the planner's
`Replica` has them, under the settings that a row's notes give ("utilization 0.95; max_num_seqs
256; max_num_batched_tokens 8192; max_model_len 32768; kv fp8; eager")."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from gpuplan.accuracy.metrics.memory import in_bytes
from gpuplan.accuracy.metrics.serving import replica_of, version
from gpuplan.accuracy.points import memory_names as names
from gpuplan.accuracy.points.known import ENGINES
from gpuplan.accuracy.points.points import Case
from gpuplan.models.model import Transformer
from gpuplan.plan.model import Estimate
from gpuplan.sizing.data.serving_memory import INTERVAL
from gpuplan.sizing.evidence.formula import constant
from gpuplan.sizing.evidence.intervals import estimate
from gpuplan.sizing.physics.serving.replica import Replica
from gpuplan.sizing.physics.serving.scopes import formats
from gpuplan.sizing.physics.serving.service import Division

# 90 % of what engines print, of sources that nothing was read off.
WEIGHTS_FACTORS = (0.97, 1.05)
WORK_SPACE_FACTORS = (0.9, 1.05)
LEAST_ROOM = 0.01  # of what is expected, where all of it may be gone


def cache_tokens(case: Case) -> Estimate | str:
    """Tokens that an engine's pool holds beside the weights: vLLM counts those of requests of the
    longest length that fit."""
    replica = _replica(case)
    if isinstance(replica, str):
        return replica
    needs = replica.needs(1.0)
    longest = _setting(case, "max_model_len")
    a_token = needs["kv_bytes_per_token"]
    if longest and case.row["engine"].startswith("vllm"):
        assert isinstance(case.model, Transformer)
        a_token += _windowed(case.model, needs, longest) / longest
    return _room(needs, a_token)


def cache_memory(case: Case) -> Estimate | str:
    """The same in bytes of one GPU."""
    replica = _replica(case)
    if isinstance(replica, str):
        return replica
    return _room(replica.needs(1.0), in_bytes(case))


def weights(case: Case) -> Estimate | str:
    """Weights on one GPU, or on all where the unit does not say "per GPU"."""
    replica = _replica(case)
    if isinstance(replica, str):
        return replica
    gpus = 1 if "per GPU" in case.row["unit"] else replica.service.division.gpus
    weights_bytes = gpus * replica.needs(1.0)["weights_bytes"]
    return estimate(weights_bytes / in_bytes(case), WEIGHTS_FACTORS, "extrapolated")


def work_space(case: Case) -> Estimate | str:
    """Activations of a full step on one GPU at their peak."""
    replica = _replica(case)
    if isinstance(replica, str):
        return replica
    taken = replica.needs(1.0)["activations_bytes"]
    return estimate(taken / in_bytes(case), WORK_SPACE_FACTORS, "extrapolated")


def _room(needs: dict[str, float], unit: float) -> Estimate | str:
    """What is left for a cache, in units of so many bytes: what stands beside it is uncertain."""
    beside = needs["weights_bytes"] + needs["activations_bytes"] + needs["own_bytes"]
    room = needs["usable_bytes"] - beside
    if room <= 0:
        return "the weights leave no room for a cache"
    more, less = ((end - 1) * beside / room for end in INTERVAL)
    return estimate(room / unit, (max(1 - less, LEAST_ROOM), 1 - more), "extrapolated")


def _windowed(model: Transformer, needs: dict[str, float], longest: float) -> float:
    """Bytes of layers with a window in a request of the `longest` length: a prompt keeps a step's
    tokens before those of the window, and vLLM fills up groups of as many layers as see every
    token."""
    sliding = sum(group.layers for group in model.attention if group.window)
    if not sliding:
        return 0.0
    full = sum(group.layers for group in model.attention if not group.window)
    padded = math.ceil(sliding / full) * full / sliding if full else 1.0
    tokens = min(longest, needs["window_tokens"] + needs["max_num_batched_tokens"])
    split = min(needs["tensor_parallel_size"], needs["kv_heads"])
    return needs["window_elements"] * needs["kv_bytes_each"] / split * tokens * padded


def _setting(case: Case, name: str) -> float | None:
    written = re.search(rf"{name}[ =]+(\d*\.?\d+)", case.row["notes"])
    return float(written[1]) if written else None


def _replica(case: Case) -> Replica | str:
    if not isinstance(case.model, Transformer):
        return "no language model"
    written = case.row["engine"].lower()
    engine = next((name for word, name in ENGINES.items() if written.startswith(word)), None)
    if engine is None:
        return f"the memory of '{case.row['engine']}' is not modelled"
    form = names.form(case.row["precision"])
    notes = case.row["notes"].lower()
    cache = "fp8" if "kv fp8" in notes else "auto"
    layout = formats(case.model, form, cache)
    if form == "fp8" and re.search(r"attention.*bf16", notes):
        layout = replace(layout, matmul="bf16", dense="fp8")
    if form == "nvfp4" and "attention in fp8" in notes:
        layout = replace(layout, matmul="fp8")
    tensor, stages = (max(1, int(case.number(column, 1.0))) for column in ("tp", "pp"))
    service = replica_of(
        case.model,
        case.gpu,
        (engine, version(case.row["engine"]), form, "fixed", cache),
        Division(tensor_parallel_size=tensor, pipeline_stages=stages),
        (1.0, 1.0),
    ).service
    part = re.search(r"(?:fraction|utilization)[ =]*(0?\.\d+)", f"{written} {notes}")
    if part is not None:
        utilization = constant(float(part[1]), "1", "measurement")
        service = replace(service, gpu_memory_utilization=utilization)
    longest = _setting(case, "max_model_len") or case.model.context_length
    tokens = replace(service.tokens, longest=constant(longest, "1", "measurement"))
    return Replica(
        replace(
            service,
            formats=layout,
            tokens=tokens,
            max_num_seqs=_setting(case, "max_num_seqs"),
            max_num_batched_tokens=_setting(case, "max_num_batched_tokens"),
        )
    )
