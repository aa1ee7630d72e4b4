"""Plans of virtual machines, placed and not written by hand, for tests of hypervisor files."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from gpuplan.placement.api import Placement
from gpuplan.plan.model import Fabric, HostResources, Plan, Workload
from gpuplan.units import GIB, TB
from tests.support.placement_samples import notebook, place_hgx, place_l40s, workload
from tests.support.samples import libvirt_plan, serving_plan

INFINIBAND = Fabric(kind="infiniband", bytes_per_s_per_gpu=50e9, resource=None)


def plan_of(placement: Placement) -> Plan:
    return serving_plan(
        name="rack",
        target="libvirt",
        workloads=placement.workloads,
        tenants=placement.tenants,
        node_pools=placement.node_pools,
        hosts=placement.hosts,
        virtual_machines=placement.virtual_machines,
        cost=placement.cost,
        components=(),
    )


def whole_hosts() -> Workload:
    """Two guests of eight GPUs with NICs and drives: a cell and a switch for everything."""
    resources = HostResources(
        cpu_cores=64, host_memory_bytes=900 * GIB, shared_memory_bytes=0, scratch_bytes=int(4 * TB)
    )
    return workload("big", gpus_per_node=8, nodes_per_replica=2, resources=resources)


def beside(gpus: int, memory_gib: int) -> HostResources:
    """Eight cores for each GPU, and so much memory."""
    return HostResources(
        cpu_cores=8 * gpus,
        host_memory_bytes=memory_gib * gpus * GIB,
        shared_memory_bytes=0,
        scratch_bytes=0,
    )


@cache
def plans() -> dict[str, Plan]:
    pair = workload("pair", gpus_per_node=2, replicas=2, resources=beside(2, 128))
    cards = {"gpu": "l40s", "node_pool": "l40s"}
    svc = workload("svc", gpus_per_node=2, resources=beside(2, 48), **cards)
    spread = workload("spread", gpus_per_node=3, resources=beside(3, 48), **cards)
    whole = plan_of(place_hgx(whole_hosts()))
    mig = notebook("mig", gpu="h100-sxm-80gb", node_pool="mig", partition="1g.10gb", replicas=5)
    return {
        "sample": libvirt_plan(),
        "passthrough": plan_of(place_hgx(workload(), pair)),
        "whole hosts": whole,
        "infiniband": replace(whole, fabric=INFINIBAND),
        "vgpu": plan_of(place_l40s(notebook(), svc)),
        "uneven": plan_of(place_l40s(spread)),
        "mig": plan_of(place_hgx(mig)),
    }
