"""`gpuplan cost`: a stack's money, from its plan and the price lists of the catalogue."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.cli.common import add_json, day, print_json, report_problems, say, today
from gpuplan.cli.lists.market import days

if TYPE_CHECKING:
    from gpuplan.money.bill import Bill
    from gpuplan.money.bought import Bought
    from gpuplan.source import Sources

OLDEST_DAYS = 180
EPILOG = """\
examples:
  gpuplan cost stacks/chat                      hour, month, request, tokens
  gpuplan cost stacks/chat --costs costs.yaml   with traffic, storage, owning
  gpuplan cost stacks/chat --max-age 90d --exit-code   fails on old prices

Three states: priced, unpriced (nobody knows), not offered (nobody sells it). A
total with an unpriced part reads "at least". docs/cost.md has the costs file.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stack", type=Path, help="a generated stack, or its plan.yaml")
    parser.add_argument("--costs", type=Path, metavar="FILE", help="what no price list knows")
    parser.add_argument(
        "--max-age",
        type=days,
        metavar="180d",
        default=float(OLDEST_DAYS),
        help="older prices are named",
    )
    parser.add_argument(
        "--as-of", type=day, metavar="2026-02-01", help="reckon ages from this date"
    )
    parser.add_argument("--exit-code", action="store_true", help="exit 1 when a price is too old")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    from gpuplan.errors import Rejected
    from gpuplan.report.money import bill as report
    from gpuplan.report.money.bought import text, tree
    from gpuplan.source import Sources

    sources = Sources()
    try:
        billed, bought = _bill(options, sources)
    except Rejected as rejected:
        return report_problems(rejected.diagnostics, sources, as_json=options.json)
    if options.json:
        print_json(report.tree(billed) | ({"bought": tree(bought)} if bought else {}))
    else:
        say(report.text(billed) + (f"\n{text(bought)}" if bought else ""), end="")
    return int(options.exit_code and bool(billed.old))


def _bill(options: argparse.Namespace, sources: Sources) -> tuple[Bill, Bought | None]:
    from gpuplan.catalog.load import load_catalog
    from gpuplan.catalog.market import load_market
    from gpuplan.catalog.tariffs import load_tariffs
    from gpuplan.money.bill import bill
    from gpuplan.money.bought import bought
    from gpuplan.money.extras import NOTHING
    from gpuplan.money.ways import Lists
    from gpuplan.plan.read import read_evidenced

    plan, said, owned = read_evidenced(options.stack), NOTHING, None
    if options.costs is not None:
        from gpuplan.money.document import extras, read_costs, values

        costs = read_costs(options.costs, sources, load_catalog().gpu_ids)
        said = extras(costs)
        if costs.owned is not None or costs.rented is not None:
            name = options.costs.name
            own = load_tariffs()
            owned = bought(plan, load_catalog(), own, lambda gpu: values(costs, name, gpu))
    billed = bill(
        plan,
        Lists(load_market(), load_tariffs()),
        said,
        as_of=options.as_of or today(),
        oldest_days=int(options.max_age),
    )
    return billed, owned
