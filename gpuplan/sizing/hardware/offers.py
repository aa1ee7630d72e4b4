"""The hardware that a platform offers: GPU types, and the nodes that they come in."""

from __future__ import annotations

from gpuplan.catalog.model import Gpu, Price
from gpuplan.catalog.shapes import Shape
from gpuplan.diagnostics import Remedy
from gpuplan.plan.model import Fabric, record
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.hardware.locality import Locality
from gpuplan.source import Origin


@record
class GpuOffer:
    """One GPU type that may be used, with the nodes it comes in. `node_count` is None where nodes
    may be bought without limit; other None are unknown. Cores are physical. `node_names` are of
    the machines of an inventory, `cards_bytes_per_s` is what a machine's network cards carry;
    `listed` is the catalogue's listing where the price is that. A workload is the same wherever it
    stands: `localities` are all that its GPUs may be of.

    `unshared` is a GPU of a type that is not shared as vGPUs, since nobody states the virtual
    functions that its guests would get, while another type of the site can be.

    `nvlink_nodes` are those of an NVLink domain, of the smallest that has such nodes; 1: NVLink
    ends at the node, or the target keeps no work inside a domain.

    `node_watts` is the most that a whole node draws, where a source says so, `rack_watts`
    what a rack for such nodes feeds. `shape` is the
    catalogue's, where nodes are bought in one of several."""

    gpu: Gpu
    node_type: str | None = None
    gpus_per_node: int
    node_count: int | None = None
    node_names: tuple[str, ...] = ()
    cpu_cores_per_node: int | None = None
    threads_per_core: int | None = None
    memory_bytes_per_node: int | None = None
    cards_bytes_per_s: float | None = None
    nvlink_nodes: int = 1
    numa_nodes: int | None = None
    localities: tuple[Locality, ...] = ()
    unshared: Origin | None = None
    usd_per_gpu_hour: Quantity | None = None
    listed: Price | None = None
    node_watts: Quantity | None = None
    rack_watts: Quantity | None = None
    shape: Shape | None = None
    origin: Origin | None = None

    @property
    def shape_name(self) -> str | None:
        return None if self.shape is None else self.shape.name

    @property
    def pool(self) -> str:
        """The name of the pool of its nodes; of several shapes each has one of its own."""
        gpu = self.gpu.identifier
        if self.shape is None:
            return gpu
        return f"{gpu}-x{self.gpus_per_node}" + ("-spot" if self.shape.spot else "")

    @property
    def spot(self) -> bool:
        """Whether its nodes may be taken back while work runs."""
        return self.shape is not None and self.shape.spot


@record
class Site:
    """What the platform offers."""

    target: str
    gpus: tuple[GpuOffer, ...]
    fabric: Fabric | None = None
    storage_bytes_per_s: Quantity | None = None
    storage_usd_per_gb_month: Quantity | None = None
    storage_class: str | None = None
    storage_shared: bool | None = None


@record
class OtherSite:
    """What another platform would offer: the `changes` of the manifest, in `words`; none where
    machines have to be bought that the manifest cannot name."""

    words: str
    changes: Remedy
    site: Site
