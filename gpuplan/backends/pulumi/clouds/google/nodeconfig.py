"""What GKE makes a node of: machine, GPUs, driver, drives, labels, and what the kubelet does."""

from __future__ import annotations

from gpuplan.backends.pulumi.clouds import nodes
from gpuplan.backends.pulumi.clouds.statements import call
from gpuplan.plan.model import Plan, by_name
from gpuplan.plan.outside.cloud import WAITED, Group
from gpuplan.render.python import Commented, Expression, Name
from gpuplan.units import GB, GIB

IMAGES_BYTES = 150 * GIB  # of engines, on a boot disk; as much as several releases of one take
BOOT_GB = 100  # where images and scratch lie on the machine's own drives
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
UNRESERVED = ("spot", *WAITED)
CLAIMED = "cloud.google.com/gke-networking-dra-driver"
QUEUED = "cloud.google.com/gke-queued"
PREFIX = "gcp.container.NodePool"


def labels(plan: Plan, group: Group) -> dict[str, str]:
    """What GKE sets by itself is not here, but what it wants somebody to set. With DRANET's, pods
    claim the node's network cards; queued nodes have a taint of GKE's and no label of it."""
    node_labels = nodes.labels(plan, group)
    node_labels |= {CLAIMED: "true"} if group.network_cards else {}
    return node_labels | ({QUEUED: "true"} if group.capacity == "queued" else {})


def boot_gigabytes(plan: Plan, group: Group) -> int:
    """Of a node's boot disk, which also holds what drives of its own would."""
    if group.nvme_drives and group.nvme == "ephemeral":
        return BOOT_GB
    return int(-(-nodes.disk_bytes(plan, group, IMAGES_BYTES) // GB))


def node_config(plan: Plan, group: Group) -> Expression:
    waited = group.capacity in WAITED
    return call(
        f"{PREFIX}NodeConfigArgs",
        machine_type=group.node_type,
        image_type="COS_CONTAINERD",
        disk_size_gb=boot_gigabytes(plan, group),
        guest_accelerators=[_accelerator(plan, group)],
        spot=group.capacity == "spot" or None,
        flex_start=waited or None,
        max_run_duration=f"{group.run_seconds}s" if group.run_seconds else None,
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
