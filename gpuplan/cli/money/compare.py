"""`gpuplan compare`: the same work on clouds, on owned and on rented machines, over time."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.cli.common import (
    Progress,
    add_json,
    print_json,
    refused,
    report_problems,
    say,
    write_text,
)

if TYPE_CHECKING:
    from gpuplan.money.compare import Compared
    from gpuplan.source import Sources

EPILOG = """\
examples:
  gpuplan compare chat.yaml --targets eks,gke,aks
  gpuplan compare chat.yaml --targets gke,owned,hybrid --costs costs.yaml
  gpuplan compare chat.yaml --horizon 60mo --html compare.html

Targets are those of a manifest, `owned`, `rented` (servers by the month) and
`hybrid` (the base owned, the peak rented by the hour); these have the nodes of
the target that costs least. GKE in a region of its own: gke:europe-west4. The
fleet grows with the load (`growth` of the manifest), not on day one.
"""
MOST_MONTHS = 120


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("manifest", type=Path, help="a manifest file")
    parser.add_argument(
        "--targets",
        default="eks,gke,aks,owned,rented,hybrid",
        metavar="LIST",
        help="what is compared, apart by commas",
    )
    parser.add_argument(
        "--horizon", type=_months, default=36, metavar="36mo", help="months that are compared"
    )
    parser.add_argument("--costs", type=Path, metavar="FILE", help="what no price list knows")
    parser.add_argument("--html", default="", metavar="FILE", help="write one page with charts")
    add_json(parser)


def _months(text: str) -> int:
    """`36mo`, `3y` → 36. Raises `ArgumentTypeError`."""
    number, years = text.removesuffix("mo").removesuffix("y"), text.endswith("y")
    months = int(number) * (12 if years else 1) if number.isdecimal() and len(number) < 5 else 0
    if not 1 <= months <= MOST_MONTHS:
        raise refused(text, f"no horizon: write 1mo to {MOST_MONTHS}mo, or 3y")
    return months


def run(options: argparse.Namespace) -> int:
    from gpuplan.errors import Rejected
    from gpuplan.report.money import compare as report
    from gpuplan.source import Sources

    sources = Sources()
    try:
        compared = _compared(options, sources)
    except Rejected as rejected:
        return report_problems(rejected.diagnostics, sources, as_json=options.json)
    if options.html:
        from gpuplan.report.money.page import page

        problem = write_text(page(compared), options.html)
        if problem is not None:
            return report_problems([problem], as_json=options.json)
    if options.json:
        print_json(report.tree(compared))
    else:
        say(report.text(compared), end="")
    return 0


def _compared(options: argparse.Namespace, sources: Sources) -> Compared:
    """Raises `Rejected`."""
    from gpuplan.catalog.load import load_catalog
    from gpuplan.catalog.market import load_market
    from gpuplan.catalog.tariffs import load_tariffs
    from gpuplan.comparing import asked_of, planner_of
    from gpuplan.money.compare import compare
    from gpuplan.money.ways import Lists

    progress = Progress()
    loaded = asked_of(options.manifest, options.targets, sources)
    asked = loaded.asked(options.horizon, options.costs, sources)
    planner = planner_of(loaded.loaded, sources, load_catalog(), progress)
    try:
        return compare(asked, planner, Lists(load_market(), load_tariffs()), load_catalog())
    finally:
        progress.done()
