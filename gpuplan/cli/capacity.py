"""`gpuplan capacity`: the inverse questions, from the machines to what they can serve."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.cli.common import Progress, add_json, print_json, report_problems

if TYPE_CHECKING:
    from gpuplan.catalog.load import Catalog
    from gpuplan.diagnostics import Diagnostic
    from gpuplan.report.machines.capacity import Answer, Fitting
    from gpuplan.resolve.run import Resolved
    from gpuplan.sizing.ask.demand import Demand
    from gpuplan.sizing.hardware.offers import Site
    from gpuplan.sizing.kinds.serving.frontier import Frontier

EPILOG = """\
examples:
  gpuplan capacity chat.yaml                             requests/s of each workload, alone
  gpuplan capacity chat.yaml --inventory rack-7.yaml     the same on all GPUs of that rack
  gpuplan capacity chat.yaml --nodes 4                   on four nodes of each type that may be had
  gpuplan capacity chat.yaml --split                     also with prefill and decode apart
  gpuplan capacity chat.yaml --models                    which bundled models fit in its place
  gpuplan capacity chat.yaml --frontier                  latency against cost, over all batches

Every workload is asked alone, at its lengths and objectives, with the confidence that it wants.
GPUs are what is counted; `gpuplan compile` also places host memory, cores and network cards.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("manifest", type=Path, help="a manifest file")
    parser.add_argument("workload", nargs="?", help="ask this workload only")
    parser.add_argument("--inventory", type=Path, help="the machines, instead of the platform's")
    parser.add_argument(
        "--nodes", type=_count, default=1, help="nodes of each type that is bought, not there (1)"
    )
    other = parser.add_mutually_exclusive_group()
    other.add_argument(
        "--models",
        action="store_true",
        help="which bundled models serve the load, the largest first",
    )
    other.add_argument(
        "--split", action="store_true", help="also with pools of their own for prefill and decode"
    )
    other.add_argument(
        "--frontier",
        action="store_true",
        help="the layouts and batches that none beats in time per output token and cost",
    )
    add_json(parser)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of nodes")
    return int(text)


def run(options: argparse.Namespace) -> int:
    from gpuplan.catalog.load import load_catalog
    from gpuplan.errors import Rejected
    from gpuplan.manifest.load import load_manifests
    from gpuplan.registry import targets
    from gpuplan.report.machines import capacity as report
    from gpuplan.resolve.run import resolve
    from gpuplan.resolve.variants import on_inventory

    catalog, reading = load_catalog(), load_manifests([options.manifest])
    problems, answers = list(reading.problems), []
    for loaded in reading.manifests:
        moved = on_inventory(loaded, options.inventory) if options.inventory else loaded
        try:
            resolved = resolve(moved, reading.sources, catalog, targets())
        except Rejected as rejected:
            problems += rejected.diagnostics
            continue
        answers += list(_answers(resolved, options, catalog))
    if not problems and not answers:
        problems = [_nothing(options)]
    if problems:
        return report_problems(problems, reading.sources, as_json=options.json)
    if options.json:
        print_json({"workloads": [report.tree(a) for a in answers]})
    else:
        print("\n".join(report.text(a) for a in answers), end="")
    return 0


def _answers(resolved: Resolved, options: argparse.Namespace, catalog: Catalog) -> Iterator[Answer]:
    from gpuplan.report.machines.capacity import Answer
    from gpuplan.sizing.decide.capacity import KINDS, TOKENS, capacities
    from gpuplan.sizing.hardware.sites import joined

    site, progress = joined(resolved.site), Progress()
    kinds = TOKENS if options.frontier else KINDS
    for number, demand in enumerate(resolved.demands):
        if demand.kind not in kinds or options.workload not in (None, demand.name):
            continue
        progress(f"asking {demand.name}")
        if options.models:
            answer = Answer(demand=demand, models=tuple(_models(resolved, number, catalog)))
        elif options.frontier:
            answer = Answer(demand=demand, frontier=_frontier(demand, site))
        else:
            splitting = options.split and demand.kind == "serving"
            found = capacities(demand, site, options.nodes, splitting=splitting)
            answer = Answer(demand=demand, capacities=found)
        progress.done()
        yield answer


def _frontier(demand: Demand, site: Site) -> Frontier:
    from gpuplan.sizing.kinds.serving.frontier import frontier

    return frontier(demand, site)


def _models(resolved: Resolved, number: int, catalog: Catalog) -> Iterator[Fitting]:
    """Every bundled model of the workload's kind, the largest first."""
    from gpuplan.errors import Rejected
    from gpuplan.models.load import bundled, bundled_names
    from gpuplan.report.machines.capacity import Fitting
    from gpuplan.resolve.variants import with_model
    from gpuplan.sizing.decide.capacity import choice
    from gpuplan.sizing.hardware.sites import joined

    own, site = resolved.demands[number].model, joined(resolved.site)
    found = (bundled(name) for name in bundled_names())
    models = [m for m in found if m is not None and type(m) is type(own)]
    for model in sorted(models, key=lambda m: (-m.parameters, m.identifier)):
        try:
            demand = with_model(resolved.loaded, number, model, catalog)
        except Rejected as rejected:
            yield Fitting(model=model, problems=rejected.diagnostics)
            continue
        winner, nearest = choice(demand, site)
        yield Fitting(model=model, demand=demand, winner=winner, nearest=nearest)


def _nothing(options: argparse.Namespace) -> Diagnostic:
    from gpuplan.diagnostics import error

    what = "a language model" if options.frontier else "a model"
    name = f" '{options.workload}'" if options.workload else ""
    message = f"{options.manifest} has no workload{name} that serves {what}"
    return error("GP006", message, help="tasks inference and batch have a capacity")
