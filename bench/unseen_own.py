"""What a few own measurements are worth at a site that neither the constants nor the anchors have
seen.

    PYTHONPATH=. python bench/unseen_own.py INFERENCE_CSV... > docs/accuracy/refitted_own.md

As bench/unseen.py leaves a source out, with constants fitted again; then some of its own points
are given, as `gpuplan accuracy CSV --calibrate` gives a user's, and the rest is predicted. Given
are the first by identifier, which is a hash: no choice of ours. What is left of an error then is
the formulas', what went is the site's. Prints a table. Needs numpy and scipy.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from unseen import KINDS, Answer, Serving, cell, left_out, scored, solved

from gpuplan.accuracy.fit.calibrate import Pair

Given = Callable[[Sequence[Pair]], list[Pair]]


def of_all(count: int) -> Given:
    """The first points of a source."""
    return lambda pairs: sorted(pairs, key=_identifier)[:count]


def of_each_cell(pairs: Sequence[Pair]) -> list[Pair]:
    """The first point of each model, GPU, engine and precision."""
    by_given: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_given[str(pair[1].features["cell"])].append(pair)
    return [min(of, key=_identifier) for of in by_given.values()]


def _identifier(pair: Pair) -> str:
    return pair[0].identifier


NOTE = """\
Where own points stand near, fewer than 90 % lie inside the interval: how far measurements lie
apart is learnt from all points, most of them of one harness, and these lie farther apart."""
COLUMNS: dict[str, Given] = {
    "none given": of_all(0),
    "1 of the site": of_all(1),
    "3 of the site": of_all(3),
    "1 of the same model, GPU, engine and precision": of_each_cell,
}


def answers(serving: Serving) -> dict[tuple[str, int], list[Answer]]:
    """By what was given, and of which of both times."""
    by_given: dict[tuple[str, int], list[Answer]] = defaultdict(list)
    for column, rest, own in left_out(serving, "source"):
        for name, choose in COLUMNS.items():
            given = choose(own)
            known = {pair[0].identifier for pair in given}
            field = solved(column, [*rest, *given])
            others = (pair for pair in own if pair[0].identifier not in known)
            by_given[name, column] += [scored(field, pair) for pair in others]
    return by_given


def main(paths: list[str]) -> None:
    by_given = answers(Serving([Path(path) for path in paths]))
    print("A source left out, its constants fitted again, and then some of its own points given:\n")
    print("| prediction | points | " + " | ".join(COLUMNS) + " |")
    print("|---|---|" + "---:|" * len(COLUMNS))
    for column, name in enumerate(("time per output token", "time to first token up to 3 s")):
        for kind, chosen in KINDS.items():
            rows = [[a[1:] for a in by_given[given, column] if chosen(a[0])] for given in COLUMNS]
            print(f"| {name} | {kind} | " + " | ".join(map(cell, rows)) + " |")
    print(f"\n{NOTE}")


if __name__ == "__main__":
    main(sys.argv[1:])
