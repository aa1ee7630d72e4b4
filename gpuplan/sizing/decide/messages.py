"""The messages of a search that found nothing.

GP010 no GPU type fits · GP011 an override that does not fit · GP012 GPUs that nothing stands for
"""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.diagnostics import Diagnostic, error, note
from gpuplan.plan.model import Shortfall
from gpuplan.plan.serialize import to_tree
from gpuplan.plan.times import TIMES
from gpuplan.plan.wording import lacking
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.hardware.measured import REMEDY
from gpuplan.source import Origin
from gpuplan.units import format_apart


def nothing_fits(
    name: str, rejected: Sequence[Candidate], origin: Origin, remedy: str
) -> Diagnostic:
    """One error a workload: each GPU type's first gate with its numbers, and what would fit."""
    fits = "fits" if _memory_alone(rejected) else "meets what is asked of"
    return error(
        "GP010",
        f"no GPU type that may be used {fits} '{name}'",
        Origin(origin.document, origin.path),
        label=_gates(rejected) or "no GPU type may be used",
        help=remedy,
    )


def rack_feeds_no_node(rejected: Sequence[Candidate], origin: Origin) -> Diagnostic:
    """No node of a GPU type that may be used stands in a rack; said of the node that draws least,
    at the field of the workload's manifest."""
    least = min((c.shortfalls[0] for c in rejected), key=lambda gate: gate.requested)
    node, rack = format_apart(least.requested, least.capacity, "W")
    return error(
        "GP041",
        f"a node draws {node}, a rack feeds {rack}",
        Origin(origin.document, ("platform", "rack_power")),
        label="no node can stand there",
        help=f"write what the racks for these nodes feed, {node} at least, or allow smaller nodes",
    )


def not_measured(name: str, rejected: Sequence[Candidate], origin: Origin) -> Diagnostic:
    """No GPU that may be used was measured, nor has one that stands for it."""
    things = rejected[0].shortfalls[0].resource
    gpus = ", ".join(dict.fromkeys(c.device.gpu.identifier for c in rejected))
    return error(
        "GP012",
        f"no measured {things} stand for {gpus}",
        Origin(origin.document, origin.path),
        label=f"needed to predict '{name}'",
        help=f"{REMEDY}, or name a GPU that was measured",
    )


def nothing_runs(
    name: str, rejected: Sequence[Candidate], origin: Origin, others: str | None
) -> Diagnostic:
    """What no GPU that may be used runs at all; `others` are whose GPUs could. None: another engine
    could."""
    return error(
        "GP012",
        f"no GPU that may be used runs '{name}'",
        Origin(origin.document, origin.path),
        label=_gates(rejected),
        help="name another engine, or weights in another precision"
        if others is None
        else f"name GPUs of {others} in 'platform.gpus', or give these what they do run:"
        " docs/vendors.md",
    )


def override_does_not_fit(
    fields: Sequence[str], rejected: Sequence[Candidate], at: Origin, instead: str
) -> Diagnostic:
    """`instead` says what is taken without the override."""
    listed = ", ".join(f"'{f}'" for f in fields)
    fails = (
        "the workload does not fit" if _memory_alone(rejected) else "nothing meets what is asked"
    )
    return error(
        "GP011",
        f"with {listed} overridden, {fails}",
        at,
        label=_gates(rejected),
        help=instead,
    )


def _memory_alone(rejected: Sequence[Candidate]) -> bool:
    """Whether memory is what every GPU type lacks: only then something does not fit."""
    return all(c.shortfalls[0].resource in ("gpu_memory", "kv_cache") for c in rejected)


def describe(shortfall: Shortfall) -> str:
    """`gpu_memory: needs 74 GiB, has 44 GiB`; what an objective asks; or what is no amount."""
    if shortfall.lack:
        return lacking(to_tree(shortfall))
    asked = shortfall.requested + shortfall.used
    unit = "1" if shortfall.unit == shortfall.resource else shortfall.unit  # "nodes: needs 2"
    need, has = format_apart(asked, shortfall.capacity, unit)
    if shortfall.resource in TIMES:
        return f"{shortfall.resource}: {need} where {has} is asked"
    return f"{shortfall.resource}: needs {need}, has {has}"


def _gates(rejected: Sequence[Candidate]) -> str:
    """Why each GPU type is rejected; types that stop alike together, and the sizes that nodes of
    one type come in."""
    reasons: dict[str, list[str]] = {}
    for candidate in rejected:
        gpus = reasons.setdefault(describe(candidate.shortfalls[0]), [])
        gpus.append(candidate.device.gpu.identifier)
    parts = [f"{', '.join(dict.fromkeys(gpus))}: {reason}" for reason, gpus in reasons.items()]
    nodes = [c for c in rejected if c.shortfalls[0].resource == "nodes"]
    kinds = {c.device.gpu.identifier for c in nodes}
    if len(kinds) < len(nodes):
        parts.append("all nodes of a workload are of one kind")
    return "; ".join(parts)


def not_all_weighed(part: float, workloads: int, origin: Origin) -> Diagnostic:
    """`part` of the plan's cost is the most that another combination would save."""
    return note(
        "GP014",
        f"not all combinations of the layouts of {workloads} workloads were weighed: another one "
        f"would cost at most {100 * part:.2g} % less",
        origin,
        help="divide the manifest, or name fewer GPU types: with few combinations all are weighed",
    )
