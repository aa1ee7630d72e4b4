"""A host of an inventory, with what is placed on it → the boxes of a drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.inventory.draw.placed import Placement
from gpuplan.inventory.v1 import (
    Device,
    GpuSpec,
    HostSpec,
    LinkSpec,
    NicSpec,
    NumaNodeSpec,
    NvmeSpec,
)
from gpuplan.plan.drawing import DeviceBox, GroupBox, HostDrawing, NodeBox, Share
from gpuplan.units import GB, GIB, format_bytes, format_ranges, parse_ranges, plural


def host_drawing(spec: HostSpec, placement: Placement, name: str = "") -> HostDrawing:
    """One kind of host; of `name` alone where that is given."""
    devices = [*_devices(spec, placement)]
    numbered = list(enumerate(spec.numa_nodes))
    bare = [n for n, _ in numbered if not any(d.numa_node == n for d, _ in devices)]
    shown = [(n, node) for n, node in numbered if n not in bare]
    nodes = [_node(spec, [n], node, devices, placement) for n, node in shown]
    nodes += [
        _node(spec, numbers, spec.numa_nodes[numbers[0]], (), placement)
        for numbers in _alike(spec, bare, placement)
    ]
    unlisted = [(d, box) for d, box in devices if not _on_a_node(d, spec)]
    nodes += _named(unlisted)
    loose = [(d, box) for d, box in unlisted if d.numa_node is None]
    if loose:
        title = "devices whose NUMA node nobody said" if nodes else "devices"
        nodes.append(NodeBox(title=title, facts=(), groups=tuple(_groups(loose))))
    return HostDrawing(
        title=name or ", ".join(spec.names),
        facts=tuple(_facts(spec, placement)),
        nodes=tuple(nodes),
        links=tuple(_links(spec.links)),
    )


def _on_a_node(device: Device, spec: HostSpec) -> bool:
    return device.numa_node is not None and device.numa_node < len(spec.numa_nodes)


def _named(devices: Sequence[tuple[Device, DeviceBox]]) -> Iterator[NodeBox]:
    """Nodes that only their devices name."""
    for number in sorted({d.numa_node for d, _ in devices if d.numa_node is not None}):
        near = [(d, box) for d, box in devices if d.numa_node == number]
        yield NodeBox(title=f"NUMA node {number}", facts=(), groups=tuple(_groups(near)))


def _facts(spec: HostSpec, placement: Placement) -> Iterator[tuple[str, str]]:
    if spec.node_type:
        yield "type", spec.node_type
    if spec.virtualization:
        yield "guest of", spec.virtualization
    cores = [len(parse_ranges(n.cpus or "")) // spec.threads_per_core for n in spec.numa_nodes]
    count = sum(cores) or spec.cpu_cores
    words = (
        spec.cpu_model or spec.cpu_vendor or "",
        plural(spec.sockets, "socket") if spec.sockets else "",
        f"{count} cores" if count else "",
        f"{spec.threads_per_core} threads each" if count else "",
    )
    if any(words):
        yield "processors", " · ".join(w for w in words if w)
    sizes = [n.memory for n in spec.numa_nodes]
    memory = spec.memory or (sum(s or 0 for s in sizes) if sizes and all(sizes) else None)
    if memory:
        yield "memory", _size(memory)
    if spec.driver_version:
        yield "driver", spec.driver_version
    yield from (("placed", line) for line in placement.notes)


def _size(size: int) -> str:
    """Whole GiB, as inventories state memory."""
    return f"{size // GIB:,} GiB" if size >= GIB else format_bytes(size)


def _node(
    spec: HostSpec,
    numbers: Sequence[int],
    node: NumaNodeSpec,
    devices: Sequence[tuple[Device, DeviceBox]],
    placement: Placement,
) -> NodeBox:
    number = numbers[0]
    socket = f"socket {node.socket} · " if node.socket is not None else ""
    nodes = "NUMA node" if len(numbers) == 1 else "NUMA nodes"
    return NodeBox(
        title=f"{socket}{nodes} {format_ranges(numbers)}",
        facts=tuple(_node_facts(spec, numbers, placement)),
        groups=tuple(_groups([(d, box) for d, box in devices if d.numa_node == number])),
    )


def _node_facts(
    spec: HostSpec, numbers: Sequence[int], placement: Placement
) -> Iterator[tuple[str, str]]:
    node = spec.numa_nodes[numbers[0]]
    cpus = parse_ranges(node.cpus or "")
    each = " each" * (len(numbers) > 1)
    listed = "" if each else f": CPUs {format_ranges(cpus)}"
    yield "cores", f"{len(cpus) // spec.threads_per_core}{each}{listed}"
    reserved = placement.reserved.get(numbers[0])
    if reserved:
        yield "host keeps", f"CPUs {format_ranges(reserved)}"
    elif spec.hypervisor and spec.hypervisor.reserved_cores:
        yield "host keeps", f"{spec.hypervisor.reserved_cores} cores"
    if node.memory:
        yield "memory", f"{_size(node.memory)}{each}"
    for who, pinned in placement.pinned.get(numbers[0], ()):
        yield "pinned", f"{who}: CPUs {format_ranges(pinned)}"


def _alike(spec: HostSpec, bare: Sequence[int], placement: Placement) -> list[list[int]]:
    """Nodes without devices, those with as much of everything together."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for number in bare:
        node = spec.numa_nodes[number]
        busy = number if number in placement.reserved or number in placement.pinned else None
        key = (node.socket, len(parse_ranges(node.cpus or "")), node.memory, busy)
        groups.setdefault(key, []).append(number)
    return list(groups.values())


