"""Changes of a manifest that may make a workload fit: the fields, their values as a person writes
them, and the demand and site that these would be."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from gpuplan.diagnostics import Change, Remedy
from gpuplan.models.model import Transformer
from gpuplan.plan.model import Fabric, Flip, record
from gpuplan.sizing.ask.demand import Demand, LanguageDemand, ModelDemand, TrainingDemand
from gpuplan.sizing.ask.fields import GLOBAL_BATCH, SPARE_NODES
from gpuplan.sizing.ask.given import numbers
from gpuplan.sizing.ask.precision import precision_problem
from gpuplan.sizing.decide.without import with_number
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.serving import nodes
from gpuplan.sizing.kinds.training.inverse import fewest_nodes, nodes_in_time
from gpuplan.source import Origin
from gpuplan.units import format_rate, parse_rate, parse_seconds, time_unit

# Formats to try where nothing fits: smaller ones, then those that more GPUs compute in.
OTHERS = ("fp8", "int4", "bf16")
FABRIC = {"kind": "infiniband", "bandwidth_per_gpu": "400 Gb/s"}
ASSUMED = Fabric(kind="infiniband", bytes_per_s_per_gpu=50e9, resource=None)


@record
class Attempt:
    """`changes` of the manifest, in words, and what it then asks of which site."""

    words: str
    changes: Remedy
    demand: Demand
    site: Site


def attempts(demand: Demand, site: Site) -> Iterator[Attempt]:
    """Choices of the workload's own that may be others."""
    if isinstance(demand, TrainingDemand):
        yield from _run(demand, site)
        return
    if isinstance(demand, LanguageDemand) and nodes.possible(demand, site):
        yield from _joined(demand, site)
    yield from _precisions(demand, site)


def _joined(demand: Demand, site: Site) -> Iterator[Attempt]:
    """The nodes of a site, joined."""
    at = demand.origin
    if site.fabric is None:
        fabric = Origin(at.document, ("platform", "fabric"))
        changes = tuple(Change(fabric.child(name), value) for name, value in FABRIC.items())
        listed = ", ".join(f"{name}: {value}" for name, value in FABRIC.items())
        words = "GPUs of several nodes are not used without `platform.fabric`: "
        yield Attempt(
            words=f"{words}`{{{listed}}}`",
            changes=changes,
            demand=demand,
            site=replace(site, fabric=ASSUMED),
        )


def _run(demand: TrainingDemand, site: Site) -> Iterator[Attempt]:
    at = demand.origin
    yield from _joined(demand, site)
    for name, value, words, without in (
        (
            "optimizer",
            "adamw-bf16",
            "the states of adamw-bf16 are not divided over GPUs: `optimizer: adamw`",
            "adamw",
        ),
        (
            "sharding",
            demand.sharding,
            f"not more is divided over GPUs than sharding {demand.sharding}: without it, the run",
            None,
        ),
        (
            "recompute",
            demand.recompute,
            f"activations are stored for recompute {demand.recompute}: without it, the run",
            None,
        ),
    ):
        if value is not None and getattr(demand, name) == value:
            changed = replace(demand, **{name: without})  # type: ignore[arg-type]
            change = Change(at.child("training", name), without)
            yield Attempt(words=words, changes=(change,), demand=changed, site=site)
    yield from _fewer_spares(demand, site)
    yield from _more_nodes(demand, site)
    batch = int(demand.global_batch)
    if batch.bit_count() > 1:
        for power in (1 << batch.bit_length(), 1 << batch.bit_length() - 1):
            changed = with_number(demand, GLOBAL_BATCH.path, float(power), "tried") or demand
            yield Attempt(
                words=f"{batch:,} sequences split evenly over few numbers of GPUs: "
                f"`global_batch: {power}`",
                changes=(Change(at.child(*GLOBAL_BATCH.parts), power),),
                demand=changed,
                site=site,
            )


def _fewer_spares(demand: TrainingDemand, site: Site) -> Iterator[Attempt]:
    """As many spare nodes as the nodes that there are leave, and none."""
    stated = demand.spare_nodes
    if stated is None or int(stated) == 0:
        return
    none = with_number(demand, SPARE_NODES.path, 0.0, "tried")
    assert isinstance(none, TrainingDemand)
    left = [
        o.node_count - fewest
        for o in site.gpus
        if o.node_count is not None and (fewest := fewest_nodes(none, site, o)) is not None
    ]
    joined = any(o.nvlink_nodes > 1 for o in site.gpus)
    why = "spare nodes lie in the NVLink domain of their run: " if joined else ""
    for spares in sorted({n for n in (*left, 0) if 0 <= n < int(stated)}, reverse=True)[:2]:
        yield Attempt(
            words=f"{why}`{SPARE_NODES.path}: {spares}` instead of {int(stated)}",
            changes=(Change(demand.origin.child(*SPARE_NODES.parts), spares),),
            demand=with_number(demand, SPARE_NODES.path, float(spares), "tried") or demand,
            site=site,
        )


