"""What starts ask of storage, PCIe and network cards: evidence beside a plan.

Rates of storage and cards bound a number only where the platform states them.
"""

from __future__ import annotations

from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.evidence.formula import Formula, Quantity, constant
from gpuplan.sizing.hardware.devices import Device, cards_rate, quantity
from gpuplan.sizing.hardware.offers import Site

TOKEN_TEXT = constant(4, "B", "English text of a token, about")
IMAGE = constant(12.64e9, "B", "vLLM's image as it is pulled: vllm-project/vllm#27154, 2025-10-18")

_LOAD = Formula("stored_bytes / storage_bytes_per_s", "s", "at the storage's bandwidth")
_START = Formula("image_bytes + stored_bytes", "B", "the container image and the weights")
_READ = Formula(
    "min(storage_bytes_per_s, cards_bytes_per_s)",
    "B/s",
    "volumes and images come over the node's network cards",
)
_TO_GPU = Formula(
    "weights_bytes / pcie_bytes_per_s",
    "s",
    "every GPU over its own link, once: caches stay on the GPU",
)
_COLD = Formula(
    "start_bytes / read_bytes_per_s + host_to_gpu_seconds",
    "s",
    "a first start without what the engine compiles",
)


def record_start(
    settled: Settled[Demand], site: Site, device: Device, *, stored: Quantity, weights: Quantity
) -> None:
    """What a replica's first start moves and, where the storage's bandwidth is stated, how long it
    takes. `stored` lies on the volume, `weights` on each GPU."""
    ledger = settled.ledger
    start = ledger.derive("needs.start_bytes", _START, image_bytes=IMAGE, stored_bytes=stored)
    to_gpu = ledger.derive(
        "needs.host_to_gpu_seconds",
        _TO_GPU,
        weights_bytes=weights,
        pcie_bytes_per_s=quantity(device.gpu.pcie_bytes_per_s),
    )
    rate = site.storage_bytes_per_s
    if rate is None:
        return
    ledger.derive("load_seconds", _LOAD, stored_bytes=stored, storage_bytes_per_s=rate)
    if (cards := cards_rate(device.offer)) is not None:
        rate = ledger.derive(
            "needs.read_bytes_per_s", _READ, storage_bytes_per_s=rate, cards_bytes_per_s=cards
        )
    ledger.derive(
        "needs.cold_start_seconds",
        _COLD,
        start_bytes=start,
        read_bytes_per_s=rate,
        host_to_gpu_seconds=to_gpu,
    )
