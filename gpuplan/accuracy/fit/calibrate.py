"""Anchors from measured points: the weights of the kernels, and how wide intervals must be.

The interval of a reach (see `Prior`) is made of predictions of points whose nearer relatives were
left out. Needs numpy.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from gpuplan.accuracy.data.stretch import STRETCH
from gpuplan.accuracy.fit.explained import Explained, together
from gpuplan.accuracy.points.points import Point
from gpuplan.accuracy.reckon import Ends, Prior, Reckoned, corrected
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Anchor, Features, Field, Reach
from gpuplan.sizing.calibration.points import Points
from gpuplan.sizing.calibration.served import OWN
from gpuplan.sizing.evidence.intervals import Z90

FOLDS = 5
SHRINK = 60  # points for which a group's own quantiles count half
SHRINK_APART = 20  # of a harness, where whole sources were left out
OF_GPU = ("gpu", "cell", "layout")  # texts that points of other GPUs do not share
Pair = tuple[Point, Reckoned]


@dataclass(frozen=True)
class Held:
    """A point predicted without some of the others: what those say of it. `z` is ln(measured /
    predicted) in standard deviations; `place` the reach in which it lies."""

    pair: Pair
    field: Field

    @cached_property
    def factor(self) -> float:
        return math.exp(self.field.mean(self.pair[1].features))

    @cached_property
    def sigma(self) -> float:
        return self.field.sigma(self.pair[1].features)

    @cached_property
    def place(self) -> int:
        return self.field.reaches.index(self.field.reach(self.pair[1].features))

    @property
    def z(self) -> float:
        point, reckoned = self.pair
        return (reckoned.error(point.value) - math.log(self.factor)) / self.sigma

    @property
    def estimate(self) -> Estimate:
        """As the others predict it."""
        return corrected(self.pair[1], self.field)


def usable(pairs: Iterable[Pair], prior: Prior) -> list[Pair]:
    """Without points of confidence C and those that measure something else."""
    rated = [pair for pair in pairs if pair[0].confidence != "C" and pair[1].value > 0]
    started = set[str]()
    if math.isfinite(prior.most):
        started = starting([(point, reckoned.features) for point, reckoned in rated])
    return [
        (point, reckoned)
        for point, reckoned in rated
        if point.value <= prior.most and point.group not in started
    ]


def starting(points: Sequence[tuple[Point, Features]]) -> set[str]:
    """Groups in which a time is less than half where the load is half as much again, of the same
    setting: their means have a server's start in them, which few requests share."""
    by_setting: dict[tuple[object, ...], list[tuple[float, float, str]]] = defaultdict(list)
    for point, features in points:
        load = float(features["batch"])
        where = (f"{v:.1f}" if isinstance(v, float) else v for n, v in _setting(features))
        by_setting[point.group, *where].append((load, point.value, point.group))
    return {
        group
        for measured in by_setting.values()
        for load, value, group in measured
        for more, less, _ in measured
        if more >= load + 0.58 and less < value / 2
    }


def _setting(features: Features) -> list[tuple[str, str | float]]:
    """All but the load, and what is another for each load."""
    return [(n, v) for n, v in sorted(features.items()) if n not in ("batch", "unrecorded")]


def solve(
    pairs: Sequence[Pair],
    prior: Prior,
    reaches: Sequence[Reach] = (),
    explained: Explained | None = None,
) -> Field:
    """The anchors of the points; without `reaches`, which are to be measured, with usual ones.
    `explained` are the points' covariances, where they are known already."""
    known = explained or Explained.of(pairs, prior)
    weights, spread = known.weights()
    anchors = [
        Anchor(
            identifier=point.identifier,
            group=point.group,
            features=reckoned.features,
            weight=float(f"{weight:.6g}"),
            noise=float(f"{prior.noise**2 * wide:.6g}"),
            measured=float(f"{reckoned.anchored(point.value):.6g}"),
            formula=float(f"{reckoned.anchored(reckoned.value):.6g}"),
            source=point.source,
        )
        for (point, reckoned), weight, wide in zip(pairs, weights, spread, strict=True)
    ]
    usual = [Reach(same=s, low=-Z90, high=Z90, known=known) for s, known in prior.reaches]
    return field_of(prior, anchors, reaches or usual)


