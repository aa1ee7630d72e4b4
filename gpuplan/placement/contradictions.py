"""Statements of an inventory that cannot all be true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.diagnostics import Diagnostic
from gpuplan.inventory.v1 import FunctionSpec, GpuSpec, HostSpec, Inventory, NicSpec, NvmeSpec
from gpuplan.placement.problems import contradiction
from gpuplan.sizing.hardware.locality import localities
from gpuplan.source import Origin
from gpuplan.units import format_bytes, parse_ranges

Spec = GpuSpec | NicSpec | NvmeSpec | FunctionSpec


def contradictions(inventory: Inventory, document: str) -> Iterator[Diagnostic]:
    """Every contradiction of `inventory`, in document order."""
    names: dict[str, Origin] = {}
    for number, spec in enumerate(inventory.hosts):
        at = Origin(document, ("hosts", number))
        for index, name in enumerate(spec.names):
            yield from _once(
                names, name, f"two hosts are called '{name}'", at.child("names", index)
            )
        yield from _cpus(spec, at)
        yield from _nodes(spec, at)
        yield from _addresses(spec, at)
        yield from _links(spec, at)


def devices(spec: HostSpec, at: Origin) -> Iterator[tuple[Spec, Origin]]:
    """All devices of a host with their places."""
    kinds: tuple[tuple[str, Sequence[Spec]], ...] = (
        ("gpus", spec.gpus),
        ("nics", spec.nics),
        ("nvme", spec.nvme),
        ("functions", spec.functions),
    )
    for kind, listed in kinds:
        for index, device in enumerate(listed):
            yield device, at.child(kind, index)


def functions(device: Spec) -> list[str]:
    """The virtual functions of a device that are listed by address."""
    listed = getattr(device, "virtual_functions", [])
    return listed if isinstance(listed, list) else []


def _once(
    seen: dict[str, Origin], name: str, message: str, origin: Origin, remedy: str = ""
) -> Iterator[Diagnostic]:
    if name in seen:
        yield contradiction(message, origin, seen[name], remedy or "remove one of the two")
    seen.setdefault(name, origin)


def _cpus(spec: HostSpec, at: Origin) -> Iterator[Diagnostic]:
    seen: dict[str, Origin] = {}
    for index, node in enumerate(spec.numa_nodes):
        origin = at.child("numa_nodes", index, "cpus")
        cpus = parse_ranges(node.cpus or "")
        for cpu in cpus:
            if str(cpu) in seen:
                message = f"CPU {cpu} is listed twice"
                yield contradiction(message, origin, seen[str(cpu)], "a CPU is in one NUMA node")
                return
            seen[str(cpu)] = origin
        if len(cpus) % spec.threads_per_core:
            yield contradiction(
                f"{len(cpus)} CPUs are not whole cores of {spec.threads_per_core} threads",
                origin,
                at.child("threads_per_core")
                if "threads_per_core" in spec.model_fields_set
                else None,
                "list all threads of each core, or correct 'threads_per_core'",
            )
    cores = len(seen) // spec.threads_per_core
    if seen and spec.cpu_cores is not None and spec.cpu_cores != cores:
        yield contradiction(
            f"'cpu_cores' is {spec.cpu_cores}, but the NUMA nodes have {cores}",
            at.child("cpu_cores"),
            at.child("numa_nodes"),
            "remove 'cpu_cores', or correct the lists",
        )


def _nodes(spec: HostSpec, at: Origin) -> Iterator[Diagnostic]:
    count = len(spec.numa_nodes)
    for index, node in enumerate(spec.numa_nodes):
        origin = at.child("numa_nodes", index, "distances")
        if node.distances is not None and len(node.distances) != count:
            yield contradiction(
                f"{len(node.distances)} distances for {count} NUMA nodes",
                origin,
                at.child("numa_nodes"),
                "write one row of `numactl -H`",
            )
        elif node.distances is not None and min(node.distances) != node.distances[index]:
            yield contradiction(
                f"NUMA node {index} is nearer to another node than to itself",
                origin,
                None,
                "write the row of `numactl -H` that starts with this node",
            )
    yield from _asymmetry(spec, at)
    yield from _pages(spec, at)
    total = sum(node.memory or 0 for node in spec.numa_nodes)
    if spec.memory is not None and total > spec.memory:
        yield contradiction(
            "the NUMA nodes have more memory than the host",
            at.child("memory"),
            at.child("numa_nodes"),
            "remove 'memory', or correct the nodes",
        )
    for device, origin in devices(spec, at):
        node_number = device.numa_node
        if count and node_number is not None and node_number >= count:
            yield contradiction(
                f"NUMA node {node_number} does not exist: the host has {count}",
                origin.child("numa_node"),
                at.child("numa_nodes"),
                f"use 0 to {count - 1}",
            )


def _pages(spec: HostSpec, at: Origin) -> Iterator[Diagnostic]:
    """Huge pages that the memory of a node with GPUs does not have."""
    stated = spec.hypervisor.hugepages if spec.hypervisor else None
    if stated is None:
        return
    for node in localities(spec, at, guests=True):
        if node.gpus and node.memory_bytes is not None and stated > node.most_pages:
            yield contradiction(
                f"{stated:,} huge pages of 1 GiB are more than {node.name} has beside what the "
                f"host keeps: {node.most_pages:,} of {format_bytes(node.memory_bytes)}",
                at.child("hypervisor", "hugepages"),
                None,
                f"write {node.most_pages} at most, or less 'reserved_memory'",
            )
            return


def _asymmetry(spec: HostSpec, at: Origin) -> Iterator[Diagnostic]:
    """Distances that are not the same there and back; only where each row is sound by itself."""
    rows = [numa_node.distances or [] for numa_node in spec.numa_nodes]
    if any(len(row) != len(rows) or min(row) != row[n] for n, row in enumerate(rows)):
        return
    for node, peer in ((h, t) for h in range(len(rows)) for t in range(h)):
        if rows[node][peer] != rows[peer][node]:
            yield contradiction(
                f"NUMA node {peer} is {rows[node][peer]} from node {node}, and "
                f"{rows[peer][node]} the other way round",
                at.child("numa_nodes", node, "distances", peer),
                at.child("numa_nodes", peer, "distances", node),
                "copy both rows of `numactl -H`",
            )


def _addresses(spec: HostSpec, at: Origin) -> Iterator[Diagnostic]:
    addresses: dict[str, Origin] = {}
    modules: dict[str, Origin] = {}
    for device, origin in devices(spec, at):
        if device.address is not None:
            message = f"two devices have the address {device.address}"
            yield from _once(addresses, device.address, message, origin.child("address"))
        for index, function in enumerate(functions(device)):
            message = f"two devices have the address {function}"
            place = origin.child("virtual_functions", index)
            yield from _once(addresses, function, message, place)
        if isinstance(device, NicSpec):
            yield from _too_many(device, origin)
        if not isinstance(device, GpuSpec):
            continue
        if device.address is not None and (device.count or 1) > 1:
            yield contradiction(
                f"one address for {device.count} GPUs",
                origin.child("count"),
                origin.child("address"),
                "list each GPU with its own address",
            )
        if device.module_id is not None:
            message = f"two GPUs have the module {device.module_id}"
            place = origin.child("module_id")
            yield from _once(modules, str(device.module_id), message, place)


def _too_many(card: NicSpec, origin: Origin) -> Iterator[Diagnostic]:
    """More virtual functions than the card has (`sriov_totalvfs`)."""
    listed = card.virtual_functions
    count = listed if isinstance(listed, int) else len(listed)
    if card.total_functions is not None and count > card.total_functions:
        yield contradiction(
            f"{count} virtual functions of a card that has at most {card.total_functions}",
            origin.child("virtual_functions"),
            origin.child("total_functions"),
            "`cat /sys/bus/pci/devices/ADDRESS/sriov_totalvfs` prints the most; the firmware's "
            "NUM_OF_VFS sets it",
        )


def _links(spec: HostSpec, at: Origin) -> Iterator[Diagnostic]:
    """Links of devices that the host does not have."""
    known = {"gpu": sum(g.count or 1 for g in spec.gpus), "nic": len(spec.nics)}
    for number, link in enumerate(spec.links):
        for field, names in (("between", link.between), ("to", link.to)):
            for index, name in enumerate(names):
                count = known[name[:3]]
                if int(name[3:]) >= count:
                    yield contradiction(
                        f"a link of '{name}', but the host has {count} in '{name[:3]}s'",
                        at.child("links", number, field, index),
                        at.child(f"{name[:3]}s") if count else None,
                        "devices count from 0, by their places in the list",
                    )
