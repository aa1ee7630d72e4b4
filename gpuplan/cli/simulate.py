"""`gpuplan simulate`: a stack on a real control plane, with the plan's nodes on paper."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.cli.common import Progress, add_json, print_json, report_problems, say

if TYPE_CHECKING:
    from gpuplan.diagnostics import Diagnostic
    from gpuplan.plan.model import Plan
    from gpuplan.simulate.kube import Object
    from gpuplan.simulate.run import Outcome

EPILOG = """\
examples:
  gpuplan simulate stacks/chat
  gpuplan simulate stacks/chat --without gpu-03     is one node spare?
  gpuplan simulate stacks/chat --programs ~/kubernetes/bin

It starts etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok
on loopback, makes the plan's nodes with what they offer, applies what the
stack's program registers, custom.py included, and prints where the scheduler
binds each pod. No container runs, and no chart is installed: what an operator
gives to nodes is taken from the plan. The programs are those on PATH or in
--programs: releases of Kubernetes, etcd and kwok have them.

exit codes: 0 every pod is bound; 1 some are pending; 2 programs are missing, or
the input is wrong.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stack", type=Path, help="a generated stack for Kubernetes")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="NODE",
        help="leave a node out; may be given several times",
    )
    parser.add_argument("--programs", type=Path, metavar="DIR", help="where the programs are")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    from gpuplan.errors import Rejected
    from gpuplan.plan.read import read_plan
    from gpuplan.simulate.kube import Refused
    from gpuplan.simulate.plane import FULL, NotStarted, programs
    from gpuplan.simulate.run import simulate

    progress = Progress()
    try:
        plan = read_plan(options.stack)
        paths = programs(FULL, options.programs)
        if problems := [*_problems(plan, options), *_absent(paths)]:
            return report_problems(problems, as_json=options.json)
        progress(f"running {options.stack}")
        objects = _objects(plan, options.stack)
        outcome = simulate(plan, objects, paths, options.without, progress)
    except Rejected as rejected:
        progress.done()
        return report_problems(rejected.diagnostics, as_json=options.json)
    except (NotStarted, Refused) as problem:
        progress.done()
        return report_problems([refused(str(problem))], as_json=options.json)
    progress.done()
    return _print(outcome, as_json=options.json)


def _problems(plan: Plan, options: argparse.Namespace) -> Iterator[Diagnostic]:
    from gpuplan.diagnostics import did_you_mean, error
    from gpuplan.simulate.run import node_names
    from gpuplan.targets import TARGETS

    if not TARGETS[plan.target].installs_components:  # which is to say: it is a cluster's
        message = f"{options.stack} is for target {plan.target}: only Kubernetes has a scheduler"
        yield error("GP007", message, help="name a stack for a cluster")
        return
    names = node_names(plan)
    for name in options.without:
        if name not in names:
            near = did_you_mean(name, names) or f"its nodes are {', '.join(names)}"
            yield error("GP006", f"the plan has no node '{name}'", help=near)


def _absent(programs: dict[str, Path | None]) -> Iterator[Diagnostic]:
    from gpuplan.diagnostics import error

    if missing := [name for name, path in programs.items() if path is None]:
        yield error(
            "GP009",
            f"these programs are not there: {', '.join(missing)}",
            help="put them on PATH, or name their folder with --programs; they are in the "
            "releases of Kubernetes, etcd and kwok",
        )


def refused(reason: str) -> Diagnostic:
    from gpuplan.diagnostics import error

    return error(
        "GP039",
        f"the control plane did not take the stack: {reason}",
        help="`gpuplan compile` the manifest again; if it stays, look at custom.py",
    )


def _objects(plan: Plan, stack: Path) -> list[Object]:
    """What the program registers, with batches let go, in the order of its dependencies."""
    from gpuplan.kubernetes.batches import hold_setting
    from gpuplan.preview.objects import kubernetes_objects
    from gpuplan.preview.running.run import preview
    from gpuplan.simulate.kube import OWNER, Object

    config = {hold_setting(w): "false" for w in plan.workloads if w.task == "batch"}
    return [
        Object(dict(o.manifest), o.urn.rpartition("::")[2] if o.patch else OWNER)
        for o in kubernetes_objects(preview(stack, config=config))
        if not o.has_unknown
    ]


def _print(outcome: Outcome, *, as_json: bool) -> int:
    from gpuplan.plan.serialize import to_json
    from gpuplan.units import plural

    code = int(bool(outcome.pending or outcome.missing))
    if as_json:
        print_json(to_json(outcome))
        return code
    for workload in dict.fromkeys(p.workload for p in outcome.pods):
        pods = [p for p in outcome.pods if p.workload == workload]
        bound = Counter(p.node for p in pods if p.node)
        where = ", ".join(f"{count} on {node}" for node, count in sorted(bound.items()))
        bound_of = f"{sum(bound.values())} of {plural(len(pods), 'pod')}"
        say(f"{workload}: {bound_of} bound{': ' if where else ''}{where}")
        for reason, count in Counter(p.reason for p in pods if not p.node).items():
            say(f"  {count} pending: {reason or 'the scheduler has not said why'}")
    if outcome.missing:
        say(f"{plural(outcome.missing, 'pod')} of {outcome.expected} were never made")
    if outcome.skipped:
        say(f"left out, because a bare API server has none: {', '.join(outcome.skipped)}")
    verdict = "every pod is bound" if not code else "not every pod is bound"
    say(f"{verdict}, on {plural(len(outcome.nodes), 'node')}")
    return code
