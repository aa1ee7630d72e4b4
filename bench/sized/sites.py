"""Where the recorded answers are given: nodes that are bought or stand there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.hardware.offers import Site
from tests.support import sizing_cases as cases

STORED = Quantity(2e9, "B/s", "test")


def _site(*gpus: str, **changes: Any) -> Site:
    """Bought nodes, beside stated storage and racks."""
    rack = {"rack_watts": Quantity(40e3, "W", "test"), "node_watts": Quantity(10.2e3, "W", "test")}
    made = cases.site(*gpus, **({"cards_bytes_per_s": 100e9} | rack | changes))
    price = Quantity(0.08, "USD/GB/month", "test")
    return replace(made, storage_bytes_per_s=STORED, storage_usd_per_gb_month=price)


SITES = {
    "usual": cases.site("l40s", "h100-sxm-80gb", "h200-sxm-141gb"),
    "small": cases.site("l4", "a10"),
    "one": _site("h100-sxm-80gb"),
    "owned": _site("h100-sxm-80gb", "l40s", node_count=1, cpu_cores_per_node=40),
    "many": _site("h100-sxm-80gb", node_count=128),
    "ampere": _site("a100-sxm-80gb", gpus_per_node=4),
    "blackwell": _site("b200-sxm-180gb"),
    "amd": _site("mi300x-192gb"),
    "guests": _site("h100-sxm-80gb", "l40s", target="libvirt", node_count=4),
    "machines": _site("a100-sxm-80gb", "l4", target="docker", node_count=3),
    "no fabric": replace(_site("h100-sxm-80gb"), fabric=None, storage_bytes_per_s=None),
}