def _devices(spec: HostSpec, placement: Placement) -> Iterator[tuple[Device, DeviceBox]]:
    number = 0
    for gpu in spec.gpus:
        for _ in range(gpu.count or 1):
            shares = placement.of_gpu(number, gpu.address)
            yield gpu, _box(f"gpu{number}", "gpu", _gpu_words(gpu), shares)
            number += 1
    for count, nic in enumerate(spec.nics):
        yield nic, _box(f"nic{count}", "nic", _nic_words(nic), placement.of(nic.address))
    for count, drive in enumerate(spec.nvme):
        yield drive, _box(f"nvme{count}", "nvme", _nvme_words(drive), placement.of(drive.address))


def _box(name: str, kind: str, words: tuple[str, ...], shares: Sequence[Share]) -> DeviceBox:
    return DeviceBox(name=name, kind=kind, words=words, shares=tuple(shares))


def _gpu_words(gpu: GpuSpec) -> tuple[str, ...]:
    size = format_bytes(gpu.memory) if gpu.memory else ""
    state = " ".join(gpu.mig_instances) or ("MIG on" if gpu.mig else "")
    return gpu.type, gpu.address or "", " ".join(w for w in (size, state) if w)


def _nic_words(nic: NicSpec) -> tuple[str, ...]:
    rate = f"{nic.bandwidth * 8 / GB:g} Gb/s" if nic.bandwidth else ""
    listed = nic.virtual_functions
    functions = len(listed) if isinstance(listed, list) else listed
    shared = plural(functions, "VF") if functions else ""
    return nic.type, nic.address or "", " ".join(w for w in (nic.name or "", rate, shared) if w)


def _nvme_words(drive: NvmeSpec) -> tuple[str, ...]:
    size = f"{drive.size / GB:,.0f} GB" if drive.size else "drive"
    return size, drive.address or "", drive.product or drive.name or ""


def _groups(devices: Sequence[tuple[Device, DeviceBox]]) -> Iterator[GroupBox]:
    switches = list(dict.fromkeys(d.switch or "" for d, _ in devices))
    for switch in sorted(switches, key=lambda s: not s):
        boxes = tuple(box for d, box in devices if (d.switch or "") == switch)
        yield GroupBox(switch=switch, devices=boxes)


def _links(links: Sequence[LinkSpec]) -> Iterator[tuple[str, str]]:
    """GPUs with each other, and with cards; cards among themselves say little."""
    for link in links:
        if link.between[0].startswith("gpu"):
            to = f" – {names_text(link.to)}" if link.to else " with each other"
            yield link.link, f"{names_text(link.between)}{to}"


def names_text(names: Sequence[str]) -> str:
    """`gpu0`, `gpu1`, `gpu2` → `gpu0-2`."""
    kind = names[0].rstrip("0123456789")
    return kind + format_ranges(int(n.removeprefix(kind)) for n in names)
