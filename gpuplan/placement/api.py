"""What placement takes and gives."""

from __future__ import annotations

from decimal import Decimal
from typing import Protocol

from gpuplan.catalog.model import Gpu
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
from gpuplan.source import Origin


class Offer(Protocol):
    """One kind of node that may be used. Cores are physical. `node_count` None is "as many as
    needed"; None elsewhere is unknown."""

    @property
    def gpu(self) -> Gpu: ...
    @property
    def node_type(self) -> str | None: ...
    @property
    def gpus_per_node(self) -> int: ...
    @property
    def node_count(self) -> int | None: ...
    @property
    def cpu_cores_per_node(self) -> int | None: ...
    @property
    def memory_bytes_per_node(self) -> int | None: ...
    @property
    def numa_nodes(self) -> int | None: ...
    @property
    def usd_per_gpu_hour(self) -> Decimal | None: ...
    @property
    def origin(self) -> Origin | None: ...


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
