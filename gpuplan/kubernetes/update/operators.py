"""Operators that a change gives to another Pulumi stack, in the words of every verb."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.diagnostics import Diagnostic, warning
from gpuplan.kubernetes.addons import charts
from gpuplan.plan.model import Plan
from gpuplan.source import Origin

OTHER = "PROJECT"  # that of the stack which has the operators, where no plan says its name


def moves(before: Plan, after: Plan) -> Iterator[Diagnostic]:
    """What `pulumi up` would uninstall, install a second time or leave to nobody, unless its state
    moves first; nothing where both plans leave the operators to the same stack."""
    names = [c.component.name for c in charts.charts(before)]
    owner, wanted = _owner(before), _owner(after)
    if not names or owner == wanted:
        return
    source, dest = (f"ORGANIZATION/{name or OTHER}/dev" for name in (owner, wanted))
    yield warning(
        "GP025",
        f"{' and '.join(names)} moves from {_named(owner)} to {_named(wanted)}:"
        f" {_follows(before, after)}",
        _origin(after),
        help=f"before `pulumi up`: {', '.join(_steps(after, source, dest))}{_rest(before, after)}",
    )


def _follows(before: Plan, after: Plan) -> str:
    """What becomes of them without a move."""
    early = "`pulumi up` before its state has moved"
    if before.operators is None:
        return f"{early} uninstalls it, and takes GPUs from all pods of the cluster"
    if after.operators == "elsewhere":
        return (
            f"it stays installed, but no program of {_owner(before)} is written any more, so that"
            " nothing updates it"
        )
    return f"{early} is refused, since it is installed"


def _steps(after: Plan, source: str, dest: str) -> Iterator[str]:
    """In the words of a shell: `source` and `dest` are Pulumi stacks, wherever the folder is."""
    if after.operators == "separate":
        yield "`pulumi -C operators stack init dev`"
    yield f"`pulumi state move --source {source} --dest {dest} {_urns(source)}`"
    if after.operators is not None:
        yield f"`pulumi config set operatorsStack {dest}`"


def _rest(before: Plan, after: Plan) -> str:
    """What `PROJECT` is, and the way where no Pulumi stack is to have them."""
    if before.operators == "elsewhere":
        return f"; {OTHER} is that of `operatorsStack`, whose manifest then says `elsewhere`"
    if after.operators != "elsewhere":
        return ""
    source = f"ORGANIZATION/{_owner(before)}/dev"
    urns = f'for urn in {_urns(source)}; do pulumi state delete --stack {source} "$urn"; done'
    return (
        f"; {OTHER} is one that gpuplan writes with the same charts. Where something else is to"
        f" have them: `{urns}`, which leaves them"
    )


def _urns(stack: str) -> str:
    return f"$(pulumi stack --show-urns --stack {stack} | grep -o 'urn:.*::addon-[a-z0-9-]*')"


def _owner(plan: Plan) -> str | None:
    """The Pulumi project that has them; None where it is none of the plan's."""
    return {None: plan.name, "separate": f"{plan.name}-operators"}.get(plan.operators)


def _named(owner: str | None) -> str:
    return f"Pulumi stack {owner}" if owner else "another stack"


def _origin(plan: Plan) -> Origin | None:
    at = plan.workloads[0].origin
    return Origin(at.document, ("platform", "operators")) if at else None
