"""Inventory document → hypervisor hosts with their reservations. Nothing is guessed: what placement
needs and the inventory does not say is a diagnostic at its place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from gpuplan.diagnostics import Diagnostic
from gpuplan.inventory.cores import cores
from gpuplan.inventory.v1 import GpuSpec, HostSpec, Inventory, NicSpec, NvmeSpec
from gpuplan.placement.contradictions import Spec, devices, functions
from gpuplan.placement.problems import held_by_host, missing_fact, unchecked_fact
from gpuplan.plan import window
from gpuplan.plan.model import Host, NumaNode, PciDevice, record
from gpuplan.sharing.islands import Joined, joined
from gpuplan.sizing.hardware.locality import Locality, localities
from gpuplan.source import Origin

KINDS: dict[type, Literal["gpu", "nic", "nvme"]] = {
    GpuSpec: "gpu",
    NicSpec: "nic",
    NvmeSpec: "nvme",
}


@record
class HostDevice:
    """A host's device as placement sees it. `functions` are its virtual functions by address;
    `unlisted_functions` counts those that the inventory gives only the number of. `number` is a
    GPU's place in the list, `joined` are the GPUs that NVLink joins it to, itself among them;
    `bytes_per_s` is a network card's rate."""

    device: PciDevice
    number: int
    functions: tuple[str, ...] = ()
    unlisted_functions: int = 0
    module_id: int | None = None
    joined: frozenset[int] = frozenset()
    bytes_per_s: float | None = None
    vlan: int | None = None
    size_bytes: int = 0
    origin: Origin

    @property
    def address(self) -> str:
        return self.device.address

    @property
    def node(self) -> int:
        return self.device.numa_node


@record
class Hypervisor:
    """A host with what placement needs beside the plan's record, which has no huge pages yet: they
    follow from the guests. `kind` numbers the inventory entry that described it, `localities` are
    its NUMA nodes'."""

    host: Host
    kind: int
    localities: tuple[Locality, ...]
    devices: tuple[HostDevice, ...]
    disk_path: str
    bridge: str

    def of(self, kind: Literal["gpu", "nic", "nvme"]) -> tuple[HostDevice, ...]:
        return tuple(d for d in self.devices if d.device.kind == kind)


