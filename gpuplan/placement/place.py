"""Workloads on hardware: node pools everywhere, virtual machines where the target has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from gpuplan.diagnostics import Diagnostic
from gpuplan.placement.api import Placement
from gpuplan.placement.cost import cost
from gpuplan.placement.pools.domains import crowded
from gpuplan.placement.pools.pools import Pools, place_pools
from gpuplan.placement.problems import no_inventory, no_virtual_machines
from gpuplan.placement.tenants import tenants
from gpuplan.placement.topology import topology
from gpuplan.plan.model import NodePool, VirtualMachine, Workload
from gpuplan.sizing.hardware.offers import GpuOffer
from gpuplan.source import Origin
from gpuplan.targets import TARGETS

if TYPE_CHECKING:
    from gpuplan.inventory.v1 import Inventory


def place(
    name: str,
    target: str,
    workloads: Sequence[Workload],
    offers: Sequence[GpuOffer],
    inventory: Inventory | None = None,
    *,
    document: str = "inventory.yaml",
    budget: Decimal | None = None,
    price_source: str = "",
    price_date: str = "",
    former: Sequence[VirtualMachine] = (),
    pools_there: Sequence[NodePool] = (),
    fabric_bytes_per_s: float | None = None,
) -> Placement:
    """The `workloads` of stack `name` on `offers`. `document` is what messages call the inventory,
    `former` are the virtual machines that the stack has already, `pools_there` its node pools;
    `fabric_bytes_per_s`: what each GPU has of the platform's fabric, where there is one.
    What does not fit or is not known is a diagnostic; the records then go as far as it went."""
    problems: list[Diagnostic] = []
    if inventory is not None:
        from gpuplan.placement.contradictions import contradictions

        problems += contradictions(inventory, document)
    pools, virtual = Pools(), None
    if TARGETS[target].needs_inventory and inventory is None:
        origin = workloads[0].origin if workloads else None
        at = origin and Origin(origin.document, ("platform", "target"))
        problems.append(no_inventory(target, at))
    elif not TARGETS[target].guests_on_hosts:
        problems += _isolation(workloads, target)
        pools = place_pools(workloads, offers, pools_there, one_by_one=TARGETS[target].binds_pods)
        problems += crowded(pools.workloads, pools.node_pools, inventory)
        if inventory is not None and not TARGETS[target].lists_machines:
            boards = {o.gpu.identifier for o in offers if not o.gpu.is_card}
            problems += topology(
                pools.workloads, pools.node_pools, inventory, document, boards=boards
            )
    elif inventory is not None and not problems:
        from gpuplan.placement.machines.virtual import place_virtual

        virtual = place_virtual(
            name,
            workloads,
            offers,
            inventory,
            document,
            former=former,
            fabric_bytes_per_s=fabric_bytes_per_s,
        )
        pools = virtual.pools
        problems += virtual.diagnostics
    placed = pools.workloads or tuple(workloads)
    return Placement(
        workloads=placed,
        node_pools=pools.node_pools,
        hosts=virtual.machines.hosts if virtual else (),
        virtual_machines=virtual.machines.virtual_machines if virtual else (),
        tenants=tenants(placed, pools.node_pools),
        cost=cost(
            pools.node_pools,
            placed,
            pools.stages,
            budget=budget,
            price_source=price_source,
            price_date=price_date,
        ),
        evidence=(*pools.evidence, *(virtual.machines.evidence if virtual else ())),
        shortfalls=(*pools.shortfalls, *(virtual.machines.shortfalls if virtual else ())),
        diagnostics=(*problems, *pools.diagnostics),
    )


def _isolation(workloads: Sequence[Workload], target: str) -> Iterator[Diagnostic]:
    for workload in workloads:
        if workload.isolation == "vm" and not TARGETS[target].virtual_machines:
            yield no_virtual_machines(workload.name, target, workload.origin)