def field_of(
    prior: Prior, anchors: Sequence[Anchor], reaches: Sequence[Reach], **said: str
) -> Field:
    """`said` are the field's source and unit."""
    names = sorted(
        {n for a in anchors for n, v in a.features.items() if isinstance(v, str)}
        | {n for term in prior.terms for n in term.same}
        | {n for same, _ in prior.reaches for n in same}
        | {name for name in (prior.by, prior.apart) if name}
    )
    places = sorted(
        {n for a in anchors for n, v in a.features.items() if not isinstance(v, str)}
        | {n for term in prior.terms for n, _ in term.scales}
    )
    points = Points(
        names=names,
        places=places,
        texts=[[str(a.features[n]) for n in names] for a in anchors],
        numbers=[[float(a.features[n]) for n in places] for a in anchors],
        weights=[a.weight for a in anchors],
        noises=[a.noise for a in anchors],
    )
    return Field(prior.terms, prior.noise, reaches, points, anchors.__getitem__, **said)


def held_out(
    pairs: Sequence[Pair],
    prior: Prior,
    name: Callable[[Pair], str],
    reaches: Sequence[Reach] = (),
) -> list[Held]:
    """Every point, predicted from those of other names; many names are gathered in folds."""
    names = sorted({name(pair) for pair in pairs})
    fold = {n: place % max(FOLDS, min(len(names), 12)) for place, n in enumerate(names)}
    parts: dict[int, list[Pair]] = defaultdict(list)
    for pair in pairs:
        parts[fold[name(pair)]].append(pair)
    held: list[Held] = []
    everything = Explained.of(pairs, prior)
    for left in parts.values():
        gone = {name(pair) for pair in left}
        kept = [place for place, pair in enumerate(pairs) if name(pair) not in gone]
        if kept:
            rest = [pairs[place] for place in kept]
            field = solve(rest, prior, reaches, everything.among(kept))
            held += [Held(pair, field) for pair in left]
    return held


def measured_reaches(pairs: Sequence[Pair], prior: Prior) -> list[Reach]:
    """How wide 90 % intervals are in each reach."""
    held: dict[tuple[str, ...] | None, list[Held]] = {}
    by_reach = []
    for place in range(len(prior.reaches)):
        same = prior.reaches[place - 1][0] if place else None
        if _apart(prior, place):
            same = (prior.apart,)
        if same not in held:
            held[same] = _without(pairs, prior, same)
        by_reach.append([h for h in held[same] if h.place == place])
    usual = {
        apart: [h for place, of in enumerate(by_reach) for h in of if _apart(prior, place) == apart]
        for apart in (False, True)
    }
    return [
        _reach(prior, place, usual[True] if _apart(prior, place) else of, usual)
        for place, of in enumerate(by_reach)
    ]


def _apart(prior: Prior, place: int) -> bool:
    return bool(prior.apart) and prior.apart not in prior.reaches[place][0]


def _without(pairs: Sequence[Pair], prior: Prior, same: tuple[str, ...] | None) -> list[Held]:
    """Every point, predicted without those that share these texts with it, or its group. Who
    measured more than half of all points is not left out: little would be left."""

    def name(pair: Pair) -> str:
        return pair[0].group if same is None else together(pair[1].features, same)

    held = held_out(pairs, prior, name)
    if same != (prior.apart,):
        return held
    count = Counter(map(name, pairs))
    return [h for h in held if 2 * count[name(h.pair)] <= len(pairs)]


