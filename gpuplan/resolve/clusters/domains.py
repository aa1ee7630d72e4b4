"""NVLink domains of several machines: how many nodes of each kind one domain joins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpuplan.diagnostics import Diagnostic, error
from gpuplan.resolve.where import Where
from gpuplan.sizing.hardware.offers import GpuOffer
from gpuplan.sizing.hardware.sites import kind
from gpuplan.targets import TARGETS


def within_domains(
    offers: Sequence[GpuOffer], where: Where
) -> tuple[list[GpuOffer], list[Diagnostic]]:
    """The offers with the nodes of their domains, as far as the target keeps work inside one; and
    a problem where the manifest joins more GPUs than NVLink does."""
    problems = list(_too_many(offers, where))
    if not TARGETS[where.platform.target].domains:
        return [replace(o, nvlink_nodes=1) for o in offers], problems
    if where.inventory is None:
        return list(offers), problems
    named = where.inventory.nvlink_domains
    counts = Counter[tuple[tuple[object, ...], str | None]]()
    for offer in offers:
        counts.update((kind(offer), named[name]) for name in offer.node_names)
    return [replace(o, nvlink_nodes=_smallest(o, counts)) for o in offers], problems


def _smallest(offer: GpuOffer, counts: Counter[tuple[tuple[object, ...], str | None]]) -> int:
    """A group that it holds finds place in every domain of such nodes; no more of them count than
    the GPU's NVLink joins."""
    own = {domain: n for (other, domain), n in counts.items() if other == kind(offer)}
    if None in own:
        return 1
    room = offer.gpus_per_node
    return max(1, min([offer.gpu.nvlink_gpus(room) // room, *own.values()]))


def _too_many(offers: Sequence[GpuOffer], where: Where) -> Iterator[Diagnostic]:
    node = where.platform.node
    if node is None or node.nvlink_nodes is None:
        return
    for offer in offers:
        asked, most = node.nvlink_nodes * node.gpus, offer.gpu.nvlink_gpus(offer.gpus_per_node)
        if asked > most:
            words = f"NVLink joins at most {most} {offer.gpu.identifier}"
            yield error(
                "GP007",
                f"{words}, not {node.nvlink_nodes} nodes of {node.gpus}",
                where.at("node", "nvlink_nodes"),
                label=f"{asked} GPUs",
                help=f"write at most {most // node.gpus}, or remove it"
                if most > node.gpus
                else "remove it: NVLink ends at the node",
            )
