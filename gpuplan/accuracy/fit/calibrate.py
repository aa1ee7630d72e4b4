"""Anchors from measured points: the weights of the kernels, and how wide intervals must be.

Gaussian-process regression with known amplitudes (Rasmussen and Williams 2006, algorithm 2.1). A
point far from its neighbours gets more noise, three times over, as if errors had Student's tails.
The interval of a reach (see `Prior`) is made of predictions of points whose nearer relatives were
left out. Needs numpy.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gpuplan.accuracy.points.points import Point
from gpuplan.accuracy.reckon import Prior, Reckoned, corrected
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Anchor, Features, Field, Reach, Term
from gpuplan.sizing.calibration.gaussian import Points
from gpuplan.sizing.evidence.intervals import Z90

ROUNDS = 3
TAIL = 4.0  # degrees of freedom
FOLDS = 5
SHRINK = 60  # points for which a group's own quantiles count half
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
    return [
        (point, reckoned)
        for point, reckoned in pairs
        if point.confidence != "C" and reckoned.value > 0 and point.value <= prior.most
    ]


def solve(pairs: Sequence[Pair], prior: Prior, reaches: Sequence[Reach] = ()) -> Field:
    """The anchors of the points; without `reaches`, which are to be measured, with usual ones."""
    import numpy as np

    features = [r.features for _, r in pairs]
    errors = np.array([reckoned.error(point.value) for point, reckoned in pairs])
    kernel = covariances(prior.terms, features)
    weights, spread = np.zeros(0), np.ones(len(pairs))
    for last in range(ROUNDS + 1):
        weights = np.linalg.solve(kernel + np.diag(prior.noise**2 * spread), errors)
        if last < ROUNDS:
            rest = errors - kernel @ weights
            spread = np.maximum(1, (TAIL + (rest / prior.noise) ** 2) / (TAIL + 1))
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


def together(features: Features, same: Sequence[str]) -> str:
    return "|".join([str(features[name]) for name in same])


def covariances(terms: Sequence[Term], features: Sequence[Any]) -> Any:
    """The kernel's matrix, (points, points)."""
    import numpy as np

    total = np.zeros((len(features), len(features)))
    for term in terms:
        names = [together(f, term.same) for f in features]
        number = {name: n for n, name in enumerate(sorted(set(names)))}
        codes = np.array([number[n] for n in names])
        part = np.where(codes[:, None] == codes[None, :], term.amplitude**2, 0.0)
        for name, length in term.scales:
            place = np.array([float(f[name]) for f in features]) / length
            part *= np.exp(-((place[:, None] - place[None, :]) ** 2) / 2)
        total += part
    return total


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
    found: list[Held] = []
    for left in parts.values():
        gone = {name(pair) for pair in left}
        rest = [pair for pair in pairs if name(pair) not in gone]
        if rest:
            field = solve(rest, prior, reaches)
            found += [Held(pair, field) for pair in left]
    return found


def measured_reaches(pairs: Sequence[Pair], prior: Prior) -> list[Reach]:
    """How wide 90 % intervals are in each reach."""
    by_reach = []
    for place in range(len(prior.reaches)):
        same = prior.reaches[place - 1][0] if place else None

        def left_out(pair: Pair, same: tuple[str, ...] | None = same) -> str:
            return pair[0].group if same is None else together(pair[1].features, same)

        held = held_out(pairs, prior, left_out)
        by_reach.append([h for h in held if h.place == place])
    everything = [h for found in by_reach for h in found]
    overall = _ends(everything, prior, (-Z90, Z90))
    return [
        _reach(prior, place, found, _ends(found, prior, overall))
        for place, found in enumerate(by_reach)
    ]


def _reach(prior: Prior, place: int, held: Sequence[Held], ends: tuple[float, float]) -> Reach:
    same, known = prior.reaches[place]
    kinds: dict[str, list[Held]] = defaultdict(list)
    for one in held if prior.by else ():
        kinds[str(one.pair[1].features[prior.by])].append(one)
    own = [(kind, _ends(found, prior, ends)) for kind, found in sorted(kinds.items())]
    return Reach(
        same=same,
        low=ends[0],
        high=ends[1],
        known=known,
        by=prior.by,
        kinds=tuple((kind, low, high) for kind, (low, high) in own),
    )


def _ends(held: Sequence[Held], prior: Prior, usual: tuple[float, float]) -> tuple[float, float]:
    """The quantiles of the errors, the nearer to `usual` the fewer there are."""
    import numpy as np

    part = len(held) / (len(held) + SHRINK)
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
