"""What a tool's output says of a host, fact by fact, each with the line it was read from.

A reader turns one text into `Reading`s and knows nothing of other texts. Merging puts the readings
of a host together: equal facts confirm each other, different ones are a contradiction.

A subject is a kind and a key. Keys are the tool's own words; facts join subjects: a GPU that a
matrix calls `GPU0` and `nvidia-smi -q` calls `0000:1b:00.0` is one where `index` or `address` say
so. Subjects: the host (key `""`), NUMA nodes by number, GPUs (address, or `GPU0`), network cards
(address, or `mlx5_0`, `NIC0`), drives (address, or `nvme0`), PCIe bridges by address, interfaces
of the network by name, pairs of
devices (`A B`, sorted), products, of which a tool says no more than how many there are, and PCI
functions by address whose kind a tool does not say.
"""

from __future__ import annotations

from collections.abc import Callable

from gpuplan.diagnostics import Diagnostic
from gpuplan.frozen import record
from gpuplan.source import Place, SourceDocument

Value = int | float | str | tuple[int, ...] | tuple[str, ...] | tuple[tuple[int, ...], ...]
Subject = tuple[str, str]

# Attributes by the kind of their subject. Sizes are bytes, rates bytes per second, powers watts;
# PCI addresses are `dddd:bb:dd.f` in lower case; CPUs are tuples of numbers in ascending order.
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "host": (
        "name",
        "cpu_model",
        "cpu_vendor",  # intel, amd, arm, ibm
        "architecture",
        "sockets",
        "cores_per_socket",
        "threads_per_core",
        "cpus",  # online
        "physical_address_bits",
        "memory_bytes",
        "numa_count",
        "siblings",  # the CPUs of each core
        "virtualization",  # what the host is a guest of
        "iommu",  # on, off
        "kernel_parameters",
        "driver_version",
        "node_type",
        "cpu_count",  # online, where their numbers are not told
        "hugepages_2mi_bytes",
        "hugepages_1gi_bytes",
        "zone",
        "kubelet_version",
        "taints",  # key=value:effect
        "rdma_devices",  # name=number of what pods can ask for
    ),
    "numa": (
        "cpus",  # none where it is memory alone
        "memory_bytes",
        "distances",
        "socket",
        "subtype",  # GPUMemory, HBM, NVM: what is not ordinary memory
    ),
    "gpu": (
        "address",
        "index",
        "uuid",
        "product",
        "pci_id",  # 10de:2330
        "memory_bytes",
        "bar_bytes",
        "numa_node",
        "cpus",  # those near it
        "iommu_group",
        "mig",  # on, off
        "mig_devices",  # 3g.40gb@4
        "mig_profiles",  # 3g.40gb, of each device, where the tool does not say at which slice
        "mig_memory_bytes",  # of each MIG device, where the tool does not say its profile
        "module_id",
        "watts",
        "pcie_generation",
        "pcie_width",
        "virtual_functions",  # addresses
        "parent",  # the bridge above it
        "switch",  # the nearest PCIe switch above it, by its upstream port
        "nvlinks",  # links that are up
        "fabric",  # completed, in progress
        "fabric_clique",  # cluster's UUID and clique of a rack-wide NVLink domain
        "memory_node",  # the NUMA node that the GPU's own memory is
        "virtualization",  # pass-through, vgpu (the tool ran in a guest), host vgpu
    ),
    "nic": (
        "address",
        "name",
        "product",
        "pci_id",
        "numa_node",
        "cpus",
        "iommu_group",
        "bytes_per_s",
        "link",  # infiniband, ethernet
        "total_functions",
        "functions",  # those that are on
        "virtual_functions",  # addresses
        "parent",
        "switch",
    ),
    "nvme": (
        "address",
        "name",
        "product",
        "pci_id",
        "size_bytes",
        "numa_node",
        "iommu_group",
        "parent",
        "switch",
        "serial",
        "uses",  # what the host does with it: / (ext4), swap, lvm; none where it does nothing
        "holders",  # tools that say the host holds it: md, zfs
        "driver",  # the kernel's that has it
    ),
    "interface": (  # of the network, by the kernel's name
        "mac",
        "below",  # the interface that it stands on, as a VLAN does
        "master",  # the bond or bridge that it is a part of
        "reached",  # the networks' addresses: none is a part of others, or down
        "default_route",  # yes
    ),
    "bridge": (
        "address",
        "product",
        "pci_id",
        "parent",
        "switch",
        "numa_node",
        "iommu_group",
        "secondary_bus",
    ),
    "function": (  # of a card, beside what the card is there for: sound, USB
        "address",
        "product",
        "pci_id",
        "parent",
        "switch",
        "numa_node",
        "iommu_group",
    ),
    "device": (  # a PCI function of which the tool does not say what it is
        "address",
        "product",
        "pci_id",
        "parent",
        "switch",
        "numa_node",
        "iommu_group",
        "virtual_functions",
    ),
    "pair": ("link",),  # X, NV18, PIX, PXB, PHB, NODE, SYS
    "product": ("gpus", "memory_bytes", "mig", "mig_profiles"),
}


@record
class Observation:
    subject: Subject
    attribute: str
    value: Value
    place: Place


@record
class Field:
    """How the text of a fact becomes a value, and what to call one in a message. Every complete
    output holds those that are `always`."""

    attribute: str
    convert: Callable[[str], Value | None]
    expected: str
    always: bool = False


def field(
    attribute: str, convert: Callable[[str], Value | None], expected: str, *, always: bool = False
) -> Field:
    return Field(attribute=attribute, convert=convert, expected=expected, always=always)


@record
class Reading:
    """`host` is the host's name where the text says it."""

    tool: str
    document: str
    host: str | None = None
    facts: tuple[Observation, ...] = ()
    problems: tuple[Diagnostic, ...] = ()


@record
class Reader:
    """`recognises` looks at the text alone, however its file is called, and is never true of
    another tool's output; `read` takes text and name of a document."""

    tool: str
    recognises: Callable[[str], bool]
    read: Callable[[SourceDocument], tuple[Reading, ...]]
