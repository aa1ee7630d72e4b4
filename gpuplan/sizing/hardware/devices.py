"""What an engine runs on: a whole GPU, or one partition of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from gpuplan.catalog.model import Fact, Gpu, MigProfile, VgpuType
from gpuplan.plan.model import Fabric, record
from gpuplan.sizing.evidence.formula import Formula, Quantity, canonical
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.targets import TARGETS

BANDWIDTH = Formula(
    "gpu_bandwidth * bandwidth_share", "B/s", "a partition's share of the memory slices"
)


@record
class Device:
    """`per_gpu` equal devices fit one GPU. Shares are of compute and of memory bandwidth."""

    offer: GpuOffer
    partition: str | None = None
    kind: Literal["mig", "vgpu"] | None = None
    per_gpu: int = 1
    memory_bytes: Quantity
    compute_share: Quantity
    bandwidth_share: Quantity

    @property
    def gpu(self) -> Gpu:
        return self.offer.gpu

    @property
    def pool(self) -> str:
        """The node pool's name: GPUs that are whole and GPUs cut by MIG stand in one node, those
        shared as vGPUs are a pool of their type."""
        if self.partition is None or self.kind == "mig":
            return self.gpu.identifier
        return f"{self.gpu.identifier}-{self.partition.lower()}"


def quantity(fact: Fact) -> Quantity:
    return Quantity(fact.value, fact.unit, fact.source)


def cards_rate(offer: GpuOffer) -> Quantity | None:
    """What the network cards of a machine carry together, where it is stated."""
    rate = offer.cards_bytes_per_s
    names = f" of {offer.node_names[0]}" if offer.node_names else ""
    return None if rate is None else Quantity(rate, "B/s", f"inventory: network cards{names}")


def fabric_rate(offer: GpuOffer, fabric: Fabric) -> Quantity:
    """What each GPU has of the fabric: the manifest's rate, or its part of slower cards."""
    cards, stated = cards_rate(offer), fabric.bytes_per_s_per_gpu
    if cards is None or cards.value / offer.gpus_per_node >= stated:
        return Quantity(stated, "B/s", "manifest: platform.fabric")
    part = canonical(cards.value / offer.gpus_per_node)
    return Quantity(part, "B/s", f"{cards.source}, a GPU's part")


def whole(offer: GpuOffer) -> Device:
    one = Quantity(1.0, "1", "constant: a whole GPU")
    memory = quantity(offer.gpu.memory_bytes)
    return Device(offer=offer, memory_bytes=memory, compute_share=one, bandwidth_share=one)


def partitions(offer: GpuOffer, site: Site) -> Iterator[Device]:
    """The partitions that the target can give, smallest first."""
    found: list[Device] = []
    sharing = TARGETS[site.target].gpu_sharing
    if sharing == "mig":
        found = [_mig(offer, p) for p in offer.gpu.mig_profiles if _plain(p)]
    elif sharing == "vgpu":
        found = [_vgpu(offer, t) for t in offer.gpu.vgpu_types if t.maximum > 1]
    yield from sorted(found, key=lambda d: (d.memory_bytes.value, d.compute_share.value))


def _plain(profile: MigProfile) -> bool:
    """Profiles with media engines, and those that fit a GPU once, are no way to share it."""
    return "+" not in profile.name and profile.maximum > 1


def _mig(offer: GpuOffer, profile: MigProfile) -> Device:
    slices = max(p.compute_slices for p in offer.gpu.mig_profiles)
    memory = offer.gpu.mig_slices
    return Device(
        offer=offer,
        partition=profile.name,
        kind="mig",
        per_gpu=profile.maximum,
        memory_bytes=Quantity(float(profile.memory_bytes), "B", profile.source),
        compute_share=Quantity(profile.compute_slices / slices, "1", profile.source),
        bandwidth_share=Quantity(profile.memory_slices / memory, "1", profile.source),
    )


def _vgpu(offer: GpuOffer, kind: VgpuType) -> Device:
    """A MIG-backed type has its instance's share; a time-sliced one at worst an equal share."""
    backing = next((p for p in offer.gpu.mig_profiles if p.name == kind.mig_profile), None)
    share = Quantity(1 / kind.maximum, "1", kind.source)
    behind = _mig(offer, backing) if backing else None
    return Device(
        offer=offer,
        partition=kind.name,
        kind="vgpu",
        per_gpu=kind.maximum,
        memory_bytes=Quantity(float(kind.memory_bytes), "B", kind.source),
        compute_share=behind.compute_share if behind else share,
        bandwidth_share=behind.bandwidth_share if behind else share,
    )
