"""Size one workload: search, choose, record. The engine's only entry point."""

from __future__ import annotations

from dataclasses import replace

from gpuplan.diagnostics import Diagnostic
from gpuplan.plan.model import Alternative
from gpuplan.sizing import images, notebooks, serving, training
from gpuplan.sizing.api import Demand, Site, Sized
from gpuplan.sizing.choose import Candidate, choose
from gpuplan.sizing.devices import partitions
from gpuplan.sizing.draw import draw
from gpuplan.sizing.problems import nothing_fits, override_does_not_fit, unknown_override
from gpuplan.sizing.serve import serve
from gpuplan.sizing.settle import Settled
from gpuplan.sizing.train import train

# Overrides that narrow the search rather than replace a derived number.
SEARCHED = ("gpu", "partition", "tensor_parallel_size", "replicas", "gpu_count", "micro_batch")
_SEARCHED_FIELDS = frozenset(f"overrides.{field}" for field in SEARCHED)
# Formats to try where nothing fits, most precise first.
SMALLER = {"bf16": ("fp8", "int4"), "fp16": ("fp8", "int4"), "fp8": ("int4",)}


def size(demand: Demand, site: Site) -> Sized | tuple[Diagnostic, ...]:
    """The cheapest layout that meets every objective, or why there is none."""
    problem = _unknown_choice(demand, site)
    if problem is not None:
        return (problem,)
    winner, alternatives = _search(demand, site)
    if winner is None:
        return (_nothing(demand, site, alternatives),)
    return _finish(demand, site, winner, alternatives, _free(demand, site))


def _search(demand: Demand, site: Site) -> tuple[Candidate | None, tuple[Alternative, ...]]:
    forced = demand.overrides.gpu
    if demand.kind in ("serving", "batch"):
        return choose(serving.candidates(demand, site), forced=forced, tensor_parallel=True)
    search = {"training": training.candidates, "notebook": notebooks.candidates}
    return choose(search.get(demand.kind, images.candidates)(demand, site), forced=forced)


def _finish(
    demand: Demand,
    site: Site,
    winner: Candidate,
    alternatives: tuple[Alternative, ...],
    free: dict[str, float],
) -> Sized:
    record = {
        "serving": serve,
        "batch": serve,
        "training": train,
        "notebook": notebooks.open_notebooks,
    }.get(demand.kind, draw)
    return record(Settled(demand), site, winner, alternatives, free)


def _unknown_choice(demand: Demand, site: Site) -> Diagnostic | None:
    """A GPU type or partition that an override asks for and the site lacks."""
    gpu, partition = demand.overrides.gpu, demand.overrides.partition
    known = tuple(dict.fromkeys(o.gpu.identifier for o in site.gpus))
    if gpu is not None and gpu not in known:
        return _unknown(demand, "gpu", gpu, known)
    offers = (o for o in site.gpus if gpu in (None, o.gpu.identifier))
    if partition is not None:
        names = {str(d.partition) for o in offers for d in partitions(o, site)}
        if partition not in names:
            return _unknown(demand, "partition", partition, tuple(sorted(names)))
    return None


def _unknown(demand: Demand, field: str, value: str, known: tuple[str, ...]) -> Diagnostic:
    at = demand.origin.child("overrides", field)
    return unknown_override(f"overrides.{field}", value, known, at)


def _nothing(demand: Demand, site: Site, rejected: tuple[Alternative, ...]) -> Diagnostic:
    fields = [f for f in SEARCHED if getattr(demand.overrides, f) is not None]
    forced = demand.overrides.gpu
    rejected = tuple(a for a in rejected if forced in (None, a.gpu))
    gates = tuple(s for a in rejected for s in a.shortfalls[:1])
    if fields and gates and _free(demand, site):
        at = demand.origin.child("overrides", fields[0])
        return override_does_not_fit(", ".join(f"'{f}'" for f in fields), gates, at)
    return nothing_fits(demand.name, rejected, demand.origin, _smaller(demand, site))


def _smaller(demand: Demand, site: Site) -> str:
    """The precision and GPU type that would fit, in words, or nothing."""
    if demand.kind in ("training", "notebook"):
        return ""
    for precision in SMALLER.get(demand.precision, ()):
        winner, _ = _search(replace(demand, precision=precision), site)
        if winner is not None:
            return (
                f"`precision: {precision}` fits {winner.gpu_count} x {winner.device.gpu.identifier}"
            )
    return ""


def _free(demand: Demand, site: Site) -> dict[str, float]:
    """What the search would choose without the overrides that narrow it; {} without such."""
    if all(getattr(demand.overrides, f) is None for f in SEARCHED):
        return {}
    none: dict[str, None] = dict.fromkeys(SEARCHED)
    without = replace(
        demand,
        overrides=demand.overrides.model_copy(update=none),
        given={f: q for f, q in demand.given.items() if f not in _SEARCHED_FIELDS},
    )
    winner, _ = _search(without, site)
    if winner is None:
        return {}
    chosen = {"tensor_parallel_size": float(winner.gpus), "gpu_count": float(winner.gpu_count)}
    if isinstance(winner.detail, training.Layout):
        chosen["micro_batch"] = float(winner.detail.micro_batch)
    return chosen
