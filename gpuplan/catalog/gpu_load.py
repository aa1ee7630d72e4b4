"""GPU entries of the compiled catalogue as records, and the types that a device may be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpuplan.catalog.citations import Citations
from gpuplan.catalog.model import (
    Achieved,
    FabricBoard,
    FabricPartition,
    Fact,
    Gpu,
    MigEngines,
    MigMode,
    MigProfile,
    Module,
    NvlinkFabric,
    PcieLink,
    VgpuHost,
    VgpuType,
)
from gpuplan.catalog.stand_ins import stand_ins

# Field of the record: field of the file, base unit.
FACTS = {
    "memory_bytes": ("memory", "B"),
    "memory_bytes_per_s": ("memory_bandwidth", "B/s"),
    "peak_fp64": ("peak_fp64", "FLOP/s"),
    "peak_fp32": ("peak_fp32", "FLOP/s"),
    "peak_tf32": ("peak_tf32", "FLOP/s"),
    "peak_bf16": ("peak_bf16", "FLOP/s"),
    "peak_fp16": ("peak_fp16", "FLOP/s"),
    "peak_fp8": ("peak_fp8", "FLOP/s"),
    "peak_fp6": ("peak_fp6", "FLOP/s"),
    "peak_int8": ("peak_int8", "FLOP/s"),
    "peak_fp4": ("peak_fp4", "FLOP/s"),
    "nvlink_bytes_per_s": ("nvlink", "B/s"),
    "pcie_bytes_per_s": ("pcie", "B/s"),
    "watts": ("power", "W"),
    "bar_bytes": ("bar", "B"),
}
# A device is of a type when it reports its memory within this share: nominal sizes are up to 8 %
# off, and sizes that share a name differ by a fifth or more.
NEAR = 0.1


def matching(
    entries: Mapping[str, Any],
    product: str | None,
    pci_id: str | None,
    memory_bytes: float | None,
) -> tuple[str, ...]:
    """Identifiers of the types that agree with all that is given, sorted."""
    return tuple(
        name
        for name, entry in sorted(entries.items())
        if _agrees(entry, product, pci_id)
        and (memory_bytes is None or reports(entry, memory_bytes))
    )


def _agrees(entry: Mapping[str, Any], product: str | None, pci_id: str | None) -> bool:
    """Nothing contradicts, and a name or an identifier says that it is this type."""
    labels, pci = _labels(entry), entry["pci"]
    named = product is not None and bool(labels) and _label(product) in labels
    identified = pci_id is not None and pci_id.lower() in pci
    if product is not None and labels and not named:
        return False
    if pci_id is not None and pci and not identified:
        return False
    return named or identified


def reports(entry: Mapping[str, Any], memory_bytes: float) -> bool:
    """Whether a device with so much memory may be of the type."""
    known: float = entry["facts"]["memory"][0]
    return abs(known - memory_bytes) <= NEAR * known


def _labels(entry: Mapping[str, Any]) -> set[str]:
    names = [*entry["names"], entry["plain"]["product"] or ""]
    return {_label(name) for name in names if name}


def _label(product: str) -> str:
    """One spelling of a name: node labels have dashes for spaces, and older drivers (450) leave out
    the maker's name."""
    return product.strip().replace(" ", "-").casefold().removeprefix("nvidia-")


def load_gpu(entry: dict[str, Any], citations: Citations, find: Callable[[str], Gpu]) -> Gpu:
    """`find` gives the GPUs that stand in for it, which hand on their own stand-ins."""
    return Gpu(
        **entry["plain"],
        **_facts(entry["facts"], citations),
        product_names=tuple(entry["names"]),
        aliases=tuple(entry["aliases"]),
        module=_module(entry["module"]),
        pci_ids=tuple(entry["pci"]),
        pcie_link=_pcie(entry["links"]["pcie"]),
        nvlink_fabric=_nvlink(entry["links"]["nvlink"]),
        fabric_board=_board(entry["links"]["board"], citations),
        mig_profiles=tuple(_profile(row, citations) for row in entry["mig"]),
        mig_mode=_mode(entry["mig_mode"], citations),
        vgpu_types=tuple(_vgpu(row, citations) for row in entry["vgpu"]),
        vgpu_graphics=tuple(_vgpu(row, citations) for row in entry["vgpu_graphics"]),
        vgpu_host=_host(entry["vgpu_host"], citations),
        achieved_bf16=_achieved(entry["achieved"], citations),
        **stand_ins(entry["stand_ins"], find),
    )


def _module(row: list[Any] | None) -> Module | None:
    return Module(devices=row[0], names=tuple(row[1])) if row else None


def _achieved(row: list[Any] | None, citations: Citations) -> Achieved | None:
    if not row:
        return None
    reached, peak, key = row
    source = citations.of(key, "achieved_bf16")
    return Achieved(most_flop_per_s=reached, peak_flop_per_s=peak, source=source)


def _facts(facts: dict[str, Any], citations: Citations) -> dict[str, Any]:
    return {
        field: Fact(value=facts[name][0], unit=unit, source=citations.of(facts[name][1], name))
        if name in facts
        else None
        for field, (name, unit) in FACTS.items()
    }


def _pcie(row: list[int] | None) -> PcieLink | None:
    return PcieLink(generation=row[0], lanes=row[1]) if row else None


def _nvlink(row: list[Any] | None) -> NvlinkFabric | None:
    if not row:
        return None
    kind, generation, links, domain = row
    return NvlinkFabric(kind=kind, generation=generation, links=links, domain=domain)


def _board(row: list[Any] | None, citations: Citations) -> FabricBoard | None:
    if not row:
        return None
    return FabricBoard(
        partitions=tuple(FabricPartition(number=n, modules=tuple(m)) for n, m in row[0]),
        source=citations.of(row[1], "fabric_board"),
    )


def _mode(row: list[Any] | None, citations: Citations) -> MigMode | None:
    if not row:
        return None
    return MigMode(resets=row[0], persists=row[1], source=citations.of(row[2], "mig mode"))


def _profile(row: list[Any], citations: Citations) -> MigProfile:
    name, compute, slices, memory, maximum, starts, key, sm_count, engines = row
    return MigProfile(
        name=name,
        compute_slices=compute,
        memory_slices=slices,
        memory_bytes=memory,
        maximum=maximum,
        starts=tuple(starts),
        source=citations.of(key, f"mig {name}"),
        sm_count=sm_count,
        engines=engines and MigEngines(**dict(zip(ENGINES, engines, strict=True))),
    )


ENGINES = ("nvdec", "nvenc", "jpeg", "ofa")


def _vgpu(row: list[Any], citations: Citations) -> VgpuType:
    name, memory, maximum, profile, key, mixed, size, placements = row
    return VgpuType(
        name=name,
        memory_bytes=memory,
        maximum=maximum,
        mig_profile=profile,
        source=citations.of(key, f"vgpu {name}"),
        mixed_maximum=mixed,
        placement_size=size,
        placements=tuple(placements),
    )


def _host(rows: dict[str, Any] | None, citations: Citations) -> VgpuHost | None:
    if not rows:
        return None
    known = {field: row for field, row in rows.items() if row}
    sources = {
        citations.of(row[1], f"vgpu {field.removesuffix('_bytes')}"): None
        for field, row in known.items()
    }
    return VgpuHost(**{field: row[0] for field, row in known.items()}, sources=tuple(sources))
