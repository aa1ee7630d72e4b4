"""A GPU, with its MIG profiles and vGPU types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from gpuplan.catalog.documents.base import (
    Bytes,
    Count,
    FactDocument,
    File,
    Flops,
    Identifier,
    PciId,
    Rate,
    Strict,
    Watts,
)
from gpuplan.catalog.documents.mig import Mig
from gpuplan.catalog.documents.vgpu import Vgpu
from gpuplan.vendors import VENDORS

# Bytes per second and lane in one direction, as the files round them.
PCIE_LANE = {3: 1e9, 4: 2e9, 5: 4e9, 6: 8e9, 7: 16e9}

Subject = Literal["kernels", "training", "images"]
SUBJECTS: tuple[Subject, ...] = get_args(Subject)


class PcieLink(Strict):
    """The widest link of the device."""

    generation: Annotated[int, Field(ge=3, le=7)]
    lanes: Literal[4, 8, 16]
    source: str


class NvlinkFabric(Strict):
    """How NVLink joins GPUs: through switches, a bridge across two cards, a mesh on the board, or
    not at all. `domain` is the most GPUs that one fabric joins."""

    kind: Literal["switch", "bridge", "mesh"]
    generation: Annotated[int, Field(ge=2, le=6)] | None = None
    links: Count | None = None
    domain: Annotated[int, Field(ge=2)] | None = None
    source: str


class Achieved(Strict):
    """The most that was measured in large matrix products, and the dense `peak` that it is compared
    with. Cards may run faster than the clock that their peak is stated for."""

    value: Flops
    peak: Flops
    source: str


class StandIn(Strict):
    """The GPU whose measurements are taken for this one, and why that is fair."""

    gpu: Identifier
    reason: Annotated[str, Field(min_length=1)]


class Measured(StandIn):
    """`of`: what is taken from it; the rest stays unknown."""

    of: Annotated[list[Subject], Field(min_length=1)] = list(SUBJECTS)


class Module(Strict):
    """What is sold as one GPU and seen as `devices` of them, each with a memory of its own: by
    drivers, schedulers and engines. `names` are those it is sold by."""

    devices: Annotated[int, Field(ge=2)]
    names: Annotated[list[str], Field(min_length=1)]
    source: str


class FabricBoard(Strict):
    """An NVSwitch board: the sets of GPUs that its fabric manager can give to one guest, by their
    numbers there. GPUs are numbered by module, which is not the order of their addresses."""

    partitions: dict[int, Annotated[list[Count], Field(min_length=1)]]
    source: str

    @model_validator(mode="after")
    def _sound(self) -> Self:
        sets = [tuple(modules) for modules in self.partitions.values()]
        board = max(sets, key=len)
        if board != tuple(range(1, len(board) + 1)):
            raise ValueError("no partition is the whole board")
        for modules in sets:
            if sorted(set(modules)) != list(modules) or not set(modules) <= set(board):
                raise ValueError(f"{list(modules)} are not modules of the board")
        if len(set(sets)) < len(sets):
            raise ValueError("two partitions have the same modules")
        return self


_CITED = (FactDocument, Achieved, PcieLink, NvlinkFabric, FabricBoard, Module)


class GpuFile(File):
    """One GPU. Peaks are dense; `nvlink` and `pcie` are one direction; `memory` is what the device
    reports, where a capture exists. `product` is the node label, `product_names` are what
    `nvidia-smi` prints, `pci_ids` the vendor and device that `lspci -n` prints. Of several GPUs
    that a name leaves open, the one with it among its `aliases` is meant.

    `architecture` groups fitted constants. Where the GPU was not measured itself, `measured_as`
    was; `kernels_as` only for kernels that its own tables lack; `collectives_as` for exchanges
    between GPUs. All facts are of one device; several may stand on a `module`."""

    kind: Literal["gpu"]
    name: str
    vendor: Literal["nvidia", "amd", "intel"]
    line: Literal["data-center", "professional", "geforce", "instinct", "radeon", "arc"]
    architecture: str
    compute_capability: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]$")] | None = None
    form_factor: str
    product: FactDocument[Annotated[str, Field(pattern=r"^[\w.-]{1,63}$")]] | None = None
    product_names: FactDocument[Annotated[list[str], Field(min_length=1)]] | None = None
    aliases: list[str] = []
    module: Module | None = None
    pci_ids: FactDocument[Annotated[list[PciId], Field(min_length=1)]] | None = None
    memory: FactDocument[Bytes]
    memory_bandwidth: FactDocument[Rate]
    peak_bf16: FactDocument[Flops]
    peak_fp64: FactDocument[Flops] | None = None
    peak_fp32: FactDocument[Flops] | None = None
    peak_tf32: FactDocument[Flops] | None = None
    peak_fp16: FactDocument[Flops] | None = None
    peak_fp8: FactDocument[Flops] | None = None
    peak_fp6: FactDocument[Flops] | None = None
    peak_int8: FactDocument[Flops] | None = None
    peak_fp4: FactDocument[Flops] | None = None
    achieved_bf16: Achieved | None = None
    nvlink: FactDocument[Rate] | None = None
    nvlink_fabric: NvlinkFabric | None = None
    fabric_board: FabricBoard | None = None
    pcie: FactDocument[Rate]
    pcie_link: PcieLink | None = None
    power: FactDocument[Watts]
    bar: FactDocument[Bytes] | None = None
    sm_count: FactDocument[Count] | None = None
    measured_as: Measured | None = None
    kernels_as: StandIn | None = None
    collectives_as: StandIn | None = None
    mig: Mig | None = None
    vgpu: Vgpu | None = None

    def cited(self) -> Iterable[str]:
        for field in type(self).model_fields:
            value = getattr(self, field)
            if isinstance(value, _CITED):
                yield value.source
        if self.mig:
            yield self.mig.source
            yield from (p.source for p in (*self.mig.profiles, self.mig.mode) if p and p.source)
        if self.vgpu:
            yield from self.vgpu.cited()

    @model_validator(mode="after")
    def _plausible(self) -> Self:
        bf16, memory = self.peak_bf16.value, self.memory.value
        if self.peak_fp8 and self.peak_fp8.value > 2.1 * bf16:
            raise ValueError("peak_fp8 is more than twice peak_bf16: is it with sparsity?")
        # GeForce cards accumulate BF16 in FP32 at half rate, FP4 at full rate.
        most = 8.5 if self.line == "geforce" else 6.5
        if self.peak_fp4 and self.peak_fp4.value > most * bf16:
            raise ValueError(f"peak_fp4 is more than {most:g} × peak_bf16: is it with sparsity?")
        for p in self.mig.profiles if self.mig else []:
            if p.memory * p.maximum > memory:
                raise ValueError(f"{p.maximum} × {p.name} is more than the GPU's memory")
        self._check_capability()
        self._check_links()
        self._check_vgpu()
        if self.measured_as and self.kernels_as:
            raise ValueError("kernels_as is for a GPU whose own kernels were measured")
        return self

    def _check_capability(self) -> None:
        """It is stated where it tells the number formats, and there alone."""
        maker = VENDORS.get(self.vendor)
        if maker and (maker.formats is None) is not bool(self.compute_capability):
            word = "no" if maker.formats else "a"
            raise ValueError(f"{maker.title}'s GPUs have {word} compute_capability")

    def _check_links(self) -> None:
        link = self.pcie_link
        if link and self.pcie.value != PCIE_LANE[link.generation] * link.lanes:
            raise ValueError(f"pcie is not that of generation {link.generation} x{link.lanes}")
        if self.nvlink_fabric and not self.nvlink:
            raise ValueError("an nvlink_fabric needs nvlink")
        if self.fabric_board and not (self.nvlink_fabric and self.nvlink_fabric.kind == "switch"):
            raise ValueError("a fabric_board needs an nvlink_fabric of switches")

    def _check_vgpu(self) -> None:
        types = [*self.vgpu.types, *self.vgpu.graphics] if self.vgpu else []
        profiles = {p.name: p for p in self.mig.profiles} if self.mig else {}
        for t in types:
            if t.mig_profile and t.mig_profile not in profiles:
                raise ValueError(f"{t.name}: no MIG profile '{t.mig_profile}'")
            # Types are named in whole gigabytes, rounded; a hundredth covers the rounding.
            if t.memory * t.maximum > self.memory.value * 1.01:
                raise ValueError(f"{t.maximum} × {t.name} is more than the GPU's memory")
