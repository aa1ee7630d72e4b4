"""`pools.py` of a program: what the stack sets on nodes that are the cluster's."""

from __future__ import annotations

from gpuplan.backends.pulumi.typed import value
from gpuplan.kubernetes import nodes
from gpuplan.plan.model import NodePool, Plan, record
from gpuplan.plan.partitions import MIG_CONFIG_LABEL
from gpuplan.render import python
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.python import Name, identifiers
from gpuplan.render.tree import File

ARGUMENT_INDENT = 12


@record
class PoolSection:
    """One pool: its nodes, with their MIG layouts where these differ, and what a loop over them
    sets."""

    heading: Verbatim
    variable: Verbatim
    nodes: Verbatim
    loop: Verbatim
    labels: Verbatim
    taints: Verbatim


def named(plan: Plan) -> tuple[NodePool, ...]:
    """The pools whose nodes are known by name."""
    return tuple(p for p in plan.node_pools if p.node_names)


def variables(named: tuple[NodePool, ...]) -> list[str]:
    return [f"{name}_nodes" for name in identifiers(p.name for p in named)]


def file(plan: Plan) -> File:
    pools = named(plan)
    sections = [_section(plan, p, v) for p, v in zip(pools, variables(pools), strict=True)]
    return File("pools.py", render("python", "pulumi/pools.py.j2", pools=sections))


def _section(plan: Plan, pool: NodePool, variable: str) -> PoolSection:
    of_each = {name: nodes.node_labels(plan, pool, name) for name in pool.node_names}
    layouts = {name: labels.get(MIG_CONFIG_LABEL) for name, labels in of_each.items()}
    labels: dict[str, python.Expression] = dict(next(iter(of_each.values())))
    listed: python.Expression = list(pool.node_names)
    loop = f"node in {variable}"
    if len(set(layouts.values())) > 1:
        labels[MIG_CONFIG_LABEL], listed = Name("layout"), layouts
        loop = f"node, layout in {variable}.items()"
    spec = value({"taints": [nodes.taint(pool)]}, "core.v1.NodeSpecPatchArgs", {})
    return PoolSection(
        heading=Verbatim(python.comment(f"{pool.name}: {pool.gpus_per_node} × {pool.gpu} a node")),
        variable=Verbatim(variable),
        nodes=Verbatim(python.expression(listed, lead=f"{variable} = ")),
        loop=Verbatim(loop),
        labels=_argument("labels", labels),
        taints=_argument("spec", spec),
    )


def _argument(name: str, given: python.Expression) -> Verbatim:
    text = python.expression(given, indent=ARGUMENT_INDENT, lead=f"{name}=", trail=",")
    return Verbatim(text)
