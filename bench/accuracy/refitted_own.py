"""What a few own measurements are worth at a site that neither the constants nor the anchors have
seen.

    python -m bench.accuracy.refitted_own INFERENCE_CSV... > docs/accuracy/refitted_own.md

As bench/accuracy/widths.py leaves a source out and gives some of its own points. What is left of an
error then is the formulas', what went is the site's. Prints a table, and one of how many lie inside
intervals whose widths have not seen the source either. Needs numpy and scipy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.accuracy.refitted import KINDS, Serving, cell
from bench.accuracy.widths import COLUMNS, Left, fitted, lefts


def main(paths: list[str]) -> None:
    everything = list(lefts(Serving([Path(path) for path in paths])))
    sources = sorted({str(left.features["source"]) for left in everything})
    unseen = {
        s: fitted([left for left in everything if left.features["source"] != s]) for s in sources
    }

    def shipped(left: Left) -> bool:
        return left.inside(left.reach.ends(left.features))

    def strange(left: Left) -> bool:
        widths = unseen[str(left.features["source"])][left.column]
        ends = widths.get(str(left.features["spread"]))  # of tuned settings others decide
        return left.inside(ends[not left.near]) if ends else shipped(left)

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
