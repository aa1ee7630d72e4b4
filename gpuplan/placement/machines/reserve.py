"""What a hypervisor host keeps for itself: cores, memory, its kernel line.

The host keeps two physical cores of each NUMA node and a share of its memory; what is left becomes
1 GiB pages. A guest with passed-through devices needs 1 GiB outside its pages (as KubeVirt has it).
"""

from __future__ import annotations

from collections.abc import Iterable

from gpuplan.inventory.v1 import HostSpec, NumaNodeSpec
from gpuplan.plan.model import Core, NumaNode
from gpuplan.sizing.evidence.formula import Formula, Ledger, Quantity, constant
from gpuplan.source import Origin
from gpuplan.units import GIB, parse_ranges

RESERVED_CORES = 2
RESERVED_FRACTION = 1 / 16
RESERVED_MINIMUM_BYTES = 8 * GIB
GUEST_OVERHEAD_BYTES = GIB
PAGE_BYTES = GIB

RESERVE = Formula(
    "max(memory * fraction, minimum)", "B", "default: hosts[].hypervisor.reserved_memory"
)
HUGEPAGES = Formula(
    "max(0, floor((memory - reserve - guests * guest_overhead) / page))",
    "1",
    "the most pages that leave the host's reserve and the guests' overhead outside",
)


def numa_node(spec: HostSpec, number: int, guests: int, at: Origin, ledger: Ledger) -> NumaNode:
    """Node `number` of a host whose GPUs there can have `guests` guests. The evidence for its pages
    goes to `ledger`."""
    node, hypervisor = spec.numa_nodes[number], spec.hypervisor
    kept = hypervisor.reserved_cores if hypervisor else None
    threads = cores(node, spec.threads_per_core)
    assert node.memory is not None
    if not guests or not threads:
        # No guest is on it, so that pages there would only take memory from the host: it has no
        # GPU, or no CPUs, as a node that is a GPU's own memory (Grace Hopper).
        return NumaNode(
            node=number,
            cores=threads,
            memory_bytes=node.memory,
            reserved_cores=threads[: kept or RESERVED_CORES],
            hugepages=0,
            distances=tuple(node.distances or ()),
        )
    origin = at.child("numa_nodes", number, "memory")
    memory = Quantity(node.memory, "B", f"inventory: {origin}")
    reserve = _reserve(spec, number, memory, at, ledger)
    pages = ledger.derive(
        f"node{number}_hugepages",
        HUGEPAGES,
        memory=memory,
        reserve=reserve,
        guests=constant(guests, "1", "guests that the node's GPUs can have"),
        guest_overhead=constant(GUEST_OVERHEAD_BYTES, "B", "KubeVirt, overhead of VFIO guests"),
        page=constant(PAGE_BYTES, "B", "size of a huge page"),
    )
    return NumaNode(
        node=number,
        cores=threads,
        memory_bytes=node.memory,
        reserved_cores=threads[: kept or RESERVED_CORES],
        hugepages=int(pages),
        distances=tuple(node.distances or ()),
    )


def spare(spec: HostSpec, number: int, at: Origin) -> tuple[int, int]:
    """Cores and bytes of node `number`, in whole pages, that the host does not keep: what guests
    and what each of them needs outside its pages can have together."""
    node, hypervisor = spec.numa_nodes[number], spec.hypervisor
    assert node.memory is not None
    kept = hypervisor.reserved_cores if hypervisor else None
    threads = len(cores(node, spec.threads_per_core))
    memory = Quantity(node.memory, "B", f"inventory: {at}")
    reserve = _reserve(spec, number, memory, at, Ledger(spec.names[0])).value
    pages = max(0, int((node.memory - reserve) // PAGE_BYTES))
    return max(0, threads - (kept or RESERVED_CORES)), pages * PAGE_BYTES


def _reserve(spec: HostSpec, number: int, memory: Quantity, at: Origin, ledger: Ledger) -> Quantity:
    stated = spec.hypervisor.reserved_memory if spec.hypervisor else None
    if stated is not None:
        origin = at.child("hypervisor", "reserved_memory")
        return Quantity(stated, "B", f"inventory: {origin}")
    return ledger.derive(
        f"node{number}_reserved_bytes",
        RESERVE,
        memory=memory,
        fraction=constant(RESERVED_FRACTION, "1", "part of a node that the host keeps"),
        minimum=constant(RESERVED_MINIMUM_BYTES, "B", "least that the host keeps of a node"),
    )


def cores(node: NumaNodeSpec, threads: int) -> tuple[Core, ...]:
    """The node's physical cores with the CPU numbers of their threads."""
    if isinstance(node.siblings, list):
        return tuple(Core(cpus=parse_ranges(core)) for core in node.siblings)
    cpus = sorted(parse_ranges(node.cpus or ""))
    count = len(cpus) // threads
    if node.siblings == "adjacent":
        return tuple(Core(cpus=tuple(cpus[threads * i : threads * (i + 1)])) for i in range(count))
    return tuple(Core(cpus=tuple(cpus[i::count])) for i in range(count))


def kernel_parameters(vendor: str, nodes: Iterable[NumaNode]) -> tuple[str, ...]:
    """The host's kernel line. Only Intel's IOMMU has to be switched on. `hugepages=NODE:COUNT` is
    in Linux since 5.16 (commit b5389086ad7b). Cores are not isolated here: guests are pinned, and
    systemd keeps the host's services off their cores, which needs no reboot to change."""
    counts = ",".join(f"{n.node}:{n.hugepages}" for n in nodes if n.hugepages)
    intel = ("intel_iommu=on",) if vendor == "intel" else ()
    return (
        *intel,
        "iommu=pt",
        "default_hugepagesz=1G",
        "hugepagesz=1G",
        *((f"hugepages={counts}",) if counts else ()),
    )
