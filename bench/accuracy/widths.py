"""Public served points → gpuplan/accuracy/data/widths.py: how wide 90 % intervals are at sites
whose settings nobody tuned, for kinds of models and GPUs.

    python -m bench.accuracy.widths INFERENCE_CSV...

Whole sources are left out, with constants fitted again as bench/accuracy/refitted.py does; then
some of a source's own points are given, as `gpuplan accuracy CSV --calibrate` gives a user's, and
the rest is predicted. Given are the first by identifier, which is a hash, and by another hash: no
choice of ours. Then whole generations of GPUs are left out, too. Needs numpy and scipy.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.accuracy.refitted import Serving, left_out, of_amd, solved
from bench.fitting.fit import table, write
from gpuplan.accuracy.fit.calibrate import Pair, solve
from gpuplan.accuracy.fit.explained import Explained
from gpuplan.accuracy.metrics.serving_priors import PRIORS
from gpuplan.accuracy.reckon import Ends
from gpuplan.sizing.calibration.anchors import Anchors, Features, Field, Reach
from gpuplan.sizing.calibration.served import AMD, USUAL

ABOUT = """How wide intervals of served times are

Ends of 90 % intervals in standard deviations, of 89 % where no point of the same site is near, for
each `spread` of the features: where one is near, where none is, and where nobody measured the GPU.
Of whole sources that were left out, and of whole generations of GPUs.
"""
# Near a point of the same site, and where none is, of which wider intervals cost most: between the
# 86 and 94 % that are asked of every category.
COVERED = {True: 0.9, False: 0.89}
FEW = 1  # sources for which a kind's own ends count half
KINDS = ("dense", "mixture", AMD)
DRAWS = 3  # of the points that are given
# By spread: near points of one's own, without, and where nobody measured the GPU.
Widths = Mapping[str, tuple[Ends, Ends, Ends]]


class Left(NamedTuple):
    """A point of a source that was left out, predicted with some of its others `given`: `z` is
    ln(measured / predicted) in standard deviations."""

    column: int
    given: str
    draw: int
    features: Features
    error: float
    z: float
    reach: Reach

    @property
    def near(self) -> bool:
        """Beside some point of the same site."""
        return self.given not in (NOTHING, UNMEASURED)

    def inside(self, ends: Ends) -> bool:
        return ends[0] <= self.z <= ends[1]


Given = Callable[[Sequence[Pair], int], list[Pair]]


def of_all(count: int) -> Given:
    """The first points of a source."""
    return lambda pairs, draw: sorted(pairs, key=lambda pair: _order(pair, draw))[:count]


def of_each_cell(pairs: Sequence[Pair], draw: int) -> list[Pair]:
    """The first point of each model, GPU, engine and precision."""
    by_given: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_given[str(pair[1].features["cell"])].append(pair)
    return [min(of, key=lambda pair: _order(pair, draw)) for of in by_given.values()]


def _order(pair: Pair, draw: int) -> str:
    name = pair[0].identifier
    return sha256(f"{draw} {name}".encode()).hexdigest() if draw else name


NOTHING, UNMEASURED = "none given", "no point of the generation"
COLUMNS: dict[str, Given] = {
    NOTHING: of_all(0),
    "1 of the site": of_all(1),
    "3 of the site": of_all(3),
    "1 of the same model, GPU, engine and precision": of_each_cell,
}


def lefts(serving: Serving, draws: int = DRAWS) -> Iterator[Left]:
    for column, rest, own in left_out(serving, "source"):
        if own:
            yield from _of_source(column, rest, own, draws)


def _of_source(
    column: int, rest: Sequence[Pair], own: Sequence[Pair], draws: int
) -> Iterator[Left]:
    prior = tuple(PRIORS.values())[column]
    reaches = Anchors()(prior.quantity).reaches
    everybody = [*rest, *own]
    explained = Explained.of(everybody, prior)
    for name, choose in COLUMNS.items():
        for draw in range(draws if name != NOTHING else 1):
            given = set(map(id, choose(own, draw)))
            kept = [n for n, p in enumerate(everybody) if n < len(rest) or id(p) in given]
            known = [everybody[n] for n in kept]
            field = solve(known, prior, reaches, explained.among(kept))
            gone = [pair for pair in own if id(pair) not in given]
            yield from _left(field, gone, column=column, given=name, draw=draw)


def of_generations(serving: Serving) -> Iterator[Left]:
    """Of GPUs that nobody measured, at sites whose settings nobody tuned."""
    for column, rest, own in left_out(serving, "generation"):
        usual = [pair for pair in own if pair[1].features["practice"] == USUAL]
        if usual:
            field = solved(tuple(PRIORS.values())[column], rest)
            yield from _left(field, usual, column=column, given=UNMEASURED, draw=0)


def _left(
    field: Field, gone: Sequence[Pair], *, column: int, given: str, draw: int
) -> Iterator[Left]:
    for point, answer in gone:
        features = answer.features
        far = answer.error(point.value) - field.mean(features)
        z = far / field.sigma(features)
        yield Left(column, given, draw, features, math.expm1(-far), z, field.reach(features))


def fitted(rows: Sequence[Left]) -> tuple[Widths, ...]:
    """Of both times."""
    return tuple(_of_time([row for row in rows if row.column == column]) for column in (0, 1))


def _of_time(rows: Sequence[Left]) -> Widths:
    gone = [row for row in rows if row.given == UNMEASURED]
    near, apart = (
        _of_rows([row for row in rows if row.near == n and row.given != UNMEASURED], COVERED[n])
        for n in (True, False)
    )
    unmeasured = _of_rows(gone, COVERED[True]) if gone else apart
    return {spread: (near[spread], apart[spread], unmeasured[spread]) for spread in near}


def _of_rows(rows: Sequence[Left], covered: float) -> dict[str, Ends]:
    """A kind's are like those of all, the more the fewer sources have it, where its own are not
    wider: few show that errors are larger, but not that they are smaller. Engines, of which few
    sources have each, are not told apart: sources that had no say were covered less."""
    everything, by_kind = ends(rows, covered), {}
    for kind in KINDS:
        of = [row for row in rows if _kind(row) == kind]
        sources = len({row.features["source"] for row in of})
        part = sources / (sources + FEW)
        (_, own), (_, usual) = ends(of, covered), everything
        wide = float(f"{max(own, part * own + (1 - part) * usual):.4g}")
        by_kind[f"{USUAL}, {kind}"] = -wide, wide
    return by_kind


def _kind(row: Left) -> str:
    return AMD if of_amd(row.features) else str(row.features["kind"])


def ends(rows: Sequence[Left], covered: float) -> Ends:
    """As wide to either side: of so few sources, single points would decide the tails."""
    values = np.array([abs(row.z) for row in rows])
    weight = np.array([1 / (DRAWS if row.near else 1) for row in rows])
    wide = _quantile(values, weight, covered)
    return -wide, wide


def _quantile(values: np.ndarray, weight: np.ndarray, at: float) -> float:
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weight[order])
    return float(np.interp(at, (sums - weight[order] / 2) / sums[-1], values[order]))


def module(widths: Sequence[Widths]) -> Iterator[str]:
    yield "from gpuplan.accuracy.reckon import Ends"
    yield ""
    of_times = dict(zip(PRIORS, widths, strict=True))
    yield from table("WIDTHS: dict[str, dict[str, tuple[Ends, Ends, Ends]]]", of_times)


def main(paths: list[str]) -> None:
    serving = Serving([Path(path) for path in paths])
    widths = fitted([*lefts(serving), *of_generations(serving)])
    write("accuracy/data/widths.py", ABOUT, module(widths))


if __name__ == "__main__":
    main(sys.argv[1:])
