"""`pools.py` of a program: what the stack sets on nodes that are the cluster's."""

from __future__ import annotations

from gpuplan.backends.pulumi.typed import value
from gpuplan.kubernetes import nodes
from gpuplan.plan.model import NodePool, Plan, record
from gpuplan.render import python
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.python import identifiers
from gpuplan.render.tree import File

ARGUMENT_INDENT = 12


@record
class Section:
    """One pool: a list of its nodes, and what a loop over them sets."""

    heading: Verbatim
    variable: Verbatim
    nodes: Verbatim
    labels: Verbatim
    taints: Verbatim


def named(plan: Plan) -> tuple[NodePool, ...]:
    """The pools whose nodes are known by name."""
    return tuple(p for p in plan.node_pools if p.node_names)


def variables(named: tuple[NodePool, ...]) -> list[str]:
    return [f"{name}_nodes" for name in identifiers(p.name for p in named)]


def file(plan: Plan) -> File:
    pools = named(plan)
    sections = list(map(_section, pools, variables(pools)))
    return File("pools.py", render("python", "pulumi/pools.py.j2", pools=sections))


def _section(pool: NodePool, variable: str) -> Section:
    names = python.expression(list(pool.node_names), lead=f"{variable} = ")
    spec = value({"taints": [nodes.TAINT]}, "core.v1.NodeSpecPatchArgs", {})
    return Section(
        heading=Verbatim(python.comment(f"{pool.name}: {pool.gpus_per_node} × {pool.gpu} a node")),
        variable=Verbatim(variable),
        nodes=Verbatim(names),
        labels=_argument("labels", nodes.node_labels(pool)),
        taints=_argument("spec", spec),
    )


def _argument(name: str, given: python.Expression) -> Verbatim:
    text = python.expression(given, indent=ARGUMENT_INDENT, lead=f"{name}=", trail=",")
    return Verbatim(text)