def _reach(
    prior: Prior, place: int, held: Sequence[Held], usual: Mapping[bool, Sequence[Held]]
) -> Reach:
    """Of what others measured, reaches differ less than harnesses do, and have one width. Of kinds
    whose ends are known, none but one's own points say otherwise, and near them alone."""
    (same, known), apart = prior.reaches[place], _apart(prior, place)
    shrink = SHRINK_APART if apart else SHRINK
    everything = _ends(usual[apart], prior, (-Z90, Z90), SHRINK)
    ends = everything if apart else _ends(held, prior, everything, shrink)
    kinds: dict[str, list[Held]] = defaultdict(list)
    for one in held if prior.by else ():
        kinds[str(one.pair[1].features[prior.by])].append(one)
    for kind, _ in prior.held:
        own = [h for h in kinds[kind] if h.pair[1].features["source"] == OWN]
        kinds[kind] = [] if apart else own
    usual_of = {kind: _held(of, same, apart=apart) for kind, of in prior.held}
    of_kinds = [
        (kind, *_ends(of_kind, prior, usual_of.get(kind, ends), shrink))
        for kind, of_kind in sorted(kinds.items())
    ]
    low, high = _stretched(prior, place, "", *ends)
    return Reach(
        same=same,
        low=low,
        high=high,
        known=known,
        by=prior.by,
        kinds=tuple((kind, *_stretched(prior, place, kind, *own)) for kind, *own in of_kinds),
    )


def _held(of: tuple[Ends, Ends, Ends], same: Sequence[str], *, apart: bool) -> Ends:
    """The known ends that hold in a reach: where nobody may have measured the GPU, not narrower
    than where somebody did."""
    near, others, unmeasured = of
    ends = others if apart else near
    if any(name in same for name in OF_GPU):
        return ends
    return min(ends[0], unmeasured[0]), max(ends[1], unmeasured[1])


def _stretched(prior: Prior, place: int, kind: str, low: float, high: float) -> Ends:
    factor = stretch(prior, place, kind)
    return float(f"{low * factor:.4g}"), float(f"{high * factor:.4g}")


def stretch(prior: Prior, place: int, kind: str) -> float:
    """How many times as wide the ends of a reach are for it: with constants that did not see the
    points, errors are others; of a kind that nobody measured, where kinds are told apart, as much
    as of any."""
    by_kind = STRETCH.get(prior.quantity, {})
    of_all = max((places.get(place, 1.0) for places in by_kind.values()), default=1.0)
    unmeasured = of_all if prior.by and not kind else 1.0
    return by_kind.get(kind, {}).get(place, unmeasured)


def _ends(
    held: Sequence[Held], prior: Prior, usual: tuple[float, float], shrink: float
) -> tuple[float, float]:
    """The quantiles of the errors, the nearer to `usual` the fewer there are."""
    import numpy as np

    part = len(held) / (len(held) + shrink)
    own = np.quantile([h.z for h in held], prior.ends) if held else usual
    low, high = (part * o + (1 - part) * u for o, u in zip(own, usual, strict=True))
    return float(f"{min(low, -prior.least):.4g}"), float(f"{max(high, prior.least):.4g}")


def points_of(field: Field, quantity: str) -> list[Pair]:
    """The points that a field was made from."""
    return [
        (
            Point(
                identifier=a.identifier,
                metric=quantity,
                value=a.measured,
                group=a.group,
                case="",
                source=a.source,
            ),
            Reckoned(value=a.formula, quantity=quantity, features=a.features),
        )
        for a in field.anchors
    ]


def calibrate(pairs: Sequence[Pair], prior: Prior) -> Field:
    """The anchors of a quantity, with their intervals."""
    kept = usable(pairs, prior)
    field, reaches = solve(kept, prior), measured_reaches(kept, prior)
    source = f"{len(kept)} measured points"
    units = {p.case.row["unit"] for p, _ in kept if not isinstance(p.case, str)}
    unit = prior.unit or (units.pop() if len(units) == 1 else "")
    return field_of(prior, field.anchors, reaches, source=source, unit=unit)
