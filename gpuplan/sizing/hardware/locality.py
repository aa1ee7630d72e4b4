"""What the GPUs of a host divide between them: the cores and memory of their NUMA node, where
guests are pinned to it, or of the whole node, where a kubelet gives pods their part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpuplan.catalog.shapes import Shape
from gpuplan.inventory.cores import cores
from gpuplan.plan import window
from gpuplan.plan.model import record
from gpuplan.sizing.evidence.formula import Formula, Ledger, Quantity, constant
from gpuplan.sizing.hardware.housekeeping import kept_cores
from gpuplan.source import Origin

if TYPE_CHECKING:
    from gpuplan.inventory.v1 import HostSpec

KEPT_MEMORY = Formula(window.KEPT_MEMORY, "B", "default: hosts[].hypervisor.reserved_memory")
KEPT_BY_KUBELET = Formula(
    window.KEPT_BY_KUBELET, "B", "what a node keeps for the system, the kubelet and other pods"
)
KEPT_BESIDE_PAGES = Formula(
    window.KEPT_BESIDE_PAGES, "B", "what guests have no huge pages of, the host keeps"
)
CORES_PART = Formula(window.CORES_PART, "1", "its part of the cores that the host does not keep")
MEMORY_PART = Formula(window.MEMORY_PART, "B", "its part of the memory that the host does not keep")


@record
class Locality:
    """`gpus` GPUs with physical `cores` and memory, of which the host keeps some: what it is stated
    to keep (`stated_…`), else the default; of cores `usual_cores`, where other nodes keep some for
    this one. `guests`: they are a hypervisor's. None is unknown."""

    name: str
    gpus: int
    cores: int | None
    memory_bytes: int | None
    numa_nodes: int | None = 1
    guests: bool = False
    stated_cores: int | None = None
    usual_cores: int | None = None
    stated_memory_bytes: int | None = None
    stated_pages: int | None = None
    source: str

    @property
    def kept_cores(self) -> int:
        if self.stated_cores is not None:
            return self.stated_cores
        if self.usual_cores is not None:
            return self.usual_cores
        return window.KEPT_CORES * (self.numa_nodes or 1)

    @property
    def _why_kept(self) -> str:
        if self.stated_cores is not None:
            return f"{self.source}, reserved_cores"
        if self.usual_cores == 0:
            return "constant: cores of NUMA nodes without GPUs for the host, where there are enough"
        if self.numa_nodes is None:
            return "default: cores of one NUMA node, where the platform names none, for the host"
        return "constant: cores of each NUMA node for the host"

    @property
    def free_cores(self) -> int:
        """Cores that the host does not keep."""
        return max(0, (self.cores or 0) - self.kept_cores)

    @property
    def overhead(self) -> Quantity:
        """Memory that each guest takes beside its own; a pod takes none."""
        size = window.GUEST_OVERHEAD_BYTES if self.guests else 0
        return constant(size, "B", "KubeVirt, overhead of VFIO guests" if size else "none of a pod")

    def core_part(self, ledger: Ledger, name: str) -> Quantity | None:
        """The cores for one GPU, where the cores are known."""
        if self.cores is None:
            return None
        return ledger.derive(
            name,
            CORES_PART,
            cores=Quantity(self.cores, "1", self.source),
            kept_cores=Quantity(self.kept_cores, "1", self._why_kept),
            gpus=Quantity(self.gpus, "1", self.source),
        )

    def memory_part(self, ledger: Ledger, name: str, kept: str) -> Quantity | None:
        """The memory for one GPU, where the memory is known; what the host keeps goes to `ledger`
        as `kept`."""
        if self.memory_bytes is None:
            return None
        return ledger.derive(
            name,
            MEMORY_PART,
            memory=self._memory,
            kept_memory=self.kept_memory(ledger, kept),
            gpus=Quantity(self.gpus, "1", self.source),
        )

    def kept_memory(self, ledger: Ledger, name: str) -> Quantity:
        """What the host keeps of the memory, which is known; more of it than it must where it is
        stated to have few huge pages."""
        if self.stated_pages is None:
            return self.least_kept(ledger, name)
        return ledger.derive(
            name,
            KEPT_BESIDE_PAGES,
            least_kept=self.least_kept(ledger, f"least_{name}"),
            memory=self._memory,
            hugepages=Quantity(self.stated_pages, "1", f"{self.source}, hugepages"),
            page=constant(window.PAGE_BYTES, "B", "size of a huge page"),
        )

    def least_kept(self, ledger: Ledger, name: str) -> Quantity:
        """What it must keep."""
        memory = self._memory
        if self.stated_memory_bytes is not None:
            stated = Quantity(self.stated_memory_bytes, "B", f"{self.source}, reserved_memory")
            return ledger.given(name, stated)
        if not self.guests:
            part = constant(window.KEPT_BY_KUBELET_FRACTION, "1", "part of a node that it keeps")
            return ledger.derive(name, KEPT_BY_KUBELET, memory=memory, fraction=part)
        return ledger.derive(
            name,
            KEPT_MEMORY,
            memory=memory,
            fraction=constant(window.KEPT_MEMORY_FRACTION, "1", "part of a node that it keeps"),
            minimum=constant(window.KEPT_MEMORY_LEAST_BYTES, "B", "least that it keeps of a node"),
        )

    @property
    def free_pages(self) -> int:
        """Whole pages of memory that the host does not keep: what guests and what each of them
        needs beside its own can have together."""
        return self._pages(self.kept_memory(Ledger(self.name), "kept"))

    @property
    def most_pages(self) -> int:
        """The same, whatever is stated of its huge pages."""
        return self._pages(self.least_kept(Ledger(self.name), "kept"))

    def _pages(self, kept: Quantity) -> int:
        return max(0, int((self._memory.value - kept.value) // window.PAGE_BYTES))

    @property
    def _memory(self) -> Quantity:
        """The memory, which is known."""
        assert self.memory_bytes is not None
        return Quantity(self.memory_bytes, "B", self.source)


def localities(spec: HostSpec, at: Origin, *, guests: bool) -> Iterator[Locality]:
    """One for each NUMA node of a host. Where there is one node all GPUs are on it."""
    hypervisor = spec.hypervisor
    usual = kept_cores(spec) if guests else {}
    for number, node in enumerate(spec.numa_nodes):
        here = [g for g in spec.gpus if g.numa_node == number or len(spec.numa_nodes) == 1]
        yield Locality(
            name=f"node {number} of {spec.names[0]}",
            gpus=sum(g.count or 1 for g in here),
            cores=len(cores(node, spec.threads_per_core)),
            memory_bytes=node.memory,
            guests=guests,
            stated_cores=hypervisor.reserved_cores if hypervisor else None,
            usual_cores=usual.get(number),
            stated_memory_bytes=hypervisor.reserved_memory if hypervisor else None,
            stated_pages=hypervisor.hugepages if hypervisor and guests else None,
            source=f"inventory: {at.child('numa_nodes', number)}",
        )


def of_shape(shape: Shape, *, guests: bool) -> Locality:
    """One of the equal NUMA nodes of a node whose cores and memory are known; all of it where they
    cannot be equal."""
    nodes = shape.numa_nodes or 1
    nodes = nodes if shape.gpus % nodes == 0 else 1
    cores, memory = shape.cpu_cores, shape.memory_bytes
    assert cores is not None
    assert memory is not None
    return Locality(
        name=f"a NUMA node of {shape.name}",
        gpus=shape.gpus // nodes,
        cores=cores // nodes,
        memory_bytes=memory // nodes,
        guests=guests,
        source=shape.source,
    )
