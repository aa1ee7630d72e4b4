"""What a few own measurements are worth at a site that neither the constants nor the anchors have
seen.

    PYTHONPATH=. python bench/unseen_own.py INFERENCE_CSV... > docs/accuracy/refitted_own.md

As bench/unseen.py leaves a source out, with constants fitted again; then some of its own points
are given, as `gpuplan accuracy CSV --calibrate` gives a user's, and the rest is predicted. Given
are the first by identifier, which is a hash: no choice of ours. What is left of an error then is
the formulas', what went is the site's. Prints a table, and one of how many lie inside intervals
whose widths have not seen the source either. Needs numpy and scipy.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from unseen import KINDS, Serving, cell, left_out

from gpuplan.accuracy.fit.calibrate import Pair, solve
from gpuplan.accuracy.fit.explained import Explained
from gpuplan.accuracy.metrics.serving_priors import PRIORS
from gpuplan.sizing.calibration.anchors import Anchors, Features, Reach

DRAWS = 3  # of the points that are given
Ends = tuple[float, float]
Widths = Mapping[str, tuple[Ends, Ends]]  # by spread: near points of one's own, and without


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
        return self.given != NOTHING

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


NOTHING = "none given"
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
            for point, answer in (pair for pair in own if id(pair) not in given):
                said, features = field.mean(answer.features), answer.features
                far = answer.error(point.value) - said
                z, reach = far / field.sigma(features), field.reach(features)
                yield Left(column, name, draw, features, math.expm1(-far), z, reach)


def main(paths: list[str]) -> None:
    from widths import fitted  # it counts what is left here

    everything = list(lefts(Serving([Path(path) for path in paths])))
    sources = sorted({str(left.features["source"]) for left in everything})
    unseen = {s: fitted([left for left in everything if left.features["source"] != s]) for s in sources}

    def shipped(left: Left) -> bool:
        return left.inside(left.reach.ends(left.features))

    def strange(left: Left) -> bool:
        widths = unseen[str(left.features["source"])][left.column]
        return left.inside(widths[str(left.features["spread"])][not left.near])

    first = [left for left in everything if left.draw == 0]
    print("A source left out, its constants fitted again, and then some of its own points given:\n")
    _table(first, lambda of: cell([(left.error, shipped(left)) for left in of]))
    print(f"\n{NOTE}\n")
    _table(first, lambda of: f"{100 * sum(map(strange, of)) / len(of):.0f} of {len(of)}")


NOTE = """\
How wide intervals are was learnt from these same sources, each left out. Where a source had no say
in that either, so many of a hundred of its points lie inside:"""


def _table(rows: Sequence[Left], shown: Callable[[Sequence[Left]], str]) -> None:
    print("| prediction | points | " + " | ".join(COLUMNS) + " |")
    print("|---|---|" + "---:|" * len(COLUMNS))
    for column, name in enumerate(("time per output token", "time to first token up to 3 s")):
        for kind, chosen in KINDS.items():
            mine = [left for left in rows if left.column == column and chosen(left.features)]
            cells = [shown([left for left in mine if left.given == given]) for given in COLUMNS]
            print(f"| {name} | {kind} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
