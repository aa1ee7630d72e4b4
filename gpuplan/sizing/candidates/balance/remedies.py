"""The cheapest way to more of what a workload meets: what costs nothing before what is bought, and
the part that is short before more of everything."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpuplan.catalog.model import Gpu
from gpuplan.plan.model import Metric, Training
from gpuplan.sizing.ask.demand import Demand, LanguageDemand, TrainingDemand
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.hardware.efficiency import unsupported
from gpuplan.units import format_quantity, format_seconds, format_usd

Known = Callable[[str], Quantity | None]

FASTER = "faster GPUs, or more of them: all else waits for them"
MORE = "more GPUs: `gpuplan capacity` says how many end it when"
DECODED = "images stored in fewer pixels, before nodes with more cores"
HOST = {
    "cpu_cores": "nodes with more cores, or fewer GPUs",
    "host_memory": "more memory in each node, before more nodes",
}
CARDS = "faster network cards, or more of them: more nodes share no card"
FORWARD_AGAIN = 4 / 3  # of a step: the forward pass is a third of it, and is run twice
PCIE = "GPUs behind a newer PCIe, or with NVLink"


def storage(rate: Quantity | None, need: Quantity | None, supply: Quantity | None) -> str:
    """What each node's storage would have to bring for what is needed; more nodes bring it too,
    with their GPUs."""
    if rate is None or need is None or not supply or need.value <= supply.value:
        return "faster storage (`platform.storage.bandwidth`), before more nodes"
    wanted = format_quantity(rate.value * need.value / supply.value, "B/s")
    return f"storage of {wanted} a node (`platform.storage.bandwidth`), before more nodes"


def checkpoint(demand: Demand, known: Known) -> str:
    """A longer interval, where the one that is written loses more time than the best one; empty
    where it does not."""
    best = known("best_checkpoint_interval")
    if not isinstance(demand, TrainingDemand) or not demand.interval_is_written or best is None:
        return ""
    if best.value <= demand.checkpoint_interval.value:
        return ""
    return f"`checkpoint: {{interval: {format_seconds(best.value)}}}`, which loses least time"


def memory(demand: Demand, gpu: Gpu, training: Training | None, metrics: Sequence[Metric]) -> str:
    """What makes room without another GPU, where something does: for a run none that `metrics` say
    would end it too late."""
    if training is not None and isinstance(demand, TrainingDemand):
        late = any(
            m.name == "time_to_finish" and m.limit and m.estimate.high * FORWARD_AGAIN > m.limit
            for m in metrics
        )
        if training.recompute != "full" and not late:
            return "`training: {recompute: full}`, which takes time and no memory"
        return "more GPUs to divide the states, before GPUs with more memory"
    cached = isinstance(demand, LanguageDemand) and demand.overrides.kv_cache_dtype is None
    if cached and not unsupported(gpu, "fp8"):
        return "`overrides: {kv_cache_dtype: fp8}`, half the cache, before a larger GPU"
    return "a GPU with more memory"


def replica(candidate: Candidate) -> str:
    """One more replica, with its price."""
    usd, count = candidate.usd_per_hour, candidate.replicas
    price = "" if usd is None else f", {format_usd(usd / count)}/h"
    return f"one more replica{price}"


def power(nodes: int) -> str:
    """Of racks that feed a node each at least."""
    return "one more rack" if nodes == 1 else "fewer nodes in each rack"
