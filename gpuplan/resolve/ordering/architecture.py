"""The processor of machines, and whether images are made for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpuplan.catalog.load import Catalog
from gpuplan.diagnostics import Diagnostic, warning
from gpuplan.plan.model import Component, NodePool, Plan, Workload
from gpuplan.plan.outside.order import Architecture
from gpuplan.source import Origin
from gpuplan.vendors import FIRST

if TYPE_CHECKING:
    from gpuplan.inventory.v1 import Inventory

ARM: Architecture = "arm64"


def architecture_of(gpu: str, catalog: Catalog) -> Architecture | None:
    """NVIDIA's superchips have Grace, an Arm CPU, beside the GPU; of other machines the GPU tells
    nothing."""
    known = catalog.gpu(gpu)
    return ARM if known and known.superchip and known.vendor == FIRST else None


def arm_notes(
    plan: Plan, inventory: Inventory | None, catalog: Catalog, at: Origin
) -> Iterator[Diagnostic]:
    """Where nodes have Arm CPUs: each image that no source says to be built for them, and the
    driver that an operator would install."""
    pools = {p.name: p for p in plan.node_pools if _arm(p, inventory, catalog)}
    for work in plan.workloads:
        if work.node_pool in pools and not _built(work, catalog):
            yield unknown_image(work, pools[work.node_pool])
    beside = [
        i
        for i in (plan.balancer, plan.router, *plan.monitors)
        if i and not _known(i.image, catalog)
    ]
    if pools and beside:
        yield unknown_beside([image.image for image in beside], at)
    operator = next((c for c in plan.components if c.driver), None)
    if pools and operator is not None and not (plan.cloud and plan.cloud.driver_on_nodes):
        yield unknown_driver(operator, list(pools), at)


def _arm(pool: NodePool, inventory: Inventory | None, catalog: Catalog) -> bool:
    hosts = [h for h in inventory.hosts if set(h.names) & set(pool.node_names)] if inventory else []
    stated = {host.cpu_vendor for host in hosts} - {None}
    return "arm" in stated if stated else architecture_of(pool.gpu, catalog) == ARM


def _built(work: Workload, catalog: Catalog) -> bool:
    pin = catalog.engine(work.engine.name)
    return pin is not None and pin.image == work.engine.image and ARM in pin.processors


def _known(image: str, catalog: Catalog) -> bool:
    pins = (catalog.image(name) for name in catalog.ids("images"))
    return any(pin and pin.image == image and ARM in pin.processors for pin in pins)


def unknown_image(work: Workload, pool: NodePool) -> Diagnostic:
    return warning(
        "GP015",
        f"no source states that {work.engine.image} is built for arm64, and the nodes of pool "
        f"{pool.name} have Arm CPUs: '{work.name}' may not start there",
        work.origin,
        help=f"see whether `docker manifest inspect {work.engine.image}` names arm64; else write "
        f"an `engine` with an `image` that is, or leave {pool.gpu} out of `platform.gpus`",
    )


def unknown_beside(images: list[str], at: Origin) -> Diagnostic:
    return warning(
        "GP015",
        f"no source states that {', '.join(images)} are built for arm64, and nodes of the plan "
        "have Arm CPUs",
        at,
        help="see whether `docker manifest inspect IMAGE` names arm64",
    )


def unknown_driver(operator: Component, pools: list[str], at: Origin) -> Diagnostic:
    return warning(
        "GP015",
        f"no source states that {operator.name} {operator.version} installs driver "
        f"{operator.driver} on Arm, and the nodes of {', '.join(pools)} have Arm CPUs",
        at,
        help="take nodes that come with the driver and `pulumi config set installGpuOperator "
        "false`, or try it on one node first",
    )