@record
class Lowered:
    hypervisors: tuple[Hypervisor, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


def lower(inventory: Inventory, document: str) -> Lowered:
    """The hosts of `inventory` with GPUs. Facts that are required and absent are diagnostics, all
    at once; a host with one is none of them."""
    hypervisors: list[Hypervisor] = []
    problems: list[Diagnostic] = []
    for kind, spec in enumerate(inventory.hosts):
        if not spec.gpus:
            continue
        at = Origin(document, ("hosts", kind))
        missing = tuple(_missing(spec, at))
        problems += [*missing, *_unchecked(spec, at), *_held(spec, at)]
        hypervisors += () if missing else _alike(spec, kind, at)
    return Lowered(hypervisors=tuple(hypervisors), diagnostics=tuple(problems))


def _missing(spec: HostSpec, at: Origin) -> Iterator[Diagnostic]:
    names = at.child("names")
    if not any(node.cpus for node in spec.numa_nodes):
        yield missing_fact(
            "the NUMA layout", "pinning guests", names, "add 'numa_nodes' (see `lscpu`)"
        )
    yield from _nodes(spec, at)
    if spec.cpu_vendor is None:
        yield missing_fact("'cpu_vendor'", "kernel parameters", names, "add intel, amd or arm")
    if spec.physical_address_bits is None:
        yield missing_fact(
            "'physical_address_bits'",
            "the guests' window for GPU memory",
            names,
            'add the bits that `lscpu` prints under "Address sizes"',
        )
    if spec.hypervisor is None:
        yield missing_fact(
            "'hypervisor'", "guests' disks and network", names, "add 'disk_path' and 'bridge'"
        )
    for device, origin in devices(spec, at):
        if device.address is None:
            yield missing_fact(
                "the PCI address", "passing the device to a guest", origin, "see `lspci -D`"
            )
        if device.numa_node is None and len(spec.numa_nodes) > 1:
            yield missing_fact(
                "'numa_node'", "placing guests near the device", origin, "see `lspci -vv`"
            )


def _nodes(spec: HostSpec, at: Origin) -> Iterator[Diagnostic]:
    for number, node in enumerate(spec.numa_nodes):
        origin = at.child("numa_nodes", number)
        if node.memory is None:
            yield missing_fact("'memory'", "the node's huge pages", origin, "see `numactl -H`")
        if node.node not in (None, number):
            yield missing_fact(
                f"a NUMA node {number}",
                "pinning guests",
                origin.child("node"),
                "hosts whose nodes have other numbers are not prepared for guests",
            )


def _unchecked(spec: HostSpec, at: Origin) -> Iterator[Diagnostic]:
    without = [origin for device, origin in devices(spec, at) if device.iommu_group is None]
    if without:
        count = f" of {len(without)} devices" if len(without) > 1 else ""
        yield unchecked_fact(
            f"the IOMMU group{count}",
            "it was not checked that a group goes to one guest as a whole",
            without[0],
            "add 'iommu_group' (`find /sys/kernel/iommu_groups -type l`)",
        )


def _held(spec: HostSpec, at: Origin) -> Iterator[Diagnostic]:
    """Devices in an IOMMU group with a network card. The host keeps the card: guests get functions
    of it, which have groups of their own."""
    cards = {d.iommu_group: d for d, _ in devices(spec, at) if isinstance(d, NicSpec)}
    for device, origin in devices(spec, at):
        group = device.iommu_group
        if group is not None and group in cards and not isinstance(device, NicSpec):
            card, name = cards[group], device.address or "a device"
            place = origin.child("iommu_group")
            yield held_by_host(name, group, card.address or card.type, place)


def _alike(spec: HostSpec, kind: int, at: Origin) -> Iterator[Hypervisor]:
    """The hosts of one entry."""
    assert spec.cpu_vendor is not None
    assert spec.hypervisor is not None
    links = joined(spec)
    listed = tuple(
        _host_device(device, origin, number, links)
        for number, (device, origin) in enumerate(devices(spec, at))  # GPUs first
    )
    nodes = tuple(localities(spec, at, guests=True))
    first = Host(
        name=spec.names[0],
        sockets=spec.sockets,
        threads_per_core=spec.threads_per_core,
        numa_nodes=tuple(_numa_node(spec, n, node) for n, node in enumerate(nodes)),
        devices=tuple(d.device for d in listed),
        hugepage_bytes=window.PAGE_BYTES,
        kernel_parameters=(),
        cpu_vendor=spec.cpu_vendor,
        physical_address_bits=spec.physical_address_bits,
    )
    for number, name in enumerate(spec.names):
        yield Hypervisor(
            host=replace(first, name=name, origin=at.child("names", number)),
            kind=kind,
            localities=nodes,
            devices=listed,
            disk_path=spec.hypervisor.disk_path.rstrip("/"),
            bridge=spec.hypervisor.bridge,
        )


def _numa_node(spec: HostSpec, number: int, locality: Locality) -> NumaNode:
    node = spec.numa_nodes[number]
    physical = cores(node, spec.threads_per_core)
    assert node.memory is not None
    return NumaNode(
        node=number,
        cores=physical,
        memory_bytes=node.memory,
        reserved_cores=physical[: locality.kept_cores],
        hugepages=0,
        distances=tuple(node.distances or ()),
    )


def _host_device(device: Spec, origin: Origin, number: int, links: Joined) -> HostDevice:
    listed = functions(device)
    counted = device.virtual_functions if isinstance(device, NicSpec) else 0
    unlisted = counted if isinstance(counted, int) else 0
    assert device.address is not None
    return HostDevice(
        device=PciDevice(
            kind=KINDS[type(device)],
            model="nvme" if isinstance(device, NvmeSpec) else device.type,
            address=device.address,
            numa_node=device.numa_node or 0,
            iommu_group=device.iommu_group,
            switch=device.switch,
            virtual_functions=len(listed) or unlisted,
        ),
        functions=tuple(listed),
        unlisted_functions=unlisted,
        module_id=device.module_id if isinstance(device, GpuSpec) else None,
        number=number,
        joined=links.get(number, frozenset()) if isinstance(device, GpuSpec) else frozenset(),
        bytes_per_s=device.bandwidth if isinstance(device, NicSpec) else None,
        vlan=device.vlan if isinstance(device, NicSpec) else None,
        size_bytes=device.size or 0 if isinstance(device, NvmeSpec) else 0,
        origin=origin,
    )
