"""What EKS lets a cluster be."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.catalog.market import Instance
from gpuplan.diagnostics import Diagnostic
from gpuplan.plan.model import NodePool
from gpuplan.resolve.clouds import aws_messages as messages
from gpuplan.resolve.clouds.provider import Asked, Form, Provider

RESERVATION = Form(pattern=r"cr-[0-9a-f]{8,17}", example="cr-0123456789abcdef0")
LARGEST_BLOCK = 64  # machines of a Capacity Block (EC2 user guide, Capacity Blocks for ML)


def _of_cluster(asked: Asked) -> Iterator[Diagnostic]:
    """More machines than a block has, and pools that Karpenter would not start."""
    for number, reserved in enumerate(asked.spec.reservations):
        here = asked.at.child("cluster", "reservations", number)
        for pool in asked.pools:
            held = reserved.kind == "block" and pool.node_type == reserved.node
            if held and pool.node_count > LARGEST_BLOCK:
                yield messages.large_block(pool, LARGEST_BLOCK, here)
    for pool in asked.pools:
        if pool.layouts and asked.spec.scaling == "karpenter":
            yield messages.cut_by_karpenter(pool)


def _of_pool(asked: Asked, pool: NodePool, machine: Instance) -> Iterator[Diagnostic]:
    if asked.together(pool, AWS):
        if machine.name not in asked.facts.interfaces:
            yield messages.no_efa(pool, machine.name)
        for workload in asked.spanning(pool):
            yield messages.image_without_plugin(workload)
    if machine.name not in asked.facts.numa_nodes:
        yield messages.no_memory_manager(pool, machine.name)


AWS = Provider(
    name="aws",
    zone=Form(pattern=r"(?P<region>[a-z]{2}(-[a-z]+)+-[0-9])[a-z]", example="us-east-2a"),
    cluster_name=Form(pattern=r"[0-9A-Za-z][A-Za-z0-9_-]{0,99}", example="shared"),
    least_zones=2,
    show_zones="aws ec2 describe-instance-type-offerings --location-type availability-zone"
    " --region {region} --filters Name=instance-type,Values={commas}",
    show_releases="aws eks describe-cluster-versions",
    fabrics=("efa",),
    scaling=("fixed", "autoscaler", "karpenter"),
    reservations={"on-demand": RESERVATION, "block": RESERVATION},
    own_driver="the release of the image chooses the driver, by the setting releaseVersion of"
    " cloud/pools",
    family=r"[^.]+",
    quota_kinds={"spot": "spot", "block": None},
    cluster_problems=_of_cluster,
    pool_problems=_of_pool,
)
