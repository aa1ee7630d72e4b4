"""Memory of served models: room for the cache, weights on a GPU, as the planner's `Replica` has
them."""

from __future__ import annotations

import re
from dataclasses import replace

from gpuplan.accuracy.metrics.memory import in_bytes
from gpuplan.accuracy.metrics.serving import replica_of
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

ROOM_FACTORS = (
    0.75,
    1.25,
)  # of what is left beside the weights: engines differ in their work space


def cache_tokens(case: Case) -> Estimate | str:
    """Tokens that an engine's pool holds beside the weights."""
    replica = _replica(case)
    if isinstance(replica, str):
        return replica
    needs = replica.needs(1.0)
    beside = needs["weights_bytes"] + needs["activations_bytes"] + needs["own_bytes"]
    room = needs["usable_bytes"] - beside
    if room <= 0:
        return "the weights leave no room for a cache"
    return estimate(room / needs["kv_bytes_per_token"], ROOM_FACTORS, "extrapolated")


def weights(case: Case) -> Estimate | str:
    """Weights on one GPU, or on all where the unit does not say "per GPU"."""
    replica = _replica(case)
    if isinstance(replica, str):
        return replica
    gpus = 1 if "per GPU" in case.row["unit"] else replica.service.division.gpus
    weights_bytes = gpus * replica.needs(1.0)["weights_bytes"]
    return estimate(weights_bytes / in_bytes(case), INTERVAL, "extrapolated")


def _replica(case: Case) -> Replica | str:
    if not isinstance(case.model, Transformer):
        return "no language model"
    written = case.row["engine"].lower()
    engine = next((name for word, name in ENGINES.items() if written.startswith(word)), None)
    if engine is None:
        return f"the memory of '{case.row['engine']}' is not modelled"
    form = names.form(case.row["precision"])
    cache = "fp8" if "kv fp8" in case.row["notes"].lower() else "auto"
    layout = formats(case.model, form, cache)
    if form == "fp8" and re.search(r"attention.*bf16", case.row["notes"]):
        layout = replace(layout, matmul="bf16", dense="fp8")
    tensor, stages = (max(1, int(case.number(column, 1.0))) for column in ("tp", "pp"))
    service = replica_of(
        case.model,
        case.gpu,
        (engine, "", form, "fixed", cache),
        Division(tensor_parallel_size=tensor, pipeline_stages=stages),
        (1.0, 1.0),
    ).service
    part = re.search(r"(?:fraction|utilization)[ =]*(0?\.\d+)", written)
    if part is not None:
        utilization = constant(float(part[1]), "1", "measurement")
        service = replace(service, gpu_memory_utilization=utilization)
    return Replica(replace(service, formats=layout))
