"""IOMMU groups: which devices of a host go to one guest together, and which of them to none."""

from __future__ import annotations

from gpuplan.inventory.v1 import Device, FunctionSpec, HostSpec, NicSpec, NvmeSpec, SharedDevice
from gpuplan.plan.model import PciDevice

Group = int | str
Kept = NicSpec | NvmeSpec | FunctionSpec


def group(device: Device | PciDevice) -> Group | None:
    """What those have in common that go to one guest as a whole: their IOMMU group; where that is
    not known, the card that they are functions of. None: neither is known."""
    return card(device) if device.iommu_group is None else device.iommu_group


def card(device: Device | PciDevice) -> str | None:
    """What all functions of a card have in common: domain, bus and slot."""
    return (device.address or "").rpartition(".")[0] or None


def free(device: Device, spec: HostSpec) -> bool:
    """Whether guests may have it. The functions of a GPU's card are the GPU's."""
    if isinstance(device, FunctionSpec) and device.for_guests is None and device.in_use is None:
        return card(device) in {card(gpu) for gpu in spec.gpus}
    return not isinstance(device, SharedDevice) or device.free


def kept(spec: HostSpec) -> dict[Group, Kept]:
    """Of each group that goes to no guest the first device that the host keeps. It keeps every
    network card: guests get functions of it, which have groups of their own."""
    every: list[Kept] = [*spec.nics, *spec.nvme, *spec.functions]
    held = [d for d in every if isinstance(d, NicSpec) or not free(d, spec)]
    return {own: d for d in reversed(held) if (own := group(d)) is not None}
