"""MIG layouts as NVIDIA's MIG manager reads them (mig-parted, version v1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuplan.kubernetes.naming import fingerprint
from gpuplan.plan.model import NodeLayout, NodePool, Plan
from gpuplan.plan.partitions import PartitionName, dotted
from gpuplan.units import format_ranges

# A label's value has at most 63 characters; a shorter name is one that a person still reads.
READABLE = 40
DISABLED = "all-disabled"  # the chart's default profile, which a custom map must hold too


def pools(plan: Plan) -> tuple[NodePool, ...]:
    return tuple(p for p in plan.node_pools if p.layouts)


def needed(plan: Plan) -> bool:
    """Whether nodes of the cluster are cut, of this stack or of others that are known."""
    return bool(pools(plan) or plan.neighbours)


def by_cloud(plan: Plan) -> bool:
    """Whether the cloud cuts the nodes, and MIG manager none of them."""
    return bool(plan.cloud and any(g.partition for g in plan.cloud.groups))


def profile_name(layout: NodeLayout) -> str:
    """The name changes with the layout: MIG manager ignores new content under an old name."""
    parts = [(f"gpu{format_ranges(g.gpus)}", g.counts) for g in layout.gpus]
    texts = [f"{gpus}-{_words(counts)}" for gpus, counts in parts]
    name = "-".join(texts)
    return f"gpuplan-{name}" if len(name) <= READABLE else f"gpuplan-{fingerprint(parts)}"


def _words(counts: dict[PartitionName, int]) -> str:
    return "-".join(f"{n}x{dotted(profile)}" for profile, n in counts.items())


def configuration(plan: Plan) -> dict[str, Any]:
    """The cluster's map of profiles: what the plan and the other stacks of its inventory use, and
    MIG off for every other node."""
    own = ((pool.gpus_per_node, layout) for pool in pools(plan) for layout in pool.layouts)
    others = ((n.gpus_per_node, n.layout) for n in plan.neighbours)
    profiles = {profile_name(layout): [*_devices(gpus, layout)] for gpus, layout in (*own, *others)}
    disabled = {DISABLED: [{"devices": "all", "mig-enabled": False}]}
    return {"version": "v1", "mig-configs": disabled | dict(sorted(profiles.items()))}


def map_name(plan: Plan) -> str:
    """The name changes with the content: a running MIG manager does not read a changed map."""
    return f"gpuplan-mig-profiles-{fingerprint(configuration(plan))}"


def _devices(gpus_per_node: int, layout: NodeLayout) -> Iterator[dict[str, Any]]:
    """Every GPU of a node is named once; those without instances have MIG off."""
    cut = {number for gpus in layout.gpus for number in gpus.gpus}
    whole = [n for n in range(gpus_per_node) if n not in cut]
    if whole:
        yield {"devices": whole, "mig-enabled": False}
    for gpus in layout.gpus:
        every = len(gpus.gpus) == gpus_per_node
        devices = "all" if every else list(gpus.gpus)
        yield {"devices": devices, "mig-enabled": True, "mig-devices": gpus.counts}
