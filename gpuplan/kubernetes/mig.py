"""MIG layouts as NVIDIA's MIG manager reads them (mig-parted, version v1)."""

from __future__ import annotations

from collections import Counter
from typing import Any

from gpuplan.kubernetes.naming import fingerprint
from gpuplan.plan.model import NodePool, PartitionLayout, Plan

LABEL = "nvidia.com/mig.config"
# A label's value has at most 63 characters; a shorter name is one that a person still reads.
READABLE = 40
DISABLED = "all-disabled"  # the chart's default profile, which a custom map must hold too


def pools(plan: Plan) -> tuple[NodePool, ...]:
    return tuple(p for p in plan.node_pools if p.partitions and p.partitions.kind == "mig")


def profile_name(layout: PartitionLayout) -> str:
    """The name changes with the layout: MIG manager ignores new content under an old name."""
    counts = _counts(layout)
    words = "-".join(f"{n}x{p.replace('+', '.')}" for p, n in counts.items())
    return f"gpuplan-{words}" if len(words) <= READABLE else f"gpuplan-{fingerprint(counts)}"


def configuration(plan: Plan) -> dict[str, Any]:
    """The map of profiles: what the plan uses, and MIG off for every other node."""
    profiles: dict[str, Any] = {DISABLED: [{"devices": "all", "mig-enabled": False}]}
    for pool in pools(plan):
        assert pool.partitions is not None
        profiles[profile_name(pool.partitions)] = [
            {"devices": "all", "mig-enabled": True, "mig-devices": _counts(pool.partitions)}
        ]
    return {"version": "v1", "mig-configs": profiles}


def _counts(layout: PartitionLayout) -> dict[str, int]:
    return dict(Counter(i.profile for i in layout.instances))
