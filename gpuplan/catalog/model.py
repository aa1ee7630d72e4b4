"""Hardware and component facts as records.

Every fact carries its source and date; an absent fact is None and becomes a diagnostic where it is
needed, never a default.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from gpuplan.frozen import record
from gpuplan.plan.partitions import MigExtension, PartitionName, mig_extension
from gpuplan.plan.records import EngineVariable


@record
class CatalogSource:
    """Where facts of a catalogue file come from. `date` is the source's own (publication, commit or
    capture) when `published`, else the day on which an undated source was read."""

    key: str
    title: str
    where: str
    date: str
    published: bool

    @property
    def citation(self) -> str:
        return f"{self.title}, {self.date}" if self.published else f"{self.title}, read {self.date}"


class Citation(str):
    """Where one fact comes from, as plans print it: `catalog: FILE SUBJECT (TITLE, DATE)`. Whoever
    needs a part of that asks for the part: the entry, which is the file and the field or row, each
    of these, the file's source of it."""

    __slots__ = ("entry", "file", "origin", "subject")
    entry: str
    file: str
    subject: str
    origin: CatalogSource

    def __new__(cls, file: str, subject: str, origin: CatalogSource) -> Citation:
        entry = f"{file} {subject}" if subject else file
        made = super().__new__(cls, f"catalog: {entry} ({origin.citation})")
        made.entry, made.file, made.subject, made.origin = entry, file, subject, origin
        return made

    @property
    def place(self) -> str:
        """The text for readers who know that it is of the catalogue."""
        return self.removeprefix("catalog: ")


@record
class Fact:
    """A value in a base unit; `source` is a `Citation` where it is the catalogue's."""

    value: float
    unit: str
    source: str


@record
class MigEngines:
    """Engines of a MIG instance, or all of a GPU in MIG mode."""

    nvdec: int
    nvenc: int
    jpeg: int
    ofa: int


@record
class MigMode:
    """Whether turning MIG on resets the GPU, and whether it is still on after a reboot. Instances
    never are."""

    resets: bool
    persists: bool
    source: str


@record
class MigProfile:
    """`starts` are the legal first memory slices; it takes `memory_slices` from there. The engines
    of all instances together are at most those of the widest profile."""

    name: PartitionName
    compute_slices: int
    memory_slices: int
    memory_bytes: int
    maximum: int
    starts: tuple[int, ...]
    source: str
    sm_count: int | None = None
    engines: MigEngines | None = None

    @property
    def extension(self) -> MigExtension:
        return mig_extension(self.name)


@record
class VgpuType:
    """`mig_profile` is None for a time-sliced type. `maximum` instances fit one GPU when all have
    this size. Beside other sizes at most `mixed_maximum` do (None: such a GPU takes one size only,
    or no source says how many), each at one of `placements`, `placement_size` long; () where no
    source has them."""

    name: PartitionName
    memory_bytes: int
    maximum: int
    mig_profile: PartitionName | None
    source: str
    mixed_maximum: int | None = None
    placement_size: int | None = None
    placements: tuple[int, ...] = ()


@record
class VgpuHost:
    """What sharing a GPU asks of its host. `mixed_size`: vGPUs of several sizes on one GPU, in
    `region` units of placement; `mmio_bytes` is the address space that a machine with the GPU
    needs. None is unknown."""

    interface: Literal["mediated-device", "virtual-function"]
    mixed_size: bool | None = None
    region: int | None = None
    mmio_bytes: int | None = None
    sources: tuple[str, ...] = ()


@record
class PcieLink:
    generation: int
    lanes: int


@record
class NvlinkFabric:
    """`kind`: `switch`, `bridge` or `mesh`; `domain` is the most GPUs that one fabric joins."""

    kind: str
    generation: int | None = None
    links: int | None = None
    domain: int | None = None


@record
class Achieved:
    """The most that was measured in large bf16 matrix products, and the dense peak that it is
    compared with, which cards may exceed."""

    most_flop_per_s: float
    peak_flop_per_s: float
    source: str

    @property
    def part(self) -> float:
        return self.most_flop_per_s / self.peak_flop_per_s


@record
class StandIn:
    """A GPU whose measurements are taken for another, `of` what (all that a field is for where it
    is empty), and why. Its link and what it achieves scale them."""

    identifier: str
    reason: str
    of: tuple[str, ...] = ()
    architecture: str
    link_bytes_per_s: float
    achieved_bf16: Achieved | None


@record
class FabricPartition:
    """GPUs of an NVSwitch board that go to one guest. `number` is what the fabric manager calls
    them; `modules` count from 1, and are not in the order of PCI addresses."""

    number: int
    modules: tuple[int, ...]


@record
class FabricBoard:
    """An NVSwitch board with every set of its GPUs that can be one guest's."""

    partitions: tuple[FabricPartition, ...]
    source: str

    @property
    def gpus(self) -> int:
        return max(len(p.modules) for p in self.partitions)


@record
class Module:
    """What is sold as one GPU, by its `names`, and seen as so many `devices`."""

    devices: int
    names: tuple[str, ...]


