"""The program of a stack's node pools on GKE."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.pulumi.clouds import nodes
from gpuplan.backends.pulumi.clouds.naming import name_problems, node_group_name
from gpuplan.backends.pulumi.clouds.programs import cluster_stack
from gpuplan.backends.pulumi.clouds.statements import Section, call, section
from gpuplan.backends.pulumi.project import Setting
from gpuplan.backends.pulumi.view import Resource
from gpuplan.diagnostics import Diagnostic
from gpuplan.plan.model import Plan, by_name
from gpuplan.plan.outside.cloud import Cloud, Group
from gpuplan.render import python
from gpuplan.render.environments import render
from gpuplan.render.python import Commented, Expression, Name, identifiers
from gpuplan.units import GB, GIB

NAME_LIMIT = 40  # of a cluster and of a node pool (Kubernetes Engine API, NodePool.name)
IMAGES_BYTES = 150 * GIB  # of engines, on a boot disk; as much as several releases of one take
BOOT_GB = 100  # where images and scratch lie on the machine's own drives
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
WAITED = ("flex-start", "queued")
UNRESERVED = ("spot", *WAITED)
CLAIMED = "cloud.google.com/gke-networking-dra-driver"
QUEUED = "cloud.google.com/gke-queued"
PREFIX = "gcp.container.NodePool"


def settings(plan: Plan) -> Iterator[Setting]:
    yield cluster_stack(plan)
    yield Setting(
        name="driverVersion",
        kind="string",
        default="DEFAULT",
        description="The GPU driver of the nodes' release: DEFAULT or LATEST. A change of it"
        " replaces the pools",
    )


def program(plan: Plan, cloud: Cloud) -> str:
    named = zip(cloud.groups, identifiers(g.name for g in cloud.groups), strict=True)
    return render(
        "python",
        "pulumi/google/groups.py.j2",
        groups=[_section(plan, cloud, group, name) for group, name in named],
        reserved=any(g.reservation for g in cloud.groups),
        unreserved=any(g.capacity in UNRESERVED for g in cloud.groups),
        surges=any(g.capacity not in WAITED for g in cloud.groups),
        taint_key=nodes.TAINT_KEY,
        taint_value=nodes.TAINT_VALUE,
    )


def resources(cloud: Cloud) -> Iterator[Resource]:
    for group in cloud.groups:
        yield Resource(type="gcp:container/nodePool:NodePool", name=group.name)


def problems(plan: Plan, cloud: Cloud) -> Iterator[Diagnostic]:
    yield from name_problems(plan, cloud, NAME_LIMIT)


def labels(plan: Plan, group: Group) -> dict[str, str]:
    """What GKE sets by itself is not here, but what it wants somebody to set. With DRANET's, pods
    claim the node's network cards; queued nodes have a taint of GKE's and no label of it."""
    found = nodes.labels(plan, group)
    found |= {CLAIMED: "true"} if group.network_cards else {}
    return found | ({QUEUED: "true"} if group.capacity == "queued" else {})


def boot_gigabytes(plan: Plan, group: Group) -> int:
    """Of a node's boot disk, which also holds what drives of its own would."""
    if group.nvme_drives and group.nvme == "ephemeral":
        return BOOT_GB
    return int(-(-nodes.disk_bytes(plan, group, IMAGES_BYTES) // GB))


def _section(plan: Plan, cloud: Cloud, group: Group, name: str) -> Section:
    lead = f"{name}_pool = "
    return section(group, [python.expression(_pool(plan, cloud, group), lead=lead)])


def _pool(plan: Plan, cloud: Cloud, group: Group) -> Expression:
    waited = group.capacity in WAITED
    scaled = waited or cloud.scaling == "autoscaler"
    profile = "auto" if group.network_cards else None
    return call(
        PREFIX,
        group.name,
        name=node_group_name(plan, group),
        cluster=Name("cluster_name"),
        location=Name("location"),
        node_locations=list(group.zones),
        autoscaling=_scaling(group) if scaled else None,
        node_count=None if scaled else group.count // len(group.zones),
        initial_node_count=0 if scaled else None,
        management=call(
            f"{PREFIX}ManagementArgs",
            auto_repair=Commented("a machine that is waited for is not made again", False)  # noqa: FBT003
            if waited
            else True,
            auto_upgrade=True,
        ),
        upgrade_settings=None if waited else Name("upgrades"),
        network_config=call(
            f"{PREFIX}NetworkConfigArgs",
            enable_private_nodes=True,
            accelerator_network_profile=profile
            and Commented("GKE makes the networks of the cards, which pods claim", profile),
        ),
        placement_policy=_placement(group),
        queued_provisioning=call(f"{PREFIX}QueuedProvisioningArgs", enabled=True)
        if group.capacity == "queued"
        else None,
        node_config=_config(plan, group),
        opts=call("pulumi.ResourceOptions", ignore_changes=["nodeCount", "initialNodeCount"])
        if scaled
        else None,
    )


def _scaling(group: Group) -> Expression:
    return call(
        f"{PREFIX}AutoscalingArgs",
        total_min_node_count=0,
        total_max_node_count=group.count,
        location_policy="ANY",
    )


def _placement(group: Group) -> Expression:
    """Machines that were reserved stand as they were reserved."""
    held = group.reservation
    if held is not None:
        named = held.placement_group
        return named and call(f"{PREFIX}PlacementPolicyArgs", type="COMPACT", policy_name=named)
    return call(f"{PREFIX}PlacementPolicyArgs", type="COMPACT") if group.together else None


def _config(plan: Plan, group: Group) -> Expression:
    waited = group.capacity in WAITED
    return call(
        f"{PREFIX}NodeConfigArgs",
        machine_type=group.node_type,
        image_type="COS_CONTAINERD",
        disk_size_gb=boot_gigabytes(plan, group),
        guest_accelerators=[_accelerator(plan, group)],
        spot=group.capacity == "spot" or None,
        flex_start=group.capacity == "flex-start" or None,
        max_run_duration=f"{group.run_seconds}s" if waited and group.run_seconds else None,
        reservation_affinity=_affinity(group),
        gvnic=call(f"{PREFIX}NodeConfigGvnicArgs", enabled=True),
        service_account=Name("nodes"),
        oauth_scopes=[SCOPE],
        labels=dict(labels(plan, group)),
        taints=[Name("gpu")],
        kubelet_config=Name("kubelet"),
        shielded_instance_config=Name("shielded"),
        workload_metadata_config=Name("metadata"),
        **_drives(group),
    )


def _accelerator(plan: Plan, group: Group) -> Expression:
    pool = by_name(plan.node_pools, group.pool)
    return call(
        f"{PREFIX}NodeConfigGuestAcceleratorArgs",
        type=group.accelerator,
        count=pool.gpus_per_node,
        gpu_partition_size=group.partition,
        gpu_driver_installation_config=Name("driver"),
    )


def _affinity(group: Group) -> Expression:
    if group.reservation is not None:
        return call("reservation", group.reservation.identifier)
    return Name("no_reservation") if group.capacity in UNRESERVED else None


def _drives(group: Group) -> dict[str, Expression]:
    """Either or: a machine's drives are all used in one way."""
    if not group.nvme_drives:
        return {}
    if group.nvme == "block":
        function = f"{PREFIX}NodeConfigLocalNvmeSsdBlockConfigArgs"
        return {"local_nvme_ssd_block_config": call(function, local_ssd_count=group.nvme_drives)}
    function = f"{PREFIX}NodeConfigEphemeralStorageLocalSsdConfigArgs"
    drives = call(function, local_ssd_count=group.nvme_drives)
    return {
        "ephemeral_storage_local_ssd_config": Commented(
            "its own drives as one: images, and the scratch space of pods", drives
        )
    }
