"""A cluster that a cloud manages, and the machines that it is made of."""

from __future__ import annotations

from typing import Literal

from gpuplan.frozen import record

Capacity = Literal["on-demand", "spot", "reserved", "block"]
Scaling = Literal["fixed", "autoscaler", "karpenter"]


@record
class Release:
    """A minor release of Kubernetes, with the days on which its provider's standard and extended
    support end (`YYYY-MM-DD`)."""

    version: str
    standard_until: str
    extended_until: str
    source: str


@record
class NetworkCards:
    """Network cards of a machine with EFA, from 0 on. `first` is what card 0 is beside IP; each
    other one is EFA alone."""

    cards: int
    first: Literal["efa", "interface"]
    source: str

    @property
    def devices(self) -> int:
        """How many EFA devices the device plugin counts."""
        return self.cards if self.first == "efa" else self.cards - 1


@record
class Reservation:
    """Machines that were reserved. `placement_group` is the one that they were reserved with."""

    identifier: str
    placement_group: str | None = None


@record
class Group:
    """Equal machines of a pool, made and removed together; `layout` is the place of their cut among
    the pool's layouts, None for whole GPUs. A group in one zone has one entry in `zones`.
    `network_cards` are used where its pods talk to other nodes' GPUs, then machines stand
    `together`. Facts are per machine, None where no source states them."""

    name: str
    pool: str
    node_type: str
    count: int
    layout: int | None = None
    capacity: Capacity
    reservation: Reservation | None = None
    zones: tuple[str, ...]
    together: bool = False
    network_cards: NetworkCards | None = None
    vcpus: int | None
    memory_bytes: int | None
    nvme_bytes: int | None
    numa_nodes: int | None


@record
class Quota:
    """What an account must be granted for the plan: `amount` vCPUs of a family. Without a name no
    source states what the provider calls it."""

    name: str | None
    code: str | None
    families: tuple[str, ...]
    capacity: Literal["on-demand", "spot"]
    amount: int
    source: str | None = None


@record
class Cloud:
    """`existing` is the name of a cluster that is there; else the stack makes one.
    `driver_on_nodes`: the nodes' image has the GPU driver and the container toolkit."""

    provider: str
    existing: str | None = None
    zones: tuple[str, ...]
    scaling: Scaling
    release: Release
    driver_on_nodes: bool
    groups: tuple[Group, ...]
    quotas: tuple[Quota, ...] = ()
