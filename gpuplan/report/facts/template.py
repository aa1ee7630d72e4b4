"""A server of the catalogue as an inventory, to plan on machines that are not bought yet."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.catalog.hardware import Host, HostDrives, HostNics
from gpuplan.units import BYTES, parse_bytes

CPU_VENDORS = {"Intel": "intel", "AMD": "amd", "NVIDIA Grace": "arm", "Neoverse": "arm"}


def inventory(host: Host) -> str:
    """A document that loads as it is; comments ask for what no source says."""
    return "\n".join(_lines(host)) + "\n"


def _lines(host: Host) -> Iterator[str]:
    name = host.identifier
    yield f"# {host.name or name}, a machine to plan on before it is bought."
    yield f"# `gpuplan catalog show {name}` says where the numbers come from."
    yield "# For guests of a hypervisor add numa_nodes, PCI addresses and hypervisor"
    yield "# (`gpuplan schema inventory`)."
    yield "apiVersion: gpuplan.dev/inventory/v1"
    yield f"name: {name}"
    yield "hosts:"
    yield f"- names: [{name}-01]  # a name for each machine"
    yield f"  node_type: {name}"
    yield from _processors(host)
    yield f"  memory: {_size(host.memory_bytes)}"
    yield "  gpus:"
    yield f"  - {{type: {host.gpu}, count: {host.gpus}}}"
    yield from _topology(host)
    yield from _cards(host)
    yield from _drives(host)
    yield "  # price: $…/hour  # what one machine costs you; without it, what the GPU is rented for"


def _processors(host: Host) -> Iterator[str]:
    cpu = host.cpu.value if host.cpu else ""
    vendor = next((v for text, v in CPU_VENDORS.items() if text in cpu), None)
    yield f"  cpu_vendor: {vendor}  # {cpu}" if vendor else "  # cpu_vendor: intel, amd or arm"
    yield f"  sockets: {host.sockets}"
    if host.threads_per_core:
        yield f"  threads_per_core: {host.threads_per_core.value:g}"
    else:
        yield "  # threads_per_core: 1  # where `lscpu` says so; otherwise 2"
    yield f"  cpu_cores: {host.cpu_cores}"


def _topology(host: Host) -> Iterator[str]:
    """GPUs by NUMA node as comments: their CPUs are what only the machine knows."""
    if host.topology is None:
        yield "  # numa_node and switch of each GPU: `nvidia-smi topo -m`"
        return
    for number, gpus in enumerate(host.topology.numa_nodes):
        if gpus:
            yield f"  # NUMA node {number} has {_members(gpus, ())}"
    for switch in host.topology.switches:
        yield f"  # a PCIe switch has {_members(switch.gpus, switch.nics)}"


def _members(gpus: tuple[int, ...], nics: tuple[int, ...]) -> str:
    named = {"GPUs": gpus, "compute cards": nics}
    return " and ".join(f"{n} {', '.join(map(str, v))}" for n, v in named.items() if v)


def _cards(host: Host) -> Iterator[str]:
    """Compute cards bound what GPUs exchange; others are named only."""
    compute = [n for n in host.nics if n.purpose == "compute"]
    if compute:
        yield "  nics:"
        yield from (_card(n) for n in compute for _ in range(n.count))
    else:
        yield "  # nics: the cards that GPUs exchange data over, with their bandwidth"
    for nics in host.nics:
        if nics.purpose != "compute":
            use = f" for {nics.purpose}" if nics.purpose else ""
            yield f"  # also {nics.count} × {nics.nic}{use}"


def _card(nics: HostNics) -> str:
    if nics.bytes_per_s is None:
        return f"  - {{type: {nics.nic}}}  # add bandwidth"
    return f"  - {{type: {nics.nic}, bandwidth: {nics.bytes_per_s.value * 8 / 1e9:g} Gb/s}}"


def _drives(host: Host) -> Iterator[str]:
    data = [d for d in host.drives if d.purpose == "data"]
    if data:
        yield "  nvme:"
        yield from (f"  - {{size: {_size(d.size_bytes)}}}" for d in data for _ in range(d.count))
    else:
        yield "  # nvme: drives for scratch space"
    yield from (_other(d) for d in host.drives if d.purpose != "data")


def _other(drives: HostDrives) -> str:
    use = f" for {drives.purpose}" if drives.purpose else ""
    return f"  # also drives{use}: {drives.count} × {_size(drives.size_bytes)}"


def _size(value: int) -> str:
    """The shortest text that reads back as the same number of bytes."""
    texts = (f"{value / factor:.6g} {unit}" for unit, factor in reversed(BYTES.items()))
    return min((t for t in texts if "e" not in t and parse_bytes(t) == value), key=len)
