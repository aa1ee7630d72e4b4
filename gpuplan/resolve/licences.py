"""What a year of NVIDIA's licence costs for the GPUs that guests have parts of.

Source: NVIDIA AI Enterprise is licensed by GPU, whatever the number of its guests (docs.nvidia.com,
NVIDIA Enterprise Licensing Guide).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.manifest.v1 import Platform
from gpuplan.plan.model import Evidence, VirtualMachine, Workload
from gpuplan.sizing.evidence.formula import Formula, Ledger, Quantity, canonical
from gpuplan.units import PER_HOUR

QUANTITY = "vgpu_subscription_usd_per_year"
COST = Formula(
    "vgpu_gpus * usd_per_gpu_year", "USD/year", "NVIDIA AI Enterprise is licensed by GPU and year"
)


def shared_gpus(workload: Workload, machines: Sequence[VirtualMachine]) -> int:
    """How many GPUs `workload` has parts of, which others may have parts of, too."""
    return len(
        {
            (m.host, d.parent or d.address)
            for m in machines
            if m.workload == workload.name
            for d in m.devices
            if d.kind == "vgpu"
        }
    )


def licences(
    platform: Platform, workloads: Sequence[Workload], machines: Sequence[VirtualMachine]
) -> Iterator[Evidence]:
    """Of each workload with vGPUs, at the manifest's price or the catalogue's; nothing where
    neither states one."""
    counts = {w.name: shared_gpus(w, machines) for w in workloads}
    price = _price(platform) if any(counts.values()) else None
    for name, count in counts.items():
        if price is not None and count:
            ledger = Ledger(name)
            gpus = Quantity(count, "GPU", "placement: GPUs that its guests have parts of")
            ledger.derive(QUANTITY, COST, vgpu_gpus=gpus, usd_per_gpu_year=price)
            yield from ledger.entries.values()


def _price(platform: Platform) -> Quantity | None:
    """Of one GPU for a year."""
    if platform.vgpu_subscription is not None:
        year = canonical(float(platform.vgpu_subscription * PER_HOUR["year"]))
        return Quantity(year, "USD/year", "manifest: platform.vgpu_subscription")
    from gpuplan.catalog.tariffs import load_tariffs  # few stacks have guests with vGPUs

    listed = load_tariffs().charges("nvidia", "vgpu-subscription")
    return Quantity(float(listed[0].price), "USD/year", listed[0].source) if listed else None
