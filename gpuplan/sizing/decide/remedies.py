"""What would make a workload fit that fits nowhere. Each change is tried by the search itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from gpuplan.models.model import Transformer
from gpuplan.plan.model import Fabric, Flip
from gpuplan.sizing.ask.demand import Demand, LanguageDemand, ModelDemand, TrainingDemand
from gpuplan.sizing.ask.fields import GLOBAL_BATCH
from gpuplan.sizing.ask.given import numbers
from gpuplan.sizing.ask.precision import precision_problem
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.decide.without import LIMITING, Name, overridden, with_number, without
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.serving.search import LimitedReplica
from gpuplan.sizing.kinds.training import layouts
from gpuplan.sizing.kinds.training.search import SizedRun
from gpuplan.units import format_apart, time_unit

# Formats to try where nothing fits: smaller ones, then those that more GPUs compute in.
OTHERS = ("fp8", "int4", "bf16")
ASSUMED = Fabric(kind="infiniband", bytes_per_s_per_gpu=50e9, resource=None)

Fits = Callable[[Demand, Site], Candidate | None]


def blamed(demand: Demand, site: Site, fits: Fits) -> tuple[list[Name], str]:
    """The overrides without which it fits, with what it then takes: one, or only all of them."""
    fields = overridden(demand)
    for group in (*([f] for f in fields), *([fields] if len(fields) > 1 else ())):
        found = fits(without(demand, group), site)
        if found is not None:
            values = ", ".join(f"{f} {_derived(f, without(demand, group), found)}" for f in group)
            return group, f"without it: {_layout(found)}, with {values}"
    return [], ""


def _derived(field: Name, demand: Demand, found: Candidate) -> str:
    detail, device = found.detail, found.device
    if field == "max_num_seqs" and isinstance(detail, LimitedReplica):
        return f"{detail.replica.needs(detail.limit)['max_num_seqs']:,.0f}"
    if field == "micro_batch" and isinstance(detail, SizedRun):
        return str(detail.micro_batch)
    if isinstance(demand, LanguageDemand) and field in LIMITING:
        return f"{getattr(demand, field).value:g}"
    return {
        "gpu": device.gpu.identifier,
        "partition": device.partition or "none",
        "tensor_parallel_size": str(found.gpus),
        "replicas": str(found.replicas),
        "gpu_count": str(found.gpus),
    }.get(field, "auto")


def _layout(found: Candidate) -> str:
    return f"{found.gpu_count} x {found.device.partition or found.device.gpu.identifier}"


def change(demand: Demand, site: Site, rejected: Sequence[Candidate], fits: Fits) -> str:
    """The change of the manifest that makes it fit, in words, or what comes nearest."""
    attempts = _precisions(demand, site)
    if isinstance(demand, TrainingDemand):
        attempts = _training(demand, site)
    for words, tried, where in attempts:
        found = fits(tried, where)
        if found is not None:
            return f"{words} fits {_layout(found)}"
    return _nearest(demand, site, rejected, fits)


def _training(demand: TrainingDemand, site: Site) -> Iterator[tuple[str, Demand, Site]]:
    if site.fabric is None:
        words = "GPUs of several nodes are not used without `platform.fabric`: "
        words += "`{kind: infiniband, bandwidth_per_gpu: 400 Gb/s}`"
        yield words, demand, replace(site, fabric=ASSUMED)
    if demand.optimizer == "adamw-bf16":
        words = "the states of adamw-bf16 are not divided over GPUs: `optimizer: adamw`"
        yield words, replace(demand, optimizer="adamw"), site
    if demand.sharding is not None:
        words = f"not more is divided over GPUs than sharding {demand.sharding}: without it,"
        yield f"{words} the run", replace(demand, sharding=None), site
    if demand.recompute is not None:
        words = f"activations are stored for recompute {demand.recompute}: without it, the run"
        yield words, replace(demand, recompute=None), site
    batch = int(demand.global_batch)
    if batch.bit_count() > 1:
        for power in (1 << batch.bit_length(), 1 << batch.bit_length() - 1):
            other = with_number(demand, GLOBAL_BATCH.path, float(power), "tried")
            assert other is not None
            words = f"{batch:,} sequences split evenly over few numbers of GPUs: "
            words += f"`global_batch: {power}`"
            yield words, other, site


def _precisions(demand: Demand, site: Site) -> Iterator[tuple[str, Demand, Site]]:
    """Other formats that an engine makes of the published weights."""
    if not isinstance(demand, ModelDemand):
        return
    model = demand.model
    for precision in OTHERS:
        refused = isinstance(model, Transformer) and any(
            precision_problem(model, precision, demand.origin)
        )
        if precision != demand.precision and not refused:
            yield f"`precision: {precision}`", replace(demand, precision=precision), site


def _nearest(demand: Demand, site: Site, rejected: Sequence[Candidate], fits: Fits) -> str:
    """The objective that has to give way least, if that alone is enough; else what is nearest."""
    flips = [(c, c.flip) for c in rejected if c.flip and c.flip.now > 0 and c.flip.needed > 0]
    flips.sort(key=lambda pair: (_stretch(pair[1]), pair[0].device.gpu.identifier))
    for _, flip in flips:
        eased = with_number(demand, flip.quantity, _rounded(flip), "tried")
        layout = None if eased is None else fits(eased, site)
        if layout is not None:
            now, needed = format_apart(flip.now, _rounded(flip), flip.unit)
            return f"{flip.quantity} {needed} instead of {now} fits {_layout(layout)}"
    flips = [f for f in flips if f[1].quantity != "gpu_memory_bytes"] or flips
    if not flips:
        return "allow other GPU types in `platform.gpus`"
    candidate, flip = flips[0]
    now, needed = format_apart(flip.now, _rounded(flip), flip.unit)
    gpu = candidate.device.gpu.identifier
    if flip.quantity == "gpu_memory_bytes":
        larger = f"it takes a GPU with {needed}; {gpu} has {now}"
        divided = layouts.words(demand, site) if isinstance(demand, TrainingDemand) else ""
        return f"{larger}; {divided}" if divided else larger
    if any(number.field.path == flip.quantity for number in numbers(demand)):
        return f"{gpu} needs {flip.quantity} {needed} instead of {now}, and more than that"
    return f"{gpu} would do with {flip.quantity} {needed} instead of {now}"


def _stretch(flip: Flip) -> float:
    return max(flip.needed / flip.now, flip.now / flip.needed)


def _rounded(flip: Flip) -> float:
    """Three digits, in the unit that is printed, that are on the safe side: up for what is at most,
    down for what is at least."""
    if flip.unit not in ("s", "1/s"):
        return flip.needed
    unit = time_unit(flip.needed)[0] if flip.unit == "s" else 1.0
    needed = flip.needed / unit
    scale = 10.0 ** (math.floor(math.log10(needed)) - 2)
    towards = math.ceil if flip.needed > flip.now else math.floor
    return float(f"{towards(needed / scale) * scale:.3g}") * unit
