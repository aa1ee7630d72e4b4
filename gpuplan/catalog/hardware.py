"""Servers, network cards, storage classes and running costs as records.

Only what a source says is there: an absent fact is None or ().
"""

from __future__ import annotations

from decimal import Decimal

from gpuplan.catalog.model import Fact
from gpuplan.frozen import record


@record
class WordedFact:
    """A fact in words. `source` reads as in `Fact`."""

    value: str
    source: str


@record
class Names:
    """Facts in the field's own names."""

    values: tuple[str, ...]
    source: str


@record
class Flag:
    value: bool
    source: str


@record
class Amount:
    """Money; the unit is in the field's name."""

    value: Decimal
    source: str


@record
class HostNics:
    """Equal cards of a host. `bytes_per_s` is one direction of one card."""

    nic: str
    count: int
    purpose: str | None
    bytes_per_s: Fact | None
    source: str


@record
class HostDrives:
    """Equal drives of a host; `form` as their maker calls it."""

    size_bytes: int
    count: int
    purpose: str | None
    form: str | None
    source: str


@record
class PcieSwitch:
    """GPUs and compute cards below one PCIe switch, by their number in the host."""

    gpus: tuple[int, ...]
    nics: tuple[int, ...]


@record
class Topology:
    """`numa_nodes` has the GPUs of each NUMA node; compute card N is on rail N."""

    numa_nodes: tuple[tuple[int, ...], ...]
    switches: tuple[PcieSwitch, ...]
    source: str


@record
class PowerSupplies:
    """`spare` of the `count` may fail before the host has less than it needs."""

    count: int
    watts: float
    spare: int | None
    source: str


@record
class MeasuredPower:
    """Watts of the whole host under `load`."""

    load: str
    watts: float
    source: str


@record
class Host:
    """A server with GPUs. Cores are physical; `watts` is the most that all of it draws;
    `numa_nodes` is None where no source says. `reference`: it stands for its GPU. `nvlink_nodes`:
    of so many such servers NVLink joins all GPUs."""

    identifier: str
    name: str | None
    vendor: str | None
    reference: bool
    gpu: str
    gpus: int
    sockets: int
    cpu_cores: int
    memory_bytes: int
    numa_nodes: int | None
    source: str
    cpu: WordedFact | None
    threads_per_core: Fact | None
    nvlink_nodes: Fact | None
    interconnect: WordedFact | None
    nics: tuple[HostNics, ...]
    drives: tuple[HostDrives, ...]
    topology: Topology | None
    watts: Fact | None
    power_supplies: PowerSupplies | None
    measured_power: tuple[MeasuredPower, ...]
    rack_units: Fact | None
    cooling: WordedFact | None


@record
class Nic:
    """A family of network cards. `pci_ids` read `15b3:1021`. `vf_limit` is the most virtual
    functions of a physical one that documentation names; a card's `sriov_totalvfs` decides."""

    identifier: str
    name: str
    vendor: str
    pci_ids: Names
    vf_pci_id: WordedFact | None
    driver: WordedFact | None
    bytes_per_s: Fact | None
    ports: Fact | None
    links: Names | None
    rdma: Names | None
    vf_limit: Fact | None
    sriov_operator: Flag | None
    switchdev: Flag | None


@record
class StorageClass:
    """Storage that Kubernetes provisions. Limits are of one volume; `parameters` are pairs."""

    identifier: str
    name: str
    provider: str | None
    medium: str
    provisioner: WordedFact
    parameters: tuple[tuple[str, str], ...]
    access_modes: Names
    size_minimum_bytes: Fact | None
    size_maximum_bytes: Fact | None
    iops_maximum: Fact | None
    bytes_per_s_maximum: Fact | None
    bytes_per_s_per_tib: Fact | None
    usd_per_gb_month: Amount | None
    price_region: str | None


@record
class Range:
    """An input with a label, no fact: numbers in `unit`, of the time `when`. `status` is official,
    measured, survey, list or estimate; `default` marks what is proposed where nothing is known."""

    item: str
    about: str
    gpu: str | None
    node: str | None
    region: str | None
    unit: str
    low: Decimal | None
    typical: Decimal | None
    high: Decimal | None
    when: str
    status: str
    default: bool
    sources: tuple[str, ...]
