"""How long a pod may take to come, to start and to finish its answers: bounds, not predictions."""

from __future__ import annotations

import math

from gpuplan.engines.durations import (
    TRANSFER_BYTES_PER_S,
    WARM_UP_SECONDS,
    drain_seconds,
    published_bytes,
    startup_seconds,
)
from gpuplan.kubernetes.scene import Scene

# Before the container runs no probe counts: an image of 10 to 30 GB at the rate above and its
# unpacking, a volume that is made, a node's driver and labels.
PREPARE_SECONDS = 1800
PREPARE_REASON = (
    f"the start-up probe's time, and before it {PREPARE_SECONDS} s for the image, the volume and"
    " the node's driver"
)
# A pod that follows another on its node: its image may be new, the driver and the volume are there.
PULL_SECONDS = 600
# A rollout that takes longer goes on by itself; one that hangs is found at its first pod.
LONGEST_WAIT_SECONDS = 6 * 3600
# Until no proxy sends a pod that goes new requests. Source: kserve/kserve#5496, 2026-05.
LEAVE_SECONDS = 15
STOP_SECONDS = 30  # Kubernetes' own grace period, for the engine to end after it has answered


def arrival_seconds(scene: Scene) -> int:
    """From a pod that is created to one that is ready."""
    return PREPARE_SECONDS + startup_seconds(scene.plan, scene.workload)


def restart_seconds(scene: Scene) -> int:
    """From a pod that goes to its successor that is ready, with weights that are on the volume."""
    read = published_bytes(scene.plan, scene.workload) / TRANSFER_BYTES_PER_S
    stop = LEAVE_SECONDS + drain_seconds(scene.plan, scene.workload) + STOP_SECONDS
    return math.ceil((stop + PULL_SECONDS + WARM_UP_SECONDS + read) / 60) * 60


def outage(scene: Scene) -> str:
    """What an update of a single replica means to whoever uses it."""
    minutes = restart_seconds(scene) // 60
    return f"so an update is an outage, of {minutes} min at the worst"


def update_seconds(scene: Scene) -> int:
    """As long as whoever applies an update waits for its pods, which follow one another."""
    one_by_one = scene.workload.replicas * restart_seconds(scene)
    return max(arrival_seconds(scene), min(one_by_one, LONGEST_WAIT_SECONDS))
