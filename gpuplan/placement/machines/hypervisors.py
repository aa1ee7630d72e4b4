"""Inventory document → hypervisor hosts with their reservations. Nothing is guessed: what placement
needs and the inventory does not say is a diagnostic at its place."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from gpuplan.diagnostics import Diagnostic
from gpuplan.inventory.cores import cores
from gpuplan.inventory.v1 import (
    FunctionSpec,
    GpuSpec,
    HostSpec,
    ImageSpec,
    Inventory,
    JoinSpec,
    NicSpec,
    NvmeSpec,
)
from gpuplan.placement.contradictions import Spec, devices, functions
from gpuplan.placement.problems import held_by_host, missing_fact, unchecked_fact, uncompared
from gpuplan.plan import window
from gpuplan.plan.model import ClusterJoin, GuestImage, Host, NumaNode, PciDevice, record
from gpuplan.plan.site import HOST_SETTINGS, DeviceKind
from gpuplan.sharing.groups import free, kept
from gpuplan.sharing.islands import Joined, joined
from gpuplan.sizing.hardware.locality import Locality, localities
from gpuplan.source import Origin

KINDS: dict[type, DeviceKind] = {
    GpuSpec: "gpu",
    NicSpec: "nic",
    NvmeSpec: "nvme",
    FunctionSpec: "function",
}


@record
class HostDevice:
    """A host's device as placement sees it. `functions` are its virtual functions by address;
    `unlisted_functions` counts those that the inventory gives only the number of. `number` is a
    GPU's place in the list, `joined` are the GPUs that NVLink joins it to, itself among them;
    `bytes_per_s` is a network card's rate. Of one that is not `free`, `in_use` says what the host
    does with it, None where nobody said."""

    device: PciDevice
    number: int
    functions: tuple[str, ...]
    unlisted_functions: int
    module_id: int | None
    joined: frozenset[int]
    bytes_per_s: float | None
    vlan: int | None
    size_bytes: int
    free: bool
    in_use: tuple[str, ...] | None
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

    def of(self, kind: DeviceKind) -> tuple[HostDevice, ...]:
        return tuple(d for d in self.devices if d.device.kind == kind)


@record
class Lowered:
    hypervisors: tuple[Hypervisor, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


def lower(inventory: Inventory, document: str, wanted: Collection[str]) -> Lowered:
    """The hosts of `inventory` with GPUs. Facts that are required and absent are diagnostics, all
    at once; a host with one is none of them. Nobody asks for those of a host that has no GPU of the
    types that are `wanted`."""
    hypervisors: list[Hypervisor] = []
    problems: list[Diagnostic] = []
    for kind, spec in enumerate(inventory.hosts):
        if not spec.gpus:
            continue
        at = Origin(document, ("hosts", kind))
        missing = tuple(_missing(spec, at))
        if missing and not any(gpu.type in wanted for gpu in spec.gpus):
            continue
        problems += [*missing, *_unchecked(spec, at), *_uncompared(spec, at), *held(spec, at)]
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
        if device.numa_node is None and KINDS[type(device)] != "function" and spec.numa_nodes[1:]:
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
    every = [d for d in devices(spec, at) if not isinstance(d[0], FunctionSpec)]
    without = [origin for device, origin in every if device.iommu_group is None]
    if without:
        count = f" of {len(without)} devices" if len(without) > 1 else ""
        yield unchecked_fact(
            f"the IOMMU group{count}",
            "it was not checked that a group goes to one guest as a whole",
            without[0],
            "add 'iommu_group' (`find /sys/kernel/iommu_groups -type l`)",
        )


def _uncompared(spec: HostSpec, at: Origin) -> Iterator[Diagnostic]:
    """Devices that the host cannot tell from others that may be at their address some day."""
    passed = [(d, origin) for d, origin in devices(spec, at) if free(d, spec)]
    plain = [origin for d, origin in passed if d.pci_id is None]
    if plain:
        yield uncompared("'pci_id'", len(plain), plain[0], "see `lspci -Dnn`")
    known = [numbers.keys() for name in spec.names if (numbers := spec.serials.get(name, {}))]
    drives = [
        origin
        for d, origin in passed
        if isinstance(d, NvmeSpec) and sum(d.address in k for k in known) < len(spec.names)
    ]
    if drives:
        remedy = "add 'serials' of each host, by address (`lsblk -o NAME,SERIAL`)"
        yield uncompared("the serial number", len(drives), drives[0], remedy)


def held(spec: HostSpec, at: Origin) -> Iterator[Diagnostic]:
    """GPUs and drives in an IOMMU group with what the host keeps."""
    keeps = kept(spec)
    for device, origin in devices(spec, at):
        number = device.iommu_group
        if number is None or not isinstance(device, GpuSpec | NvmeSpec):
            continue
        holder = keeps.get(number, device)
        if holder is not device:
            place = origin.child("iommu_group")
            yield held_by_host(device.address or "a device", number, _named(holder), place)


def _named(device: Spec) -> str:
    noun = {"nic": "network card", "nvme": "drive"}.get(KINDS[type(device)], "function")
    return f"the {noun} {device.address or device.product or ''}".rstrip()


def _alike(spec: HostSpec, kind: int, at: Origin) -> Iterator[Hypervisor]:
    """The hosts of one entry."""
    assert spec.cpu_vendor is not None
    assert spec.hypervisor is not None
    links = joined(spec)
    listed = tuple(
        _host_device(device, origin, number, links, free=free(device, spec))
        for number, (device, origin) in enumerate(devices(spec, at))  # GPUs first
    )
    nodes = tuple(localities(spec, at, guests=True))
    first = Host(
        name=spec.names[0],
        sockets=spec.sockets,
        threads_per_core=spec.threads_per_core,
        numa_nodes=tuple(_numa_node(spec, n, node) for n, node in enumerate(nodes)),
        devices=(),
        hugepage_bytes=window.PAGE_BYTES,
        kernel_parameters=(),
        cpu_vendor=spec.cpu_vendor,
        physical_address_bits=spec.physical_address_bits,
        settings=tuple(s for s in HOST_SETTINGS if s not in spec.hypervisor.leave),
        image=_image(spec.hypervisor.image),
        join=_join(spec.hypervisor.join),
    )
    for number, name in enumerate(spec.names):
        own = tuple(_with_serial(d, spec.serials.get(name, {}).get(d.address)) for d in listed)
        yield Hypervisor(
            host=replace(
                first,
                name=name,
                devices=tuple(d.device for d in own),
                origin=at.child("names", number),
            ),
            kind=kind,
            localities=nodes,
            devices=own,
            disk_path=spec.hypervisor.disk_path.rstrip("/"),
            bridge=spec.hypervisor.bridge,
        )


def _image(spec: ImageSpec | None) -> GuestImage | None:
    if spec is None:
        return None
    return GuestImage(path=spec.path, sha256=spec.sha256, system=spec.system, keys=tuple(spec.keys))


def _join(spec: JoinSpec | None) -> ClusterJoin | None:
    if spec is None:
        return None
    return ClusterJoin(
        kind=spec.kind,
        server=spec.server,
        version=spec.version,
        sha256=spec.sha256,
        ca_cert_hashes=tuple(spec.ca_cert_hashes),
    )


def _with_serial(device: HostDevice, serial: str | None) -> HostDevice:
    return replace(device, device=replace(device.device, serial=serial))


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


def _host_device(
    device: Spec, origin: Origin, number: int, links: Joined, *, free: bool
) -> HostDevice:
    listed = functions(device)
    counted = device.virtual_functions if isinstance(device, NicSpec) else 0
    unlisted = counted if isinstance(counted, int) else 0
    assert device.address is not None
    return HostDevice(
        device=PciDevice(
            kind=KINDS[type(device)],
            model=device.type if isinstance(device, GpuSpec | NicSpec) else KINDS[type(device)],
            address=device.address,
            numa_node=device.numa_node or 0,
            iommu_group=device.iommu_group,
            switch=device.switch,
            pci_id=device.pci_id,
            shared=not isinstance(device, GpuSpec) and device.for_guests is True,
            virtual_functions=len(listed) or unlisted,
            mtu=device.mtu if isinstance(device, NicSpec) else None,
            power_limit_watts=device.power_limit if isinstance(device, GpuSpec) else None,
        ),
        functions=tuple(listed),
        unlisted_functions=unlisted,
        module_id=device.module_id if isinstance(device, GpuSpec) else None,
        number=number,
        joined=links.get(number, frozenset()) if isinstance(device, GpuSpec) else frozenset(),
        bytes_per_s=device.bandwidth if isinstance(device, NicSpec) else None,
        vlan=device.vlan if isinstance(device, NicSpec) else None,
        size_bytes=device.size or 0 if isinstance(device, NvmeSpec) else 0,
        free=free,
        in_use=None if (uses := getattr(device, "in_use", None)) is None else tuple(uses),
        origin=origin,
    )
