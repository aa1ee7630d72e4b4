"""`gpuplan pack`: many workloads on one fleet, at least cost, with what is proven about it."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.cli.common import Progress, add_json, diagnostic_json, print_json, report_problems, say

if TYPE_CHECKING:
    from gpuplan.fleet.build import Built
    from gpuplan.fleet.problem import Problem, Result
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
takes a GPU type (the shapes that `compile` chooses among), or a host or node
type of the inventory; without both, what the manifests' `gpus` name is bought.

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
    from gpuplan.diagnostics import Severity, worst

    started, progress = time.perf_counter(), Progress()
    built, sources = _built(options, progress)
    if built.problem is None or worst(built.diagnostics) is Severity.ERROR:
        progress.done()
        return report_problems(built.diagnostics, sources, as_json=options.json)
    progress(f"packing {sum(r.count for r in built.problem.requests):,} items")
    built.problem, result = _pack(built.problem)
    progress.done()
    _print(options, built, result, sources, time.perf_counter() - started)
    return 1 if result.refused else 0


def _built(options: argparse.Namespace, progress: Progress) -> tuple[Built, Sources]:
    from gpuplan.catalog.load import load_catalog
    from gpuplan.fleet.build import Asked, build
    from gpuplan.fleet.requests.reading import read_wanted

    wanted = read_wanted(options.manifest)
    asked = Asked(
        inventory=options.inventory or wanted.inventory,
        buy=tuple(options.buy),
        keep=options.keep,
        move_cost=options.move_cost,
        growth=options.growth,
        spread=options.spread,
    )
    return build(wanted, asked, load_catalog(), progress), wanted.sources


def _pack(problem: Problem) -> tuple[Problem, Result]:
    from gpuplan.fleet.owned import own_first
    from gpuplan.fleet.solver import pack_ways

    settled, result = pack_ways(problem)
    return settled, own_first(settled, result)


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
