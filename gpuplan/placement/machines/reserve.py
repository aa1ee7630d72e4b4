"""What a hypervisor host sets aside for its guests: huge pages, and its kernel line."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gpuplan.plan import window
from gpuplan.plan.model import NumaNode, Override
from gpuplan.plan.site import HostSetting
from gpuplan.sizing.evidence.formula import Formula, Ledger, Quantity, constant
from gpuplan.sizing.hardware.locality import Locality
from gpuplan.units import format_ranges

HUGEPAGES = Formula(
    "max(taken, floor((memory - kept_memory - guests * guest_overhead) / page))",
    "1",
    "the most pages that leave what the host keeps, and the guests' overhead, outside",
)


def huge_pages(
    locality: Locality, node: int, guests: int, taken: int, ledger: Ledger
) -> tuple[int, Override | None]:
    """Pages of a NUMA node whose GPUs can have so many guests, as they are shared; those that are
    there have `taken` pages, which leave enough outside. Those that the inventory states replace
    them. The evidence goes to `ledger`."""
    assert locality.memory_bytes is not None
    kept = locality.least_kept(ledger, f"node{node}_kept_memory_bytes")
    pages = ledger.derive(
        f"hugepages.node{node}",
        HUGEPAGES,
        taken=Quantity(taken, "1", "placement: pages of the guests on the node"),
        memory=Quantity(locality.memory_bytes, "B", locality.source),
        kept_memory=kept,
        guests=Quantity(guests, "1", "placement: guests that the node's GPUs can have"),
        guest_overhead=locality.overhead,
        page=constant(window.PAGE_BYTES, "B", "size of a huge page"),
    )
    if locality.stated_pages is None:
        return int(pages), None
    source = f"{locality.source}, hugepages"
    stated = ledger.override(f"hugepages.node{node}", Quantity(locality.stated_pages, "1", source))
    replaced = Override(
        quantity=f"{ledger.prefix}.hugepages.node{node}",
        derived=pages.value,
        value=stated.value,
        unit="1",
    )
    return int(stated), replaced


def kernel_parameters(
    vendor: str, nodes: Sequence[NumaNode], settings: Collection[HostSetting]
) -> tuple[str, ...]:
    """The host's kernel line. Only Intel's IOMMU has to be switched on. `hugepages=NODE:COUNT` is
    in Linux since 5.16 (commit b5389086ad7b). Cores are not isolated here: guests are pinned, and
    systemd keeps the host's services off their cores, which needs no reboot to change; interrupts
    begin on the host's own cores (`irqaffinity`)."""
    kept = format_ranges(cpu for n in nodes for core in n.reserved_cores for cpu in core.cpus)
    counts = ",".join(f"{n.node}:{n.hugepages}" for n in nodes if n.hugepages)
    intel = ("intel_iommu=on",) if vendor == "intel" else ()
    return (
        *intel,
        "iommu=pt",
        "default_hugepagesz=1G",
        "hugepagesz=1G",
        *((f"hugepages={counts}",) if counts else ()),
        *((f"irqaffinity={kept}",) if "irqs" in settings and kept else ()),
    )
