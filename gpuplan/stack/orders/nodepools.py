"""Node pools as objects of Kubernetes, of a provider that makes its nodes of such.

Source: the node pool reference of the provider, and the fields that its Cluster Autoscaler reads
(`gpuplan/catalog/data/providers`).
"""

from __future__ import annotations

from typing import Any

from gpuplan.kubernetes import nodes
from gpuplan.kubernetes.naming import INSTANCE_TYPE_LABEL
from gpuplan.plan.model import Order, Plan
from gpuplan.render import yaml
from gpuplan.stack.orders.lines import Line


def node_pools(plan: Plan, order: Order, own: list[Line]) -> str:
    """One document for each pool; of a fixed size, with the labels that pods find them by. Nodes
    whose GPUs are cut need a label each, which no pool can give: there is none of them."""
    kept = [line for line in own if not line.pool.layouts and line.pool.node_type]
    return "".join(f"---\n{yaml.dumps(_object(plan, order, line))}" for line in kept)


def _object(plan: Plan, order: Order, line: Line) -> dict[str, Any]:
    pool = line.pool
    selector = nodes.selector(plan, pool)
    labels = {name: value for name, value in selector.items() if name != INSTANCE_TYPE_LABEL}
    return {
        "apiVersion": order.node_pools,
        "kind": "NodePool",
        "metadata": {"name": f"{plan.name}-{pool.name}"},
        "spec": {
            "instanceType": pool.node_type,
            "targetNodes": pool.node_count,
            "autoscaling": False,
            "nodeLabels": labels,
        },
    }
