"""Statements of a program for node pools: calls, and a section for each group of machines."""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.backends.pulumi.clouds.naming import where
from gpuplan.frozen import frozen
from gpuplan.plan.outside.cloud import Group
from gpuplan.render import python
from gpuplan.render.environments import Verbatim
from gpuplan.render.python import Call, Expression


@frozen
class GroupSection:
    heading: Verbatim
    statements: tuple[Verbatim, ...]


def call(function: str, *positional: Expression, **keywords: Expression) -> Call:
    """A call without the keywords that are None."""
    given = tuple((k, v) for k, v in keywords.items() if v is not None)
    return Call(function, positional, given)


def section(group: Group, statements: Sequence[str], least: str = "") -> GroupSection:
    """What makes a group, below a line that says what it is. `least` stands before its size."""
    many = f"{least}{group.count} × {group.node_type}"
    heading = f"{group.name}: {many}, {group.capacity}, {where(group)}"
    return GroupSection(
        heading=Verbatim(python.comment(heading)), statements=tuple(map(Verbatim, statements))
    )
