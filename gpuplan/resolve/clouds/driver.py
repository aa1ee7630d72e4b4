"""Who installs the GPU driver."""

from __future__ import annotations

from collections.abc import Iterable

from gpuplan.catalog.clouds import load_cloud
from gpuplan.manifest.v1 import Platform
from gpuplan.plan.model import NodePool
from gpuplan.targets import TARGETS


def driver_on_nodes(platform: Platform, pools: Iterable[NodePool] = ()) -> bool:
    """Whether nodes come with the GPU driver and the container toolkit: as the manifest chooses,
    else as the target has it, or where a machine of `pools` takes no other driver."""
    if platform.cluster and platform.cluster.driver:
        return platform.cluster.driver == "provider"
    target = TARGETS[platform.target]
    facts = load_cloud(target.provider) if target.provider and not target.driver_on_nodes else None
    alone = facts.own_drivers if facts else frozenset()
    return target.driver_on_nodes or any(pool.node_type in alone for pool in pools)
