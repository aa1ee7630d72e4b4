"""What an engine runs on: a whole GPU, or one partition of it."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.catalog.model import Fact, Gpu, MigProfile, VgpuType
from gpuplan.plan.model import Fabric, record
from gpuplan.plan.partitions import PartitionName
from gpuplan.sharing.partitions import GpuPartition, backing, held_by, per_gpu
from gpuplan.sizing.evidence.formula import Formula, Quantity, canonical
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.targets import TARGETS

BANDWIDTH = Formula(
    "gpu_bandwidth * bandwidth_share", "B/s", "a partition's share of the memory slices"
)


@record
class Device:
    """A GPU, or a `share` of one, of which `per_gpu` equal ones fit it; with its part of the
    compute and of the memory bandwidth."""

    offer: GpuOffer
    share: GpuPartition | None = None
    memory_bytes: Quantity
    compute_share: Quantity
    bandwidth_share: Quantity

    @property
    def gpu(self) -> Gpu:
        return self.offer.gpu

    @property
    def partition(self) -> PartitionName | None:
        return None if self.share is None else self.share.name

    @property
    def per_gpu(self) -> int:
        return per_gpu(self.share)

    @property
    def pool(self) -> str:
        """The node pool's name: GPUs that are whole and GPUs cut by MIG stand in one node, those
        shared as vGPUs are a pool of their type."""
        if isinstance(self.share, VgpuType):
            return f"{self.offer.pool}-{self.share.name.lower()}"
        return self.offer.pool


def quantity(fact: Fact) -> Quantity:
    return Quantity(fact.value, fact.unit, fact.source)


def cards_rate(offer: GpuOffer) -> Quantity | None:
    """What the network cards of a machine carry together, where it is stated."""
    rate = offer.cards_bytes_per_s
    names = f" of {offer.node_names[0]}" if offer.node_names else ""
    return None if rate is None else Quantity(rate, "B/s", f"inventory: network cards{names}")


def fabric_rate(offer: GpuOffer, fabric: Fabric, nodes: int | None) -> Quantity:
    """What each GPU has of the fabric between so many nodes, None: any of the cluster: the
    manifest's rate, or its part of slower cards, and less of it where that leaves a switch."""
    cards, stated = cards_rate(offer), fabric.bytes_per_s_per_gpu
    rate = Quantity(stated, "B/s", "manifest: platform.fabric")
    if cards is not None and cards.value / offer.gpus_per_node < stated:
        part = canonical(cards.value / offer.gpus_per_node)
        rate = Quantity(part, "B/s", f"{cards.source}, a GPU's part")
    less = fabric.divided(nodes)
    if less == 1:
        return rate
    return Quantity(
        canonical(rate.value / less), "B/s", f"{rate.source}, a {less:g}th beyond a switch"
    )


def whole(offer: GpuOffer) -> Device:
    one = Quantity(1.0, "1", "constant: a whole GPU")
    memory = quantity(offer.gpu.memory_bytes)
    return Device(offer=offer, memory_bytes=memory, compute_share=one, bandwidth_share=one)


def partitions(offer: GpuOffer, site: Site) -> Iterator[Device]:
    """The partitions that the target can give, smallest first."""
    shares: tuple[GpuPartition, ...] = ()
    sharing = TARGETS[site.target].gpu_sharing
    if sharing == "mig":
        shares = tuple(p for p in offer.gpu.mig_profiles if _plain(p))
    elif sharing == "vgpu":
        shares = tuple(t for t in offer.gpu.vgpu_types if t.maximum > 1)
    devices = (_part(offer, share) for share in shares)
    yield from sorted(devices, key=lambda d: (d.memory_bytes.value, d.compute_share.value))


def _plain(profile: MigProfile) -> bool:
    """Profiles with more or fewer engines than others of their size, and those that fit a GPU once,
    are no way to share it."""
    return not profile.extension and profile.maximum > 1


def _part(offer: GpuOffer, share: GpuPartition) -> Device:
    """An instance has its slices of both rates, and a type on MIG those of its instance; turns on
    the GPU are at worst an equal part."""
    mode, part = held_by(share, offer.gpu)
    compute = mode.compute_share(part)
    bandwidth = compute if mode.uniform else part.size / mode.units
    source = (backing(share, offer.gpu) or share).source
    return Device(
        offer=offer,
        share=share,
        memory_bytes=Quantity(float(share.memory_bytes), "B", share.source),
        compute_share=Quantity(compute, "1", source),
        bandwidth_share=Quantity(bandwidth, "1", source),
    )
