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
        cpu_cores=64, memory_bytes=900 * GIB, shared_memory_bytes=0, scratch_bytes=int(4 * TB)
    )
    return workload("big", gpus_per_node=8, nodes_per_replica=2, resources=resources)


@cache
def plans() -> dict[str, Plan]:
    pair = workload("pair", gpus_per_node=2, replicas=2)
    svc = workload("svc", gpu="l40s", node_pool="l40s", gpus_per_node=2)
    spread = workload("spread", gpu="l40s", node_pool="l40s", gpus_per_node=3)
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
