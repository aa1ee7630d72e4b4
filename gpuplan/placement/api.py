"""What placement gives."""

from __future__ import annotations

from gpuplan.diagnostics import Diagnostic
from gpuplan.plan.model import (
    Cost,
    Evidence,
    Host,
    NodePool,
    Shortfall,
    Tenant,
    VirtualMachine,
    Workload,
    record,
)


@record
class Placement:
    """`workloads` are the given ones with the pool each is on. `shortfalls` are the numbers behind
    the diagnostics that say what does not fit."""

    workloads: tuple[Workload, ...]
    node_pools: tuple[NodePool, ...]
    hosts: tuple[Host, ...]
    virtual_machines: tuple[VirtualMachine, ...]
    tenants: tuple[Tenant, ...]
    cost: Cost
    evidence: tuple[Evidence, ...]
    shortfalls: tuple[Shortfall, ...]
    diagnostics: tuple[Diagnostic, ...]
