"""What a hypervisor host sets aside for its guests: huge pages, and its kernel line."""

from __future__ import annotations

from collections.abc import Iterable

from gpuplan.plan import window
from gpuplan.plan.model import NumaNode
from gpuplan.sizing.evidence.formula import Formula, Ledger, Quantity, constant
from gpuplan.sizing.hardware.locality import Locality

HUGEPAGES = Formula(
    "max(taken, floor((memory - kept_memory - guests * guest_overhead) / page))",
    "1",
    "the most pages that leave what the host keeps, and the guests' overhead, outside",
)


def huge_pages(locality: Locality, node: int, guests: int, taken: int, ledger: Ledger) -> int:
    """Pages of a NUMA node whose GPUs can have so many guests, as they are shared; those that are
    there have `taken` pages, which leave enough outside. The evidence goes to `ledger`."""
    assert locality.memory_bytes is not None
    kept = locality.kept_memory(ledger, f"node{node}_kept_memory_bytes")
    pages = ledger.derive(
        f"node{node}_hugepages",
        HUGEPAGES,
        taken=Quantity(taken, "1", "placement: pages of the guests on the node"),
        memory=Quantity(locality.memory_bytes, "B", locality.source),
        kept_memory=kept,
        guests=Quantity(guests, "1", "placement: guests that the node's GPUs can have"),
        guest_overhead=locality.overhead,
        page=constant(window.PAGE_BYTES, "B", "size of a huge page"),
    )
    return int(pages)


def kernel_parameters(vendor: str, nodes: Iterable[NumaNode]) -> tuple[str, ...]:
    """The host's kernel line. Only Intel's IOMMU has to be switched on. `hugepages=NODE:COUNT` is
    in Linux since 5.16 (commit b5389086ad7b). Cores are not isolated here: guests are pinned, and
    systemd keeps the host's services off their cores, which needs no reboot to change."""
    counts = ",".join(f"{n.node}:{n.hugepages}" for n in nodes if n.hugepages)
    intel = ("intel_iommu=on",) if vendor == "intel" else ()
    return (
        *intel,
        "iommu=pt",
        "default_hugepagesz=1G",
        "hugepagesz=1G",
        *((f"hugepages={counts}",) if counts else ()),
    )
