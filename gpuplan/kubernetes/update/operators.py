"""Operators that a change gives to another Pulumi stack, in the words of every verb."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.diagnostics import Diagnostic, warning
from gpuplan.kubernetes.addons import charts
from gpuplan.plan.model import Plan
from gpuplan.source import Origin

LISTED = "$(pulumi stack --show-urns | grep -o 'urn:.*::addon-[a-z0-9-]*')"


def moves(before: Plan, after: Plan) -> Iterator[Diagnostic]:
    """What `pulumi up` would uninstall, or install a second time, unless its state moves first."""
    there, wanted = _owner(before), _owner(after)
    names = [c.component.name for c in charts.charts(before)]
    if there is None or there == wanted or not names or (before.operators and not wanted):
        return
    listed = " and ".join(names)
    to = wanted or "another stack"
    where = "-C operators " if before.operators else ""
    urns = LISTED.replace("pulumi ", f"pulumi {where}")
    move = (
        f"`pulumi state move --source ORGANIZATION/{there}/dev --dest ORGANIZATION/{wanted}/dev"
        f" {urns}`"
    )
    forget = f'`for urn in {urns}; do pulumi {where}state delete "$urn"; done`, which leaves them'
    begin = "" if before.operators or wanted is None else "`pulumi -C operators stack init dev`, "
    yield warning(
        "GP025",
        f"{listed} moves from Pulumi stack {there} to {to}: `pulumi up` before its state has moved"
        + (
            " is refused, since it is installed"
            if before.operators
            else " uninstalls it, and takes GPUs from all pods of the cluster"
        ),
        _origin(after),
        help=f"before `pulumi up`: {begin}{move if wanted else forget}",
    )


def _owner(plan: Plan) -> str | None:
    """The Pulumi project that has them; None where it is none of the plan's."""
    return {None: plan.name, "separate": f"{plan.name}-operators"}.get(plan.operators)


def _origin(plan: Plan) -> Origin | None:
    at = plan.workloads[0].origin
    return Origin(at.document, ("platform", "operators")) if at else None
