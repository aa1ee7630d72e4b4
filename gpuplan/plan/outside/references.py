"""References of a plan to what it does not hold: nothing that reads it could answer for those."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpuplan.diagnostics import AGAIN, Diagnostic, error

if TYPE_CHECKING:
    from gpuplan.plan.model import Plan


def missing(place: str, referrer: str, name: str) -> Diagnostic:
    return error(
        "GP952",
        f"{place}: {referrer} refers to '{name}', which the plan does not hold",
        help=AGAIN,
    )


def dangling(place: str, plan: Plan) -> Iterator[Diagnostic]:
    """One for each. `place` is where the plan stands, for people."""
    pools = {p.name for p in plan.node_pools}
    workloads = {w.name for w in plan.workloads}
    for workload in plan.workloads:
        if workload.node_pool not in pools:
            yield missing(place, f"workload '{workload.name}'", workload.node_pool)
    for machine in plan.virtual_machines:
        if machine.workload not in workloads:
            yield missing(place, f"virtual machine '{machine.name}'", machine.workload)
    for order in plan.orders:
        for ordered in order.machines:
            if ordered.pool not in pools:
                yield missing(place, f"the order of {order.name}", ordered.pool)
