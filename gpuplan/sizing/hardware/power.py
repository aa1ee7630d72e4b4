"""What a node draws: the whole of it where a source says so, else its GPU boards alone."""

from __future__ import annotations

from gpuplan.sizing.evidence.formula import Formula, Ledger, Quantity
from gpuplan.sizing.hardware.offers import GpuOffer

POWER = Formula("gpu_watts * gpus_per_node", "W", "the GPUs' power limits, without the host's own")


def most_watts(offer: GpuOffer) -> float:
    """The most that a node of the offer draws, in W."""
    if offer.node_watts is not None:
        return offer.node_watts.value
    return POWER(gpu_watts=offer.gpu.watts.value, gpus_per_node=offer.gpus_per_node)


def record_node_watts(ledger: Ledger, offer: GpuOffer) -> Quantity:
    """The most that a node of the offer draws, in W, as `node_watts` of the ledger."""
    if offer.node_watts is not None:
        return ledger.given("node_watts", offer.node_watts)
    watts = offer.gpu.watts
    return ledger.derive(
        "node_watts",
        POWER,
        gpu_watts=Quantity(watts.value, "W", watts.source),
        gpus_per_node=Quantity(offer.gpus_per_node, "1", "offer: GPUs of a node"),
    )
