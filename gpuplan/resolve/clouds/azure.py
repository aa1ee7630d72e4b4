"""What AKS lets a cluster be."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuplan.catalog.market import Instance
from gpuplan.diagnostics import Diagnostic
from gpuplan.plan.model import NodePool
from gpuplan.resolve.clouds import azure_messages as messages
from gpuplan.resolve.clouds.driver import driver_on_nodes
from gpuplan.resolve.clouds.groups import one_profile
from gpuplan.resolve.clouds.provider import Asked, Form, Provider

GROUP = (
    "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/gpus/providers/"
    "Microsoft.Compute/capacityReservationGroups/trainers"
)
RESERVATION = Form(
    pattern=r"/subscriptions/[0-9a-fA-F-]{36}/resourceGroups/[A-Za-z0-9._-]+/providers/"
    r"Microsoft\.Compute/capacityReservationGroups/[A-Za-z0-9._-]+",
    example=GROUP,
)
# Profiles that AKS cuts all GPUs of a pool by: the smallest memory of each size.
CUTS = r"[12347]g\.[0-9]+gb"


def _of_pool(asked: Asked, pool: NodePool, machine: Instance) -> Iterator[Diagnostic]:
    by_azure = driver_on_nodes(asked.platform, asked.pools)
    if machine.name in asked.facts.own_drivers:
        yield from _own_driver(asked, pool, machine, by_azure=by_azure)
    if asked.together(pool, AZURE):
        yield from _together(pool, machine, by_azure=by_azure)
    yield from _cut(asked, pool, by_azure=by_azure)
    yield messages.no_memory_manager(pool)
    if machine.nvme_drives or machine.nvme_bytes:
        yield messages.unused_drives(pool, machine)


def _own_driver(
    asked: Asked, pool: NodePool, machine: Instance, *, by_azure: bool
) -> Iterator[Diagnostic]:
    if not by_azure:
        yield messages.own_driver(pool, machine)
    elif asked.spec.driver is None:
        yield messages.driver_of_azure(pool, machine)


def _cut(asked: Asked, pool: NodePool, *, by_azure: bool) -> Iterator[Diagnostic]:
    if pool.layouts and asked.spec.scaling == "autoscaler":
        yield messages.cut_and_scaled(pool)
    for number, layout in enumerate(pool.layouts if by_azure else (), 1):
        profile = one_profile(asked, pool, layout)
        if profile is None or not re.fullmatch(CUTS, profile):
            yield messages.cut_in_several_ways(pool, number)


def _together(pool: NodePool, machine: Instance, *, by_azure: bool) -> Iterator[Diagnostic]:
    if machine.rdma is None or machine.rdma.kind != "infiniband":
        yield messages.no_infiniband(pool, machine)
    elif by_azure:
        yield messages.no_peer_memory(pool)
    yield messages.one_placement_group(pool)


AZURE = Provider(
    name="azure",
    zone=Form(pattern=r"[1-9]", example="'1'"),
    cluster_name=Form(pattern=r"[0-9A-Za-z]([0-9A-Za-z_-]{0,61}[0-9A-Za-z])?", example="shared"),
    least_zones=0,
    show_zones="az vm list-skus --zone --resource-type virtualMachines --location {region}"
    " --size {first}",
    show_releases="az aks get-versions",
    fabrics=("infiniband",),
    reservations={"on-demand": RESERVATION},
    drivers=("operator", "provider"),
    own_driver="the image of the nodes brings the driver, which AKS chooses; with"
    " platform.cluster.driver: operator GPU operator installs the one that is asked for",
    runtime_class="nvidia-container-runtime",
    taints={"spot": ("kubernetes.azure.com/scalesetpriority",)},
    cuts=True,
    family=r".+",
    quota_kinds={"spot": "spot"},
    pool_problems=_of_pool,
)
