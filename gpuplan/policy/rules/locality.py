"""Rules about where a virtual machine lies on its host: NUMA nodes and huge pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gpuplan.plan import window
from gpuplan.plan.model import Core, GuestCell, Host, Plan, VirtualMachine
from gpuplan.policy.api import Finding, Subject
from gpuplan.units import GIB, MIB, format_bytes

PASSED_THROUGH = ("gpu", "vgpu")


def _host(plan: Plan, machine: VirtualMachine) -> Host | None:
    return next((h for h in plan.hosts if h.name == machine.host), None)


def _cpus(cores: tuple[Core, ...]) -> set[int]:
    return {cpu for core in cores for cpu in core.cpus}


def numa_split(subject: Subject) -> Iterator[Finding]:
    """A virtual machine's GPU, vCPUs, memory and network lie on different NUMA nodes.

    Why: every transfer between host memory and the GPU then crosses the link between the sockets,
    which halves its bandwidth and takes it from the neighbours; libvirt accepts it in silence.

    Looks at: for each virtual machine with GPUs, the host node of every guest cell, the node of the
    host CPUs its vCPUs, emulator and I/O threads are pinned to, the node of each GPU, and that of
    the card whose function is beside it.

    Threshold: none; everything of a cell is on one node, and a cell without a GPU has no place in a
    virtual machine whose GPUs are all elsewhere. Where the host keeps no cores of the cell's node,
    emulator and I/O threads are on those that it keeps nearest. A function of a card on another
    node is a finding where it was avoidable: a card on the GPU's node, of which guests have
    functions, has one left.
    Source: facts of the inventory (`numactl -H`, `nvidia-smi topo -m`).

    Fix: compile again; where the host is too full for a local placement, use a smaller VM or
    another host.

    Silent: for a host that the plan does not describe; for a virtual machine without GPUs.
    """
    for machine in subject.plan.virtual_machines:
        host = _host(subject.plan, machine)
        gpus = [d for d in machine.devices if d.kind in PASSED_THROUGH]
        if host is None or not gpus:
            continue
        nodes = {d.address: d.numa_node for d in host.devices}
        cells = {c.cell: c for c in machine.cells}
        for gpu in gpus:
            node = nodes.get(gpu.parent or gpu.address)
            cell = cells.get(gpu.cell)
            if node is None:
                yield _split(
                    machine, f"devices[{gpu.name}]", f"{gpu.address} is not on {host.name}"
                )
            elif cell is None or cell.host_node != node:
                where = "no cell" if cell is None else f"node {cell.host_node}"
                place = f"{gpu.name} is on node {node}, its vCPUs and memory on {where}"
                yield _split(machine, f"devices[{gpu.name}]", place)
        used = {g.cell for g in gpus}
        for cell in machine.cells:
            yield from _cell(machine, cell, host, has_gpu=cell.cell in used)
        yield from _functions(subject.plan, machine, host)


def _functions(plan: Plan, machine: VirtualMachine, host: Host) -> Iterator[Finding]:
    """Of cards on another node than the GPU they are beside, which has their number."""
    beside = {f"nic{d.group}": d for d in machine.devices if d.kind in PASSED_THROUGH}
    nodes = {d.address: d.numa_node for d in host.devices}
    guests = (m for m in plan.virtual_machines if m.host == host.name)
    taken = Counter(d.parent for m in guests for d in m.devices if d.kind == "nic")
    for device in machine.devices:
        gpu = beside.get(device.name) if device.kind == "nic" else None
        node = nodes.get(gpu.parent or gpu.address) if gpu else None
        if gpu is None or nodes.get(device.parent or "") in (node, None):
            continue
        spare = [
            d.address
            for d in host.devices
            if d.numa_node == node and 0 < taken[d.address] < d.virtual_functions
        ]
        if spare:
            place = (
                f"{device.name} is of a card on node {nodes[device.parent or '']}, {gpu.name} on"
                f" node {node}, where {spare[0]} has a function left"
            )
            yield _split(machine, f"devices[{device.name}]", place)


def _cell(
    machine: VirtualMachine, cell: GuestCell, host: Host, *, has_gpu: bool
) -> Iterator[Finding]:
    path = f"cells[{cell.cell}]"
    if not has_gpu:
        place = f"cell {cell.cell} is on node {cell.host_node}, where the VM has no GPU"
        yield _split(machine, path, place)
    local = {
        cpu for node in host.numa_nodes if node.node == cell.host_node for cpu in _cpus(node.cores)
    }
    near = _cpus(window.helpers(host.numa_nodes, cell.host_node))
    serving = {*cell.emulator_cpus, *cell.iothread_cpus} - near
    remote = sorted({*(p.cpu for p in cell.pins), *serving} - local)
    if remote:
        shown = ", ".join(map(str, remote[:4])) + ("…" if len(remote) > 4 else "")
        place = (
            f"cell {cell.cell} is on node {cell.host_node}, but uses host CPU {shown} of another"
        )
        yield _split(machine, f"{path}.pins", place)


def _split(machine: VirtualMachine, path: str, place: str) -> Finding:
    return Finding(
        resource=f"virtual_machine/{machine.name}",
        path=f"virtual_machines[{machine.name}].{path}",
        message=f"VM {machine.name} is split over NUMA nodes: {place}",
        help="compile the stack again, or use a smaller VM that fits one node",
        origin=machine.origin,
    )


def huge_pages(subject: Subject) -> Iterator[Finding]:
    """Huge pages do not cover a virtual machine's memory.

    Why: a passed-through GPU pins all guest memory. With 4 KiB pages that takes minutes at boot and
    fills the IOMMU's tables; with too few huge pages the machine does not start.

    Looks at: the page size of each virtual machine with passed-through devices, whether each cell
    is a whole number of pages, whether the cells add up to the machine's memory, and whether each
    host node has pages for all cells on it.

    Threshold: from `required_from_gibibytes` of guest memory huge pages are required; the pages of
    a node must cover its cells exactly or better. Source: libvirt `memoryBacking/hugepages`, and
    the kernel's vfio documentation.

    Fix: reserve more pages on the host (`hugepages=` on its kernel line), or a smaller VM.

    Silent: about the host's pages when the plan does not describe the host; for a virtual machine
    without passed-through devices.
    """
    least = subject.thresholds["required_from_gibibytes"] * GIB
    for machine in subject.plan.virtual_machines:
        if machine.devices:
            yield from _machine_pages(subject.plan, machine, least)
    for host in subject.plan.hosts:
        yield from _host_pages(subject.plan, host)


def _machine_pages(plan: Plan, machine: VirtualMachine, least: int) -> Iterator[Finding]:
    page, host = machine.hugepage_bytes, _host(plan, machine)
    cells = sum(c.memory_bytes for c in machine.cells)
    if cells != machine.memory_bytes:
        yield _uncovered(
            machine,
            "memory_bytes",
            f"has {format_bytes(machine.memory_bytes)}, its cells {format_bytes(cells)}",
        )
    if page < 2 * MIB:
        if machine.memory_bytes >= least:
            yield _uncovered(
                machine,
                "hugepage_bytes",
                f"has {format_bytes(machine.memory_bytes)} and a passed-through device, but no "
                "huge pages",
            )
        return
    for cell in machine.cells:
        if cell.memory_bytes % page:
            yield _uncovered(
                machine,
                f"cells[{cell.cell}]",
                f"has a cell of {cell.memory_bytes:,} bytes, which is no whole number of "
                f"{format_bytes(page)} pages",
            )
    if host is not None and page != host.hugepage_bytes:
        yield _uncovered(
            machine,
            "hugepage_bytes",
            f"wants {format_bytes(page)} pages, {host.name} reserves "
            f"{format_bytes(host.hugepage_bytes)} ones",
        )


def _uncovered(machine: VirtualMachine, path: str, fault: str) -> Finding:
    return Finding(
        resource=f"virtual_machine/{machine.name}",
        path=f"virtual_machines[{machine.name}].{path}",
        message=f"VM {machine.name} {fault}",
        help="make each cell a whole number of huge pages of the size the host reserves",
        origin=machine.origin,
    )


def _host_pages(plan: Plan, host: Host) -> Iterator[Finding]:
    for node in host.numa_nodes:
        cells = [
            (machine.name, cell.memory_bytes)
            for machine in plan.virtual_machines
            if machine.host == host.name and machine.hugepage_bytes == host.hugepage_bytes
            for cell in machine.cells
            if cell.host_node == node.node
        ]
        need, reserved = sum(b for _, b in cells), node.hugepages * host.hugepage_bytes
        if need > reserved:
            yield Finding(
                resource=f"host/{host.name}",
                path=f"hosts[{host.name}].numa_nodes[{node.node}].hugepages",
                message=f"node {node.node} of {host.name} reserves {format_bytes(reserved)} of "
                f"huge pages; {', '.join(sorted({n for n, _ in cells}))} need {format_bytes(need)}",
                help="reserve more huge pages on the host's kernel line, or use smaller VMs",
                requested=need,
                capacity=reserved,
                unit="B",
                origin=host.origin,
            )
