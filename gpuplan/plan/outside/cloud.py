"""A cluster that a cloud manages, and the machines that it is made of."""

from __future__ import annotations

from typing import Literal

from gpuplan.frozen import record
from gpuplan.targets import TARGETS, making_machines_of

CapacityKind = Literal["on-demand", "spot", "reserved", "block", "flex-start", "queued"]
WAITED: tuple[CapacityKind, ...] = (
    "flex-start",
    "queued",
)  # machines that come when there are some
Scaling = Literal["fixed", "autoscaler", "karpenter"]


@record
class NodeImage:
    """A release of the image of nodes with GPUs, by its provider's name, and the GPU driver that is
    in it."""

    release: str
    driver: str
    source: str


@record
class Addons:
    """Versions of a cluster's add-ons that its provider had together, by the add-on."""

    versions: tuple[tuple[str, str], ...]
    source: str


@record
class Release:
    """A minor release of Kubernetes, with the days on which its provider's standard and extended
    support end (`YYYY-MM-DD`), None where no source states it, as of its nodes' image and its
    add-ons."""

    version: str
    standard_until: str
    extended_until: str | None
    source: str
    image: NodeImage | None = None
    addons: Addons | None = None


@record
class NetworkCards:
    """Network cards of a machine for traffic between GPUs, from 0 on. On AWS `first` is what card 0
    is beside IP, and each other one is EFA alone. `rdma`: all of them are for RDMA alone."""

    cards: int
    first: Literal["efa", "interface", "rdma"]
    source: str

    @property
    def devices(self) -> int:
        """How many of them carry traffic between GPUs, as a plugin counts them."""
        return self.cards - 1 if self.first == "interface" else self.cards


@record
class CapacityReservation:
    """Machines that were reserved. `placement_group` is the one that they were reserved with."""

    identifier: str
    placement_group: str | None = None


@record
class Group:
    """Equal machines of a pool, made and removed together; `layout` is the place of their cut among
    the pool's layouts, None for whole GPUs. A group in one zone has one entry in `zones`.
    `network_cards` are used where its pods talk to other nodes' GPUs, then machines stand
    `together`. `partition` is the one profile that the cloud cuts all their GPUs by, where it does
    so itself. Machines that come when there are some (`flex-start`, `queued`) go after
    `run_seconds`. `taints` are keys of those that the cloud itself puts on such nodes, beside that
    of GPUs. `nvme` is what local drives are used as, and an operating system can lie on a drive of
    `temporary_bytes`. Facts are per machine, None where no source states them."""

    name: str
    pool: str
    node_type: str
    count: int
    layout: int | None = None
    partition: str | None = None
    capacity: CapacityKind
    run_seconds: int | None = None
    taints: tuple[str, ...] = ()
    reservation: CapacityReservation | None = None
    zones: tuple[str, ...]
    together: bool = False
    network_cards: NetworkCards | None = None
    vcpus: int | None
    memory_bytes: int | None
    nvme: Literal["ephemeral", "block"] = "ephemeral"
    nvme_bytes: int | None
    nvme_drives: int | None = None
    temporary_bytes: int | None = None
    accelerator: str | None = None
    numa_nodes: int | None


@record
class Quota:
    """What an account must be granted for the plan: `amount` of `unit` of the families, without any
    of all of them. Without a name no source states what the provider calls it."""

    name: str | None
    code: str | None
    families: tuple[str, ...]
    capacity: Literal["on-demand", "spot", "any"]
    amount: int
    unit: Literal["vCPUs", "GPUs"] = "vCPUs"
    source: str | None = None


@record
class Cloud:
    """`existing` is the name of a cluster that is there; else the stack makes one.
    `driver_on_nodes`: the nodes come with the GPU driver and the container toolkit, which is called
    by `runtime_class` where that is not the operator's own name.
    `plugin_on_nodes`: also with what offers GPUs to pods, which the cloud cuts itself; a part of a
    GPU then has the name of a whole one, and pods find it by the label of their node. By
    `network_class` pods claim network cards for traffic between GPUs (a DeviceClass of
    Kubernetes)."""

    provider: str
    existing: str | None = None
    zones: tuple[str, ...]
    scaling: Scaling
    release: Release
    driver_on_nodes: bool
    runtime_class: str | None = None
    plugin_on_nodes: bool = False
    network_class: str | None = None
    groups: tuple[Group, ...]
    quotas: tuple[Quota, ...] = ()

    @property
    def states_access(self) -> bool:
        """Whether the stack of the cluster says how it is reached."""
        return TARGETS[making_machines_of(self.provider)].states_access

    def cards_of(self, pool: str) -> NetworkCards | None:
        """Those of a pool whose pods use them."""
        used = (g.network_cards for g in self.groups if g.pool == pool)
        return next((cards for cards in used if cards), None)
