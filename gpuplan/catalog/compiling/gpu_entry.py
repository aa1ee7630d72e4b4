"""A checked GPU file as its entry of `compiled.json`."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from gpuplan.catalog.documents.base import FactDocument
from gpuplan.catalog.documents.gpu import Achieved, GpuFile
from gpuplan.catalog.documents.vgpu import VgpuTypeDocument
from gpuplan.catalog.gpu_load import FACTS
from gpuplan.catalog.stand_ins import STAND_INS


def number(value: Any) -> Any:
    """Decimals as text, whole floats as integers: no digit is lost or added."""
    if isinstance(value, Decimal):
        return str(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def gpu_entry(gpu: GpuFile) -> dict[str, Any]:
    facts = {name: getattr(gpu, name) for name, _ in FACTS.values()}
    return {
        "plain": {
            "identifier": gpu.id,
            "name": gpu.name,
            "vendor": gpu.vendor,
            "line": gpu.line,
            "architecture": gpu.architecture,
            "compute_capability": gpu.compute_capability,
            "form_factor": gpu.form_factor,
            "product": gpu.product.value if gpu.product else None,
            "sm_count": gpu.sm_count.value if gpu.sm_count else None,
            "mig_slices": gpu.mig.memory_slices if gpu.mig else 0,
        },
        "names": gpu.product_names.value if gpu.product_names else [],
        "aliases": gpu.aliases,
        "module": gpu.module and [gpu.module.devices, gpu.module.names],
        "pci": gpu.pci_ids.value if gpu.pci_ids else [],
        "facts": {
            name: [number(fact.value), fact.source]
            for name, fact in facts.items()
            if isinstance(fact, FactDocument)
        },
        "achieved": gpu.achieved_bf16 and _achieved(gpu.achieved_bf16),
        "stand_ins": {
            use: [stand_in.gpu, stand_in.reason, getattr(stand_in, "of", [])]
            for use in STAND_INS
            if (stand_in := getattr(gpu, use)) is not None
        },
        "links": _links(gpu),
        "mig": _mig(gpu),
        "mig_mode": _mode(gpu),
        "vgpu": _vgpu(gpu, gpu.vgpu.types if gpu.vgpu else []),
        "vgpu_graphics": _vgpu(gpu, gpu.vgpu.graphics if gpu.vgpu else []),
        "vgpu_host": _host(gpu),
    }


def _achieved(fact: Achieved) -> list[object]:
    return [number(fact.value), number(fact.peak), fact.source]


def _links(gpu: GpuFile) -> dict[str, Any]:
    pcie, nvlink, board = gpu.pcie_link, gpu.nvlink_fabric, gpu.fabric_board
    return {
        "pcie": pcie and [pcie.generation, pcie.lanes],
        "nvlink": nvlink and [nvlink.kind, nvlink.generation, nvlink.links, nvlink.domain],
        "board": board and [sorted(board.partitions.items()), board.source],
    }


def _mode(gpu: GpuFile) -> list[object] | None:
    mode = gpu.mig.mode if gpu.mig else None
    return [mode.resets, mode.persists, mode.source] if mode else None


def _mig(gpu: GpuFile) -> list[list[object]]:
    if not gpu.mig:
        return []
    return [
        [
            p.name,
            p.compute_slices,
            p.memory_slices,
            p.memory,
            p.maximum,
            p.starts,
            p.source or gpu.mig.source,
            p.sm_count,
            p.engines and [p.engines.nvdec, p.engines.nvenc, p.engines.jpeg, p.engines.ofa],
        ]
        for p in gpu.mig.profiles
    ]


def _vgpu(gpu: GpuFile, types: list[VgpuTypeDocument]) -> list[list[object]]:
    """A vGPU has at most the memory of its MIG instance, and its share of what the GPU reports."""
    if not gpu.vgpu:
        return []
    instances = {p.name: p.memory for p in gpu.mig.profiles} if gpu.mig else {}
    rows: list[list[object]] = []
    for t in types:
        bound = instances[t.mig_profile] if t.mig_profile else gpu.memory.value // t.maximum
        source = t.source or gpu.vgpu.source
        mixed = [t.mixed_maximum, t.placement_size, t.placements or []]
        rows.append([t.name, min(t.memory, bound), t.maximum, t.mig_profile, source, *mixed])
    return rows


def _host(gpu: GpuFile) -> dict[str, Any] | None:
    """Each with the key of its source."""
    vgpu = gpu.vgpu
    if not vgpu:
        return None
    mixed, interface, mmio = vgpu.mixed_size, vgpu.interface, vgpu.mmio
    return {
        "mixed_size": mixed and [mixed.supported, mixed.source],
        "region": mixed and mixed.region and [mixed.region, mixed.source],
        "interface": [interface.kind, interface.source],
        "mmio_bytes": mmio and [mmio.value, mmio.source],
    }
