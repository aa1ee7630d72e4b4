"""What libvirt accepts in silence: faults of a domain's XML against the plan and the host.

It shares no code with the writer of the XML. `virsh define --validate` finds other faults, such as
elements that do not exist; both are needed.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator

from gpuplan.backends.libvirt.problems import fault
from gpuplan.backends.libvirt.verify_cpu import cpu_faults, integer, numbers
from gpuplan.backends.libvirt.verify_network import network_faults
from gpuplan.backends.libvirt.verify_pci import device_faults
from gpuplan.diagnostics import Diagnostic
from gpuplan.plan.model import Fabric, GuestCell, Host, VirtualMachine

UNITS = {"b": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
UNITS |= {"bytes": 1, "k": 2**10, "M": 2**20, "G": 2**30, "TiB": 2**40, "T": 2**40}


def problems(
    xml: str, machine: VirtualMachine, host: Host, fabric: Fabric | None = None
) -> tuple[Diagnostic, ...]:
    """Every fault of `machine`'s domain `xml`, whose NIC functions are of `fabric`. Text that is
    not XML is one fault."""
    if "<!DOCTYPE" in xml:  # where entities come from
        return (fault(machine, "the XML has a document type"),)
    try:
        root = ET.fromstring(xml)  # noqa: S314 - without a document type there is nothing to expand
    except ET.ParseError as problem:
        return (fault(machine, f"not XML: {problem}"),)
    checks = (_identity, _memory, _cells, cpu_faults, _settings, device_faults)
    texts = [text for check in checks for text in check(root, machine, host)]
    texts += network_faults(root, machine, fabric)
    return tuple(fault(machine, text) for text in dict.fromkeys(texts))


def _identity(root: ET.Element, machine: VirtualMachine, host: Host) -> Iterator[str]:
    for tag, expected in (("name", machine.name), ("uuid", machine.uuid)):
        if root.findtext(tag) != expected:
            yield f"<{tag}> is {root.findtext(tag)!r}, the plan says {expected!r}"
    if machine.host != host.name:
        yield f"it is planned for {machine.host}, not {host.name}"


def size(element: ET.Element | None, attribute: str | None = None) -> int:
    """Bytes of `<memory unit='GiB'>4</memory>` or of an attribute; 0 where there is none."""
    if element is None:
        return 0
    text = element.get(attribute) if attribute else element.text
    return max(0, integer(text)) * UNITS.get(element.get("unit", "KiB"), 0)


def _memory(root: ET.Element, machine: VirtualMachine, host: Host) -> Iterator[str]:
    total, current = size(root.find("memory")), size(root.find("currentMemory"))
    cells = [size(c, "memory") for c in root.iterfind("cpu/numa/cell")]
    page = root.find("memoryBacking/hugepages/page")
    page_bytes = size(page, "size")
    if total != machine.memory_bytes:
        yield f"memory is {total} bytes, the plan says {machine.memory_bytes}"
    if current != total:
        yield f"currentMemory ({current}) is not memory ({total}), and nothing can balloon"
    if sum(cells) != total:
        yield f"the cells have {sum(cells)} bytes together, the domain {total}"
    if page is None or page_bytes != host.hugepage_bytes:
        yield f"pages are {page_bytes} bytes, the host reserves pages of {host.hugepage_bytes}"
    for number, cell in enumerate(cells):
        if page_bytes and cell % page_bytes:
            yield f"cell {number} is no whole number of pages"
    uncovered = set(range(len(cells))) - numbers(page.get("nodeset") if page is not None else None)
    if uncovered:
        yield f"cells {sorted(uncovered)} have no huge pages"


def _cells(root: ET.Element, machine: VirtualMachine, host: Host) -> Iterator[str]:
    planned = {str(c.cell): c for c in machine.cells}
    written = {c.get("id", ""): c for c in root.iterfind("cpu/numa/cell")}
    if written.keys() != planned.keys():
        yield f"cells are {sorted(written)}, the plan says {sorted(planned)}"
    bound = {m.get("cellid", ""): m for m in root.iterfind("numatune/memnode")}
    pages = {n.node: n.hugepages * host.hugepage_bytes for n in host.numa_nodes}
    for number in sorted(written.keys() & planned.keys()):
        node, cell = bound.get(number), planned[number]
        if node is None or node.get("mode") != "strict":
            yield f"the memory of cell {number} is not bound to a node"
        elif numbers(node.get("nodeset")) != {cell.host_node}:
            yield f"the memory of cell {number} is bound to node {node.get('nodeset')}, the plan "
            f"says {cell.host_node}"
        if size(written[number], "memory") > pages.get(cell.host_node, 0):
            yield f"cell {number} has more memory than node {cell.host_node} has pages"
        yield from _distances(written[number], cell, machine, host)
    for number in sorted(bound.keys() - written.keys()):
        yield f"memory is bound for cell {number}, which does not exist"


def _distances(
    written: ET.Element, cell: GuestCell, machine: VirtualMachine, host: Host
) -> Iterator[str]:
    row = next((n.distances for n in host.numa_nodes if n.node == cell.host_node), ())
    nodes = {str(c.cell): c.host_node for c in machine.cells}
    for sibling in written.iterfind("distances/sibling"):
        far = nodes.get(sibling.get("id", ""))
        if far is None or far >= len(row) or sibling.get("value") != str(row[far]):
            yield f"the distance from cell {cell.cell} to {sibling.get('id')} is not the host's"


def _settings(root: ET.Element, _machine: VirtualMachine, _host: Host) -> Iterator[str]:
    machine_type = root.find("os/type")
    cpu = root.find("cpu")
    expected = (
        (root.get("type") == "kvm", "the domain does not use KVM"),
        (machine_type is not None and "q35" in machine_type.get("machine", ""), "no q35 machine"),
        (cpu is not None and cpu.get("mode") == "host-passthrough", "the CPU is not the host's"),
        (cpu is not None and cpu.get("migratable") == "off", "the CPU claims to be migratable"),
        (root.find("memoryBacking/locked") is not None, "the memory is not locked"),
        (_model(root, "memballoon") == "none", "there is a memory balloon"),
        (_model(root, "video/model", "type") == "none", "there is a video card"),
    )
    yield from (message for holds, message in expected if not holds)


def _model(root: ET.Element, path: str, attribute: str = "model") -> str | None:
    element = root.find(f"devices/{path}")
    return None if element is None else element.get(attribute)
