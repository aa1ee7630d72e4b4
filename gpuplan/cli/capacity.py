"""`gpuplan capacity`: the inverse questions, from the machines to what they can serve."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.cli.common import Progress, add_json, print_json, refused, report_problems, say

if TYPE_CHECKING:
    from gpuplan.diagnostics import Diagnostic

EPILOG = """\
examples:
  gpuplan capacity chat.yaml                           requests/s of each
  gpuplan capacity chat.yaml --inventory rack-7.yaml   the same on that rack
  gpuplan capacity chat.yaml --nodes 4                 on four nodes of each
  gpuplan capacity chat.yaml --split                   prefill and decode apart
  gpuplan capacity chat.yaml --models                  bundled models that fit
  gpuplan capacity chat.yaml --frontier                latency against cost
  gpuplan capacity pretrain.yaml --nodes 128           when a run ends
  gpuplan capacity pretrain.yaml --budget '$2,000,000' how far it goes

Every workload is asked alone, at its lengths and objectives, with the
confidence that it wants. GPUs are what is counted; `gpuplan compile` also
places host memory, cores and network cards.
"""
MOST_NODES = 100_000
KINDS = {
    "models": "which bundled models serve the load, the largest first",
    "split": "also with pools of their own for prefill and decode",
    "frontier": "the layouts that none beats in speed and cost together",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("manifest", type=Path, help="a manifest file")
    parser.add_argument("workload", nargs="?", help="ask this workload only")
    parser.add_argument("--inventory", type=Path, help="the machines, instead of the platform's")
    parser.add_argument(
        "--nodes", type=_count, help="nodes of each type that is bought, not there (1)"
    )
    parser.add_argument("--budget", type=_usd, help="what a training run may cost")
    kinds = parser.add_mutually_exclusive_group()
    for kind, meaning in KINDS.items():
        kinds.add_argument(
            f"--{kind}", dest="kind", action="store_const", const=kind, help=meaning, default="rate"
        )
    add_json(parser)


def _count(text: str) -> int:
    if not text.isdecimal() or len(text) > 9 or not 1 <= int(text) <= MOST_NODES:
        raise refused(text, f"no number from 1 to {MOST_NODES:,}")
    return int(text)


def _usd(text: str) -> float:
    digits = text.removeprefix("$").replace(",", "")
    if not re.fullmatch(r"\d{1,15}(\.\d{1,2})?", digits) or not float(digits):
        raise refused(text, "no amount of USD, such as $250,000")
    return float(digits)


def run(options: argparse.Namespace) -> int:
    from gpuplan.catalog.load import load_catalog
    from gpuplan.errors import Rejected
    from gpuplan.manifest.load import load_manifests
    from gpuplan.plan.capacity import Answer
    from gpuplan.report.machines import capacity as report
    from gpuplan.resolve.capacity import answers
    from gpuplan.resolve.run import resolve
    from gpuplan.resolve.variants import on_inventory

    catalog, reading, progress = load_catalog(), load_manifests([options.manifest]), Progress()
    problems, answered = list(reading.problems), list[Answer]()
    for loaded in reading.manifests:
        moved = on_inventory(loaded, options.inventory) if options.inventory else loaded
        try:
            resolved = resolve(moved, reading.sources, catalog)
        except Rejected as rejected:
            problems += rejected.diagnostics
            continue
        answered += answers(
            resolved,
            catalog,
            options.kind,
            nodes=options.nodes,
            only=options.workload,
            budget=options.budget,
            progress=progress,
        )
    progress.done()
    if not problems and not answered:
        problems = [_nothing(options)]
    if problems:
        return report_problems(problems, reading.sources, as_json=options.json)
    if options.json:
        print_json({"workloads": [report.tree(a) for a in answered]})
    else:
        say("\n".join(report.text(a) for a in answered), end="")
    return 0


def _nothing(options: argparse.Namespace) -> Diagnostic:
    from gpuplan.diagnostics import error

    served = "or trains a language model" if options.kind == "frontier" else "a model"
    name = f" '{options.workload}'" if options.workload else ""
    message = f"{options.manifest} has no workload{name} that serves {served}"
    return error("GP006", message, help="tasks inference, batch, training and finetuning have one")
