"""What goes over storage, network cards and PCIe."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.plan.model import ResourceUse
from gpuplan.sizing.candidates.balance import remedies
from gpuplan.sizing.candidates.balance.gathered import STORAGE, Gathered
from gpuplan.sizing.evidence.formula import Formula, Quantity
from gpuplan.sizing.hardware.devices import cards_rate, fabric_rate, quantity
from gpuplan.units import format_seconds

_NODES = Formula("cards_bytes_per_s * nodes", "B/s", "the network cards of all its nodes")
_SENT = Formula(
    "sized_rate * prompt_cache_bytes / prefill_replicas",
    "B/s",
    "caches of prompts that each GPU of a prefill replica sends",
)
_FABRIC = Formula(
    "fabric_bytes_per_s * node_gpus * nodes", "B/s", "what the GPUs of all its nodes have of it"
)
_NOT_CARDS = "the rate of the nodes' cards is not stated (an inventory does)"
_PARTS = "what the nodes of a replica send each other is in the times, and not counted here"
_NOT_COUNTED = "the bytes of its requests are not counted"


def moved(of: Gathered) -> Iterator[ResourceUse]:
    """What a training run reads, writes and sends."""
    rate = of.site.storage_bytes_per_s
    need, supply = of.known("needs.data_bytes_per_s"), of.known("needs.storage_rate")
    remedy = remedies.storage(rate, need, supply)
    yield of.use("dataset", "all nodes", need, supply, remedy, unknown=STORAGE)
    need, supply = of.known("needs.checkpoint_bytes_per_s"), of.known("needs.checkpoint_rate")
    remedy = remedies.checkpoint(of.demand, of.known) or remedies.storage(rate, need, supply)
    yield of.use("checkpoint", "nodes that write", need, supply, remedy, unknown=STORAGE)
    if of.candidate.nodes > 1:
        need, supply = of.known("needs.network_bytes_per_s"), of.known("needs.cards_rate")
        unknown = "no exchange over them is counted"
        yield of.use("network", "each node", need, supply, remedies.CARDS, unknown=unknown)
    unknown = "what tensor parallelism sends over it is in the time of a step"
    need, link = of.known("needs.pcie_bytes_per_s"), of.candidate.device.gpu.pcie_bytes_per_s
    yield of.use("pcie", "each GPU", need, quantity(link), remedies.PCIE, unknown=unknown)


def exchanged(of: Gathered) -> Iterator[ResourceUse]:
    """The gradients of a network that reads images, which GPUs wait for."""
    if of.candidate.gpus > 1:
        name = "network" if of.candidate.nodes > 1 else "links"
        need, step = of.known("exchange_seconds"), of.known("step_seconds")
        yield of.use(name, "a step", need, step, remedies.CARDS)


def answered(of: Gathered) -> Iterator[ResourceUse]:
    """What goes over network cards and PCIe while requests are answered."""
    candidate = of.candidate
    need, rate = of.known("needs.request_bytes_per_s"), of.known("prefill.transfer_rate")
    unknown = _NOT_CARDS if need else _NOT_COUNTED
    spanning = candidate.gpus > candidate.device.offer.gpus_per_node
    if spanning:
        need, unknown = None, _PARTS
    supply = _cards(of, over_fabric=spanning or rate is not None) if need or spanning else None
    yield of.use("network", "all nodes", need, supply, remedies.CARDS, unknown=unknown)
    sent = {name: amount for name in _SENT.names if (amount := of.known(name))}
    if len(sent) == len(_SENT.names):
        each = "each GPU that takes prompts"
        sends = of.ledger.derive("needs.transfer_bytes_per_s", _SENT, **sent)
        yield of.use("fabric", each, sends, rate, remedies.CARDS)
    yield _at_start(of)


def _cards(of: Gathered, *, over_fabric: bool) -> Quantity | None:
    """What the network cards of all its nodes carry: as an inventory states it, else of work that
    sends `over_fabric` what their GPUs have of it. Other nodes may not be on it."""
    offer, fabric = of.candidate.device.offer, of.site.fabric
    nodes = Quantity(float(of.candidate.nodes), "1", "choice: nodes of its replicas")
    if (cards := cards_rate(offer)) is not None:
        inputs = {"cards_bytes_per_s": cards, "nodes": nodes}
        return of.ledger.derive("supply.cards_bytes_per_s", _NODES, **inputs)
    if fabric is None or not over_fabric:
        return None
    gpus = Quantity(float(offer.gpus_per_node), "1", "offer: GPUs of a node")
    inputs = {"fabric_bytes_per_s": fabric_rate(offer, fabric, None), "node_gpus": gpus}
    return of.ledger.derive("supply.cards_bytes_per_s", _FABRIC, nodes=nodes, **inputs)


def _at_start(of: Gathered) -> ResourceUse:
    """PCIe, over which weights come once."""
    loaded = of.known("needs.host_to_gpu_seconds")
    once = f" ({format_seconds(loaded.value)} for the weights)" if loaded else ""
    parted = "; what its GPUs send each other is in the times" if of.candidate.gpus > 1 else ""
    link = quantity(of.candidate.device.gpu.pcie_bytes_per_s)
    unknown = f"full at a start alone{once}{parted}"
    return of.use("pcie", "each GPU", None, link, remedies.PCIE, unknown=unknown)