def _more_nodes(demand: TrainingDemand, site: Site) -> Iterator[Attempt]:
    """As many nodes as end the run in time, where the manifest says how many there are."""
    offers = [o for o in site.gpus if not o.node_names]
    stated = [o.node_count for o in offers if o.node_count is not None]
    if len(stated) < len(site.gpus):
        return
    counts = [n for o in offers if (n := nodes_in_time(demand, site, o)) is not None]
    if counts and (needed := min(counts)) > (now := max(stated)):
        at = Origin(demand.origin.document, ("platform", "node", "count"))
        more = tuple(replace(o, node_count=needed) for o in offers)
        yield Attempt(
            words=f"`platform.node.count: {needed}` instead of {now}",
            changes=(Change(at, needed),),
            demand=demand,
            site=replace(site, gpus=more),
        )


def _precisions(demand: Demand, site: Site) -> Iterator[Attempt]:
    """Other formats that an engine makes of the published weights."""
    if not isinstance(demand, ModelDemand):
        return
    model = demand.model
    for precision in OTHERS:
        refused = isinstance(model, Transformer) and any(
            precision_problem(model, precision, demand.engine.name, demand.origin)
        )
        if precision != demand.precision and not refused:
            yield Attempt(
                words=f"`precision: {precision}`",
                changes=(Change(demand.origin.child("precision"), precision),),
                demand=replace(demand, precision=precision),
                site=site,
            )


def asked_number(demand: Demand, path: str) -> float | None:
    """What the manifest has at a path below the workload."""
    return next((n.value for n in numbers(demand) if n.field.path == path), None)


def eased(demand: Demand, site: Site, flips: Mapping[str, Flip]) -> Attempt | None:
    """What gates want, by the quantity that has to give way; None where that is no field of the
    manifest. Values are rounded to the side that fits."""
    words, changes, where = [], [], site
    changed: Demand = demand
    for path, flip in flips.items():
        upward = flip.needed > flip.now
        text, number = written(flip.needed, flip.unit, upward=upward)
        asked = asked_number(demand, path)
        if asked is not None:
            changed = with_number(changed, path, number, "tried") or changed
            origin, name = demand.origin.child(*path.split(".")), path
        elif path in ("storage.bandwidth", "node.count"):
            moved = _with_platform(where, path, flip.now, number)
            if moved is None:
                return None
            asked, where = flip.now, moved
            name = f"platform.{path}"
            origin = Origin(demand.origin.document, tuple(name.split(".")))
        else:
            return None
        now, _ = written(asked, flip.unit, upward=upward, exact=True)
        words.append(f"`{name}: {text}` instead of {now}")
        changes.append(Change(origin, text))
    return Attempt(words=" and ".join(words), changes=tuple(changes), demand=changed, site=where)


def _with_platform(site: Site, path: str, now: float, needed: float) -> Site | None:
    """With faster storage, or more of the nodes that the manifest describes."""
    if path == "storage.bandwidth":
        rate = Quantity(needed, "B/s", "tried")
        return replace(site, storage_bytes_per_s=rate)
    if any(o.node_names or o.node_count != now for o in site.gpus):
        return None
    return replace(site, gpus=tuple(replace(o, node_count=int(needed)) for o in site.gpus))


def written(
    value: float, unit: str, *, upward: bool, exact: bool = False
) -> tuple[str | float, float]:
    """As a manifest has it, and the number in base units that is read from that: three digits,
    rounded up or down, or the `exact` value."""
    if unit == "s":
        factor, name = time_unit(value)
        text = f"{_digits(value / factor, exact=exact, upward=upward):g} {name}"
        return text, parse_seconds(text)
    if unit == "B/s":
        text = format_rate(_digits(value, exact=exact, upward=upward), 6)
        return text, parse_rate(text)
    if unit == "nodes":
        return int(value), float(int(value))
    number = _digits(value, exact=exact, upward=upward)
    return number, number


def _digits(value: float, *, upward: bool, exact: bool) -> float:
    if exact:
        return float(f"{value:.6g}")
    scale = 10.0 ** (math.floor(math.log10(value)) - 2)
    towards = math.ceil if upward else math.floor
    return float(f"{towards(value / scale) * scale:.3g}")
