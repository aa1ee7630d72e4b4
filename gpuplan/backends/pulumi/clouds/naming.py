"""Names of node groups, which each cloud lets be shorter than a stack's and a pool's together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from gpuplan.diagnostics import Diagnostic, error
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.cloud import Cloud, Group


def node_group_name(plan: Plan, group: Group) -> str:
    """With the stack's, for stacks may share a cluster."""
    return f"{plan.name}-{group.name}"


def name_problems(
    plan: Plan, cloud: Cloud, limit: int, name: Callable[[Plan, Group], str] = node_group_name
) -> Iterator[Diagnostic]:
    """Names of the cloud that are too long, and those that two groups would share."""
    names = [name(plan, group) for group in cloud.groups]
    for text, count in Counter(names).items():
        if len(text) > limit:
            yield long_name(plan, text, limit)
        if count > 1:
            yield same_name(plan, text, [g.name for g in cloud.groups if name(plan, g) == text])


def long_name(plan: Plan, name: str, limit: int, what: str = "node group") -> Diagnostic:
    return error(
        "GP018",
        f"stack {plan.name}: the {what} name '{name}' has {len(name)} characters, at most"
        f" {limit} are allowed",
        help="shorten the stack's name",
    )


def same_name(plan: Plan, name: str, groups: list[str]) -> Diagnostic:
    return error(
        "GP018",
        f"stack {plan.name}: {' and '.join(groups)} would both be the node group '{name}'",
        help="shorten the stack's name",
    )