@record
class Gpu:
    """Peaks are dense, in FLOP/s; bandwidths in bytes per second, one direction. `product` is the
    value of the node label `nvidia.com/gpu.product`; `architecture` groups fitted constants.
    What was not measured on the GPU itself is taken from those of `measured_as`, the nearest first;
    kernels that these lack from `kernels_as`, exchanges between GPUs from `collectives_as`.
    `mig_slices` are the memory slices of the whole GPU, 0 without MIG. A GPU without bfloat16
    (compute capability below 8.0) has its FP16 peak as `peak_bf16`. `vgpu_types` are the C series,
    `vgpu_graphics` the Q series. `product_names` are what `nvidia-smi` prints, `pci_ids` what
    `lspci -n` does (`10de:2330`); `aliases` leave others open, and mean this one.
    Everything is of one device; several may stand on a `module`."""

    identifier: str
    name: str
    vendor: str
    architecture: str
    compute_capability: str | None
    form_factor: str
    product: str | None
    memory_bytes: Fact
    memory_bytes_per_s: Fact
    peak_bf16: Fact
    peak_fp8: Fact | None
    peak_int8: Fact | None
    peak_fp4: Fact | None
    nvlink_bytes_per_s: Fact | None
    pcie_bytes_per_s: Fact
    watts: Fact
    bar_bytes: Fact | None
    sm_count: int | None
    mig_slices: int
    mig_profiles: tuple[MigProfile, ...]
    vgpu_types: tuple[VgpuType, ...]
    product_names: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    module: Module | None = None
    pci_ids: tuple[str, ...] = ()
    peak_fp64: Fact | None = None
    peak_fp32: Fact | None = None
    peak_tf32: Fact | None = None
    peak_fp16: Fact | None = None
    peak_fp6: Fact | None = None
    pcie_link: PcieLink | None = None
    nvlink_fabric: NvlinkFabric | None = None
    fabric_board: FabricBoard | None = None
    mig_mode: MigMode | None = None
    vgpu_host: VgpuHost | None = None
    vgpu_graphics: tuple[VgpuType, ...] = ()
    line: str | None = None
    achieved_bf16: Achieved | None = None
    measured_as: tuple[StandIn, ...] = ()
    kernels_as: tuple[StandIn, ...] = ()
    collectives_as: StandIn | None = None

    def capable(self, begin: str) -> bool:
        """Whether its compute capability begins so."""
        return self.compute_capability is not None and self.compute_capability.startswith(begin)

    @property
    def is_card(self) -> bool:
        """Whether it is plugged into a slot, not part of a board or a module."""
        return self.form_factor == "pcie"

    @property
    def superchip(self) -> bool:
        """Whether it stands beside a CPU on one module."""
        return self.form_factor == "superchip"

    @property
    def link_bytes_per_s(self) -> Fact:
        """What joins it to the other GPUs of its machine: NVLink, else PCIe."""
        return self.nvlink_bytes_per_s or self.pcie_bytes_per_s

    def nvlink_gpus(self, node: int) -> int:
        """How many of them NVLink joins at most; where no source says, the GPUs of a node."""
        return (self.nvlink_fabric.domain if self.nvlink_fabric else None) or node

    @property
    def stand_ins(self) -> tuple[StandIn, ...]:
        """All that a prediction for this one may rest on beside itself."""
        last = (self.collectives_as,) if self.collectives_as else ()
        return (*self.measured_as, *self.kernels_as, *last)


@record
class NodeTemplate:
    """A server, as far as plans read it. `numa_nodes` is None where no source says;
    `nvlink_nodes`: of so many such servers NVLink joins all GPUs."""

    identifier: str
    gpu: str
    gpus: int
    sockets: int
    cpu_cores: int
    memory_bytes: int
    numa_nodes: int | None
    nvlink_nodes: int | None = None
    source: Citation


@record
class Price:
    """USD per hour of one GPU with its share of a node, on demand or `spot`. `date` is when the
    list was published, or, where it is not `dated`, when it was read."""

    gpu: str
    usd_per_hour: Decimal
    provider: str
    region: str | None
    date: str
    source: Citation
    dated: bool
    instance: str | None
    capacity: str = "on-demand"


@record
class ComponentPin:
    """A chart that gpuplan installs, by exact version. It was tested with `drivers` and with the
    minor releases of Kubernetes from `kubernetes_tested[0]` to `[1]`, says the source `tested`; ()
    and None where none does. `needed_for`: only where the platform's fabric is of that kind, or
    `cluster`: never, the cluster's owner installs it. `uninstall_removes`: definitions that go
    with the chart though they lie in its `crds/`, and all objects of their kinds with them."""

    name: str
    version: str
    app_version: str | None
    repository: str
    chart: str
    digest: str | None
    namespace: str
    kubernetes_minimum: str | None
    driver: str | None
    source: str
    drivers: tuple[str, ...] = ()
    kubernetes_tested: tuple[str, ...] = ()
    tested: str | None = None
    needed_for: str | None = None
    uninstall_removes: tuple[str, ...] = ()


@record
class CudaPin:
    """The oldest `driver` that programs of a CUDA major release run with."""

    name: str
    driver: str
    source: str


@record
class BuildPin:
    """The image of an `engine` for a `vendor`'s GPUs of these `architectures`, of the engine's own
    version. `tasks` are those that are known to run there."""

    name: str
    engine: str
    vendor: str
    architectures: tuple[str, ...]
    version: str
    image: str
    digest: str | None
    tasks: tuple[str, ...]
    source: str
    environment: tuple[EngineVariable, ...] = ()


@record
class EnginePin:
    """A program by exact image. `tasks` says what it can serve or train, `cuda` the release of CUDA
    that the image is built on; None where no source says; `builds` its images for GPUs of other
    vendors; `processors` what the image is built for, () where no source says."""

    name: str
    version: str
    image: str
    digest: str | None
    tasks: tuple[str, ...]
    source: str
    cuda: str | None = None
    cuda_source: str | None = None
    builds: tuple[BuildPin, ...] = ()
    processors: tuple[str, ...] = ()
