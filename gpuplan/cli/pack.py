"""`gpuplan pack`: many workloads on one fleet, at least cost, with what is proven about it."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.cli.common import Progress, add_json, diagnostic_json, print_json, report_problems, say

if TYPE_CHECKING:
    from gpuplan.fleet.build import Asked, Built
    from gpuplan.fleet.problem import Result
    from gpuplan.source import Sources

EPILOG = """\
examples:
  gpuplan pack chat.yaml notebooks.yaml --inventory fleet.yaml    manifests
  gpuplan pack requests.yaml --inventory fleet.yaml               plain requests
  gpuplan pack requests.csv --inventory fleet.yaml --buy h200-sxm-141gb
  gpuplan pack requests.csv --inventory fleet.yaml --growth 10%   with room
  gpuplan pack requests.csv --inventory fleet.yaml --json > now.json
  gpuplan pack changed.csv --inventory fleet.yaml --keep now.json --move-cost 2

Workloads of a manifest may use the hosts of the fleet instead of those that its
platform names, of the GPU types that the platform allows. Without --inventory
the fleet is the inventory that all manifests name. `gpuplan schema
requests` describes plain requests; a CSV file has their fields as columns. Of
each NUMA node a host keeps two cores for itself, and of the memory a hypervisor
keeps a sixteenth, a cluster's node a tenth, or what the inventory says. --buy
takes a GPU type (the shapes that `compile` chooses among, of one provider and
region), or a host or node type of the inventory; without both, what the
manifests' `gpus` name is bought.

exit codes: 0 all placed, 1 some found no place, 2 the input is wrong
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "manifest", type=Path, nargs="+", help="manifests, or lists of requests (YAML, JSON, CSV)"
    )
    parser.add_argument("--inventory", type=Path, metavar="FLEET", help="the hosts there are")
    parser.add_argument(
        "--buy", action="append", default=[], metavar="TYPE", help="hosts without limit; repeatable"
    )
    parser.add_argument(
        "--keep", type=Path, metavar="RESULT", help="what stands now: an answer of --json"
    )
    parser.add_argument(
        "--move-cost",
        type=_usd,
        default=1_000_000,
        metavar="USD",
        help="what a move must save an hour, with --keep (1)",
    )
    parser.add_argument(
        "--growth", type=_part, default=0.0, metavar="PART", help="room for more of each, as 10%%"
    )
    parser.add_argument(
        "--spread", action="store_true", help="replicas of a workload on different hosts"
    )
    parser.add_argument("--all", action="store_true", help="each host and item, not folded")
    add_json(parser)


def _usd(text: str) -> int:
    """Micro-USD."""
    try:
        usd = float(text.removeprefix("$"))
    except ValueError:
        usd = -1.0
    if not 0 <= usd <= 1e9:
        raise argparse.ArgumentTypeError(f"'{text}' is not an amount of USD")
    return round(usd * 1_000_000)


def _part(text: str) -> float:
    try:
        part = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        part = -1.0
    if not 0 <= part <= 100:
        raise argparse.ArgumentTypeError(f"'{text}' is not a part: write 10% or 0.1")
    return part


def run(options: argparse.Namespace) -> int:
    from gpuplan.catalog.load import load_catalog
    from gpuplan.diagnostics import Severity, worst
    from gpuplan.fleet.build import build
    from gpuplan.fleet.places import pack_in_one_place
    from gpuplan.fleet.requests.reading import read_wanted

    started, progress = time.perf_counter(), Progress()
    wanted, catalog = read_wanted(options.manifest), load_catalog()
    asked = _asked(options, wanted.inventory)
    built = build(wanted, asked, catalog, progress)
    if built.problem is None or worst(built.diagnostics) is Severity.ERROR:
        progress.done()
        return report_problems(built.diagnostics, wanted.sources, as_json=options.json)
    progress(f"packing {sum(r.count for r in built.problem.requests):,} items")
    built, result = pack_in_one_place(built, wanted, asked, catalog)
    progress.done()
    _print(options, built, result, wanted.sources, time.perf_counter() - started)
    return 1 if result.refused else 0


def _asked(options: argparse.Namespace, inventory: Path | None) -> Asked:
    from gpuplan.fleet.build import Asked

    return Asked(
        inventory=options.inventory or inventory,
        buy=tuple(options.buy),
        keep=options.keep,
        move_cost=options.move_cost,
        growth=options.growth,
        spread=options.spread,
    )


def _print(
    options: argparse.Namespace, built: Built, result: Result, sources: Sources, seconds: float
) -> None:
    from gpuplan.report.machines import pack as report

    assert built.problem is not None
    notes = list(dict.fromkeys(built.diagnostics))
    if options.json:
        problems = [diagnostic_json(d, sources) for d in notes]
        print_json({**report.tree(built.problem, result), "problems": problems})
        return
    say(report.text(built.problem, result, all_hosts=options.all), end="")
    if sys.stdout.isatty():
        say(f"  {'seconds':<16}{seconds:.1f}")
    report_problems(notes, sources)
