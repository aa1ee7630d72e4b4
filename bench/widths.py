"""Public served points → gpuplan/accuracy/data/widths.py: how wide 90 % intervals are at sites
whose settings nobody tuned, for kinds of models and GPUs.

    PYTHONPATH=. python bench/widths.py INFERENCE_CSV...

Of sources that neither the constants nor the anchors have seen, with none or some of their own
points given (bench/unseen_own.py). Needs numpy and scipy.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from fit import table, write
from unseen import Serving
from unseen_own import DRAWS, NOTHING, Ends, Left, Widths, lefts

from gpuplan.accuracy.metrics.serving_priors import PRIORS

ABOUT = """How wide intervals of served times are

Ends of 90 % intervals in standard deviations, for each `spread` of the features: where a point of
the same site is near, and where none is. Of whole sources that were left out.
"""
COVERED = 0.91  # a little more than is promised: of another ten sources they would be others
FEW = 3  # sources for which a kind's own ends count half
DRAWN = {NOTHING: 1}


def fitted(rows: Sequence[Left]) -> tuple[Widths, ...]:
    """Of both times."""
    return tuple(_of_time([row for row in rows if row.column == column]) for column in (0, 1))


def _of_time(rows: Sequence[Left]) -> Widths:
    untuned = [row for row in rows if str(row.features["spread"]).startswith("usual")]
    by_near = [[row for row in rows if row.near == near] for near in (True, False)]
    kinds = sorted({str(row.features["spread"]) for row in untuned})
    usual = [ends(of) for of in by_near]
    return {
        kind: (_of_kind(kind, by_near[0], usual[0]), _of_kind(kind, by_near[1], usual[1]))
        for kind in kinds
    }


def _of_kind(kind: str, rows: Sequence[Left], usual: Ends) -> Ends:
    of = [row for row in rows if row.features["spread"] == kind]
    if not of:
        return usual
    sources = len({row.features["source"] for row in of})
    part = sources / (sources + FEW)
    low, high = (part * own + (1 - part) * all_ for own, all_ in zip(ends(of), usual, strict=True))
    return float(f"{low:.4g}"), float(f"{high:.4g}")


def ends(rows: Sequence[Left]) -> Ends:
    """Half of each end is its own quantile, half that of both sides together: tails of so few
    sources are known to no more."""
    values = np.array([row.z for row in rows])
    weight = np.array([1 / (DRAWN.get(row.given, DRAWS)) for row in rows])
    tail = (1 - COVERED) / 2
    both = _quantile(np.abs(values), weight, COVERED)
    low, high = (_quantile(values, weight, at) for at in (tail, 1 - tail))
    return (low - both) / 2, (high + both) / 2


def _quantile(values: np.ndarray, weight: np.ndarray, at: float) -> float:
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weight[order])
    return float(np.interp(at, (sums - weight[order] / 2) / sums[-1], values[order]))


def module(widths: Sequence[Widths]) -> Iterator[str]:
    yield "Ends = tuple[float, float]"
    of_times = dict(zip(PRIORS, widths, strict=True))
    lines = table("WIDTHS", of_times)
    yield next(lines).replace("WIDTHS =", "WIDTHS: dict[str, dict[str, tuple[Ends, Ends]]] =")
    yield from lines


def main(paths: list[str]) -> None:
    widths = fitted(list(lefts(Serving([Path(path) for path in paths]))))
    write("accuracy/data/widths.py", ABOUT, module(widths))


if __name__ == "__main__":
    main(sys.argv[1:])
