"""What is proposed where a workload fits nowhere. Each change is tried by the search itself, with
the value that is proposed; what nobody would do is said as a gap instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from gpuplan.diagnostics import Change, Remedy
from gpuplan.plan.model import Flip, record
from gpuplan.sizing.ask.demand import (
    Demand,
    LanguageDemand,
    TrainingDemand,
    VisionRunDemand,
)
from gpuplan.sizing.ask.given import Given, mapped
from gpuplan.sizing.candidates.choose import Candidate, furthest
from gpuplan.sizing.decide.attempts import Attempt, asked_number, attempts, eased
from gpuplan.sizing.decide.messages import describe
from gpuplan.sizing.decide.searched import Search
from gpuplan.sizing.decide.without import ENGINE_LIMITS, LIMITING, Name, overridden, without
from gpuplan.sizing.hardware.offers import OtherSite, Site
from gpuplan.sizing.kinds.serving.limit import LimitedReplica
from gpuplan.sizing.kinds.training import layouts
from gpuplan.sizing.kinds.training.judge import SizedRun
from gpuplan.units import format_apart, format_quantity, format_seconds, format_usd, plural

# An objective that gives way further than to twice (or half) of what was asked is another one.
MOST_STRETCH = 2.0
# A remedy that costs more than this many times the cheapest, or than the load without objectives,
# buys GPUs that mostly wait.
MOST_DEARER = 4.0
# Where a single sequence just meets an objective, each replica serves hardly any: what is asked
# gives way a little further, as long as that saves so much.
STEPS = (1.0, 1.1, 1.25, 1.5, MOST_STRETCH)
MOST_CHANGED = 3  # objectives at once
MOST_TRIED = 3  # objectives to begin with
MOST_REMEDIES = 3  # that a person reads
OBJECTIVES = ("slo.", "deadline")

Searched = Callable[[Demand, Site], Search]


@record
class Advice:
    """In words, and as changes of the manifest, the nearest first."""

    words: str
    remedies: tuple[Remedy, ...] = ()


@record
class Fitting:
    """An attempt that fits, and what it takes."""

    attempt: Attempt
    layout: Candidate

    @property
    def burden(self) -> tuple[bool, float]:
        return _burden(self.layout)

    def beside(self, base: Attempt) -> Fitting:
        """With what `base` changes too."""
        words = f"{base.words} and {self.attempt.words}"
        changes = (*base.changes, *self.attempt.changes) if base.changes else ()
        return replace(self, attempt=replace(self.attempt, words=words, changes=changes))

    @property
    def order(self) -> tuple[int, bool, float]:
        """Fewest fields that change, then least money; machines that are to be bought last."""
        return (len({c.origin.path[:-1] for c in self.attempt.changes}) or 9, *self.burden)

    @property
    def words(self) -> str:
        """`precision: fp8` takes 2 × l40s at $3.72/h."""
        return f"{self.attempt.words} takes {_layout(self.layout)}{_price(self.layout)}{self._run}"

    @property
    def _run(self) -> str:
        """`, $23M in 137 d, 717 kW of GPUs, checkpoints of 5.68 TB` of a run over nodes."""
        layout, run = self.layout, self.layout.detail
        if not isinstance(run, SizedRun) or layout.nodes == 1:
            return ""
        seconds, usd = run.values["time_to_finish"], layout.usd_per_hour
        money = "" if usd is None else f"{format_usd(float(usd) * seconds / 3600)} in "
        watts = format_quantity(layout.gpus * layout.device.gpu.watts.value, "W")
        return f", {money}{format_seconds(seconds)}, {watts} of GPUs"

    @property
    def subject(self) -> tuple[tuple[str | int, ...], ...]:
        """The fields, without places in lists."""
        paths = (c.origin.path for c in self.attempt.changes)
        return tuple(p[:-1] if isinstance(p[-1], int) else p for p in paths)


def _burden(layout: Candidate) -> tuple[bool, float]:
    """Whether it has no price, and what it costs: a run as a whole."""
    return layout.rank()[:2]


def blamed(demand: Demand, site: Site, searched: Searched) -> tuple[list[Name], Advice]:
    """The overrides without which it fits, with what it then takes: the one without which that
    costs least, or only all of them."""
    fields = overridden(demand)
    for groups in ([[f] for f in fields], [fields] if len(fields) > 1 else []):
        tried = [(group, searched(without(demand, group), site).best) for group in groups]
        fitting = [(group, layout) for group, layout in tried if layout is not None]
        if fitting:
            group, layout = min(fitting, key=lambda pair: _burden(pair[1]))
            values = ", ".join(f"{f} {_derived(f, without(demand, group), layout)}" for f in group)
            remedy = tuple(Change(demand.origin.child("overrides", f), None) for f in group)
            takes = f"{_layout(layout)}{_price(layout)}, with {values}"
            words = f"without {'them' if group[1:] else 'it'}: {takes}"
            return group, Advice(words=words, remedies=(remedy,))
    return [], Advice(words="")


def _price(layout: Candidate) -> str:
    """` at $27.52/h ($55.04/h with the rest of its node)`; nothing where it is not known."""
    usd, whole = layout.usd_per_hour, layout.whole_usd_per_hour
    if usd is None:
        return ""
    if whole is None or format_usd(whole) == format_usd(usd):
        return f" at {format_usd(usd)}/h"
    rest = f"{format_usd(whole)}/h with the rest of its {_nodes(layout)}"
    return f" at {format_usd(usd)}/h ({rest})"


def _derived(field: Name, demand: Demand, candidate: Candidate) -> str:
    detail, device = candidate.detail, candidate.device
    if field in ENGINE_LIMITS and isinstance(detail, LimitedReplica):
        return f"{detail.replica.needs(detail.limit)[field]:,.0f}"
    if field == "micro_batch" and isinstance(detail, SizedRun):
        return str(detail.micro_batch)
    if isinstance(demand, LanguageDemand) and field in LIMITING:
        return f"{getattr(demand, field).value:g}"
    return {
        "gpu": device.gpu.identifier,
        "partition": device.partition or "none",
        "tensor_parallel_size": str(candidate.tensor_parallel_size),
        "pipeline_parallel_size": "1",
        "replicas": str(candidate.replicas),
        "gpu_count": str(candidate.gpus),
    }.get(field, "auto")


def _nodes(candidate: Candidate) -> str:
    return "node" if candidate.nodes == 1 else f"{candidate.nodes:,} nodes"


def _layout(candidate: Candidate) -> str:
    """`2 × l40s`, `3 × 1g.10gb of h100-sxm-80gb`."""
    gpu, partition = candidate.device.gpu.identifier, candidate.device.partition
    if partition is not None:
        return f"{candidate.replicas} × {partition} of {gpu}"
    return f"{candidate.gpu_count} × {gpu}"


def advice(
    search: Search,
    site: Site,
    others: Sequence[OtherSite],
    searched: Searched,
    removed: Sequence[Name] = (),
) -> Advice:
    """The changes of the manifest that make it fit, and how far off it is where they are none of
    what was asked for. `removed` overrides are not in the search any more."""
    demand = search.demand
    elsewhere = [
        Attempt(words=o.words, changes=o.changes, demand=demand, site=o.site) for o in others
    ]
    tried = [(a, searched(a.demand, a.site)) for a in (*attempts(demand, site), *elsewhere)]
    fitting = [Fitting(attempt=a, layout=s.best) for a, s in tried if s.best is not None]
    fitting += _eased(search, site, searched)
    if not fitting:
        other = [a for a, _ in tried if a in elsewhere or a.site.fabric is not site.fabric]
        near = [(a, s) for a, s in tried if a in other and _flips(demand, s)]
        near.sort(key=lambda pair: _hardness(demand, _flips(demand, pair[1])[0]))
        fitting = [f for a, s in near[:MOST_TRIED] for f in _eased(s, a.site, searched, a)]
    kept = _sensible(fitting, searched)
    gap = _gap(search, site, kept) or ("" if kept else "ask for less of it, or divide the load")
    if elsewhere and not fitting:
        gap += _nearest_elsewhere([s for a, s in tried if a in elsewhere])
    if fitting and not kept:
        least = min(fitting, key=lambda f: f.burden)
        gap += f"; {least.words}, over {MOST_DEARER:g} times what the load alone takes"
    listed = " and ".join(f"'{name}'" for name in removed)
    ways = [f"without {listed} overridden"] if removed else []
    ways += filter(None, [gap, "; or ".join(f.words for f in kept)])
    base = tuple(Change(demand.origin.child("overrides", name), None) for name in removed)
    remedies = tuple((*base, *f.attempt.changes) for f in kept if f.attempt.changes)
    return Advice(words="; ".join(ways), remedies=remedies)


def _nearest_elsewhere(searches: Sequence[Search]) -> str:
    """The GPU type that comes nearest of those that may not be used, where none would do."""
    nearest = furthest(c for s in searches for c in s.rejected)
    if nearest is None:
        return ""
    reason = describe(nearest.shortfalls[0])
    return f"; nor would other GPUs or nodes do, {nearest.device.gpu.identifier}: {reason}"


def _sensible(fitting: Sequence[Fitting], searched: Searched) -> list[Fitting]:
    """Those that a person would take, the nearest first, two of one field at most."""
    least = min((f.burden for f in fitting), default=(True, 0.0))
    kept: list[Fitting] = []
    for item in sorted(fitting, key=lambda f: f.order):
        alone = searched(_load_alone(item.attempt.demand), item.attempt.site).best
        burdens = [least] + ([_burden(alone)] if alone else [])
        unpriced, bound = item.burden
        dear = any(unpriced == u and bound > MOST_DEARER * usd for u, usd in burdens)
        if not dear and sum(k.subject == item.subject for k in kept) < 2:
            kept.append(item)
    return kept[:MOST_REMEDIES]


def _load_alone(demand: Demand) -> Demand:
    """The same load without objectives in seconds."""

    def changed(number: Given) -> Given | None:
        return None if number.unit == "s" and number.field.path.startswith("slo.") else number

    return mapped(demand, changed)


def _stretch(demand: Demand, flip: Flip) -> float:
    """How far a quantity has to move from what was asked, as a factor."""
    asked = asked_number(demand, flip.quantity) or flip.now
    return max(flip.needed / asked, asked / flip.needed)


def _hardness(demand: Demand, flip: Flip) -> tuple[bool, float]:
    """What a person can change comes before the memory of a GPU."""
    return flip.quantity == "gpu_memory_bytes", _stretch(demand, flip)


def _flips(demand: Demand, search: Search) -> list[Flip]:
    """What would open the gates of those that got furthest, the nearest first, as far as a person
    would go."""
    flips = [c.flip for c in search.rejected if c.flip and c.flip.now > 0 and c.flip.needed > 0]
    near = [
        f
        for f in flips
        if isinstance(demand, TrainingDemand)  # the nearest answer, however far
        or not f.quantity.startswith(OBJECTIVES)
        or _stretch(demand, f) <= MOST_STRETCH
    ]
    return sorted(near, key=lambda f: _stretch(demand, f))


def _eased(
    search: Search, site: Site, searched: Searched, base: Attempt | None = None
) -> Iterator[Fitting]:
    """Objectives that give way, each with others that have to as well; beside `base`, whose site
    this is."""
    demand = search.demand
    known: list[set[str]] = []
    for flip in _flips(demand, search)[:MOST_TRIED]:
        if any(flip.quantity in paths for paths in known):
            continue
        flips = _enough(demand, site, flip, searched)
        if flips is not None:
            known.append(set(flips))
            enough = [f for step in STEPS if (f := _step(demand, site, flips, step, searched))]
            least = min(f.burden for f in enough)
            near = next(f for f in enough if f.burden <= (least[0], MOST_DEARER / 2 * least[1]))
            yield near if base is None else near.beside(base)


def _enough(demand: Demand, site: Site, flip: Flip, searched: Searched) -> dict[str, Flip] | None:
    """The flip, with the next one as long as it alone is not enough."""
    flips = {flip.quantity: flip}
    for _ in range(MOST_CHANGED):
        attempt = eased(demand, site, flips)
        if attempt is None:
            return None
        tried = searched(attempt.demand, attempt.site)
        if tried.best is not None:
            return flips
        following = _flips(demand, tried)
        if not following:
            return None
        flips[following[0].quantity] = following[0]
    return None


def _step(
    demand: Demand, site: Site, flips: dict[str, Flip], step: float, searched: Searched
) -> Fitting | None:
    """With objectives that give way to `step` times what was asked, where that is further."""
    further = {}
    for path, flip in flips.items():
        asked = asked_number(demand, path)
        wanted = flip.needed
        if asked is not None:
            upward = flip.needed > asked
            wanted = max(wanted, asked * step) if upward else min(wanted, asked / step)
        further[path] = replace(flip, needed=wanted)
    attempt = eased(demand, site, further)
    layout = None if attempt is None else searched(attempt.demand, attempt.site).best
    if attempt is None or layout is None:
        return None
    return Fitting(attempt=attempt, layout=layout)


def _gap(search: Search, site: Site, kept: Sequence[Fitting]) -> str:
    """How far the nearest candidate is from what was asked; nothing of what the remedies that are
    `kept` mend."""
    demand = search.demand
    nearest = min(
        (c for c in search.rejected if c.flip and c.flip.now > 0 and c.flip.needed > 0),
        key=lambda c: _hardness(demand, c.flip),  # type: ignore[arg-type]
        default=None,
    )
    if nearest is None or nearest.flip is None:
        return ""
    flip, gpu = nearest.flip, nearest.device.gpu.identifier
    memory = flip.quantity == "gpu_memory_bytes"
    # Fields of the workload stand below its place in the list, others below `platform`.
    changed = {part for f in kept for path in f.subject for part in (path[1:], path[2:])}
    if tuple(flip.quantity.split(".")) in changed or (kept and memory):
        return ""
    if memory:
        has, needed = format_apart(flip.now, flip.needed, flip.unit)
        larger = f"it takes a GPU with {needed}; {gpu} has {has}"
        divided = layouts.words(demand, site) if isinstance(demand, TrainingDemand) else ""
        return f"{larger}; {divided}" if divided else larger
    if flip.quantity == "node.count":
        more = int(flip.needed - flip.now)
        gpus = more * nearest.device.offer.gpus_per_node
        return f"it takes {plural(more, 'node')} of {gpu} more, with {plural(gpus, 'GPU')}"
    if flip.quantity.startswith(OBJECTIVES):
        return _best_reached(search, flip)
    has, needed = format_apart(flip.now, flip.needed, flip.unit)
    return f"{gpu} would do with {flip.quantity} {needed} instead of {has}"


def _best_reached(search: Search, flip: Flip) -> str:
    """`no allowed GPU reaches 10 ms: the best is 14 ms on h200-sxm-141gb, tensor parallel 8`."""
    demand = search.demand
    upward = flip.needed > flip.now
    reached = [c for c in search.allowed if c.flip and c.flip.quantity == flip.quantity]
    best = min(reached, key=lambda c: c.flip.needed if upward else -c.flip.needed)  # type: ignore[union-attr]
    assert best.flip is not None
    asked = asked_number(demand, flip.quantity) or flip.now
    limit, value = format_apart(asked, best.flip.needed, flip.unit)
    where = best.device.gpu.identifier
    if best.gpus > 1:
        run = isinstance(demand, TrainingDemand | VisionRunDemand)
        where += f", {best.gpus} GPUs" if run else f", tensor parallel {best.gpus}"
    return f"no allowed GPU reaches {flip.quantity} {limit}: the best is {value} on {where}"
