"""Inventory document → hypervisor hosts with their reservations. Nothing is guessed: what placement
needs and the inventory does not say is a diagnostic at its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from gpuplan.diagnostics import Diagnostic
from gpuplan.inventory.v1 import GpuSpec, HostSpec, Inventory, NicSpec, NvmeSpec
from gpuplan.placement.contradictions import Spec, devices, functions
from gpuplan.placement.machines.reserve import PAGE_BYTES, kernel_parameters, numa_node
from gpuplan.placement.problems import held_by_host, missing_fact, unchecked_fact
from gpuplan.plan.model import Evidence, Host, PciDevice, record
from gpuplan.sharing.islands import islands
from gpuplan.sizing.evidence.formula import Ledger
from gpuplan.source import Origin

KINDS: dict[type, Literal["gpu", "nic", "nvme"]] = {
    GpuSpec: "gpu",
    NicSpec: "nic",
    NvmeSpec: "nvme",
}


@record
class Slot:
    """A host device as placement sees it. `functions` are its virtual functions by address;
    `unlisted_functions` counts those that the inventory gives only the number of. NVLink
    joins the GPUs of one `island`; `bytes_per_s` is a network card's rate."""

    device: PciDevice
    functions: tuple[str, ...] = ()
    unlisted_functions: int = 0
    module_id: int | None = None
    island: int | None = None
    bytes_per_s: float | None = None
    vlan: int | None = None
    size_bytes: int = 0
    origin: Origin


@record
class Site:
    """A host with what placement needs beside the plan's record. `kind` numbers the inventory entry
    that described it."""

    host: Host
    kind: int
    slots: tuple[Slot, ...]
    disk_path: str
    bridge: str

    def of(self, kind: Literal["gpu", "nic", "nvme"]) -> tuple[Slot, ...]:
        return tuple(s for s in self.slots if s.device.kind == kind)


@record
class Lowered:
    sites: tuple[Site, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


def lower(inventory: Inventory, document: str, guests_per_gpu: Mapping[str, int]) -> Lowered:
    """The hosts of `inventory`. `guests_per_gpu` says how many guests a GPU of each type can have
    (1 where it is not listed). Facts that are required and absent are diagnostics, all at once; a
    host with one makes no site."""
    sites: list[Site] = []
    evidence: list[Evidence] = []
    problems: list[Diagnostic] = []
    for kind, spec in enumerate(inventory.hosts):
        if not spec.gpus:
            continue
        at = Origin(document, ("hosts", kind))
        missing = tuple(_missing(spec, at))
        problems += [*missing, *_unchecked(spec, at), *_held(spec, at)]
        for name in () if missing else spec.names:
            ledger = Ledger(name)
            sites.append(_site(spec, kind, at, guests_per_gpu, ledger))
            evidence += ledger.evidence()
    return Lowered(sites=tuple(sites), evidence=tuple(evidence), diagnostics=tuple(problems))


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


def _site(
    spec: HostSpec, kind: int, at: Origin, guests_per_gpu: Mapping[str, int], ledger: Ledger
) -> Site:
    """The host that `ledger` is called after."""
    assert spec.cpu_vendor is not None
    assert spec.hypervisor is not None
    joined = islands(spec)
    slots = tuple(
        _slot(device, origin, joined.get(place) if isinstance(device, GpuSpec) else None)
        for place, (device, origin) in enumerate(devices(spec, at))
    )
    gpus = [s.device for s in slots if s.device.kind == "gpu"]
    nodes = []
    for number in range(len(spec.numa_nodes)):
        guests = sum(guests_per_gpu.get(g.model, 1) for g in gpus if g.numa_node == number)
        nodes.append(numa_node(spec, number, guests, at, ledger))
    host = Host(
        name=ledger.prefix,
        sockets=spec.sockets,
        threads_per_core=spec.threads_per_core,
        numa_nodes=tuple(nodes),
        devices=tuple(s.device for s in slots),
        hugepage_bytes=PAGE_BYTES,
        kernel_parameters=kernel_parameters(spec.cpu_vendor, nodes),
        cpu_vendor=spec.cpu_vendor,
        physical_address_bits=spec.physical_address_bits,
        origin=at.child("names", spec.names.index(ledger.prefix)),
    )
    return Site(
        host=host,
        kind=kind,
        slots=slots,
        disk_path=spec.hypervisor.disk_path.rstrip("/"),
        bridge=spec.hypervisor.bridge,
    )


def _slot(device: Spec, origin: Origin, island: int | None) -> Slot:
    listed = functions(device)
    number = device.virtual_functions if isinstance(device, NicSpec) else 0
    unlisted = number if isinstance(number, int) else 0
    assert device.address is not None
    return Slot(
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
        island=island,
        bytes_per_s=device.bandwidth if isinstance(device, NicSpec) else None,
        vlan=device.vlan if isinstance(device, NicSpec) else None,
        size_bytes=device.size or 0 if isinstance(device, NvmeSpec) else 0,
        origin=origin,
    )
