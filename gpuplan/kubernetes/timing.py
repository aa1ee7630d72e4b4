"""How long a server may take to come, to start and to finish its answers: bounds, not predictions.

What is slower than a bound is taken for hanging, so each is well above what is usual.
"""

from __future__ import annotations

import math

from gpuplan.kubernetes.scene import Scene
from gpuplan.units import MB, format_bytes

# Less than a link of 1 Gb/s carries: a hub or a shared volume on a bad day.
TRANSFER_BYTES_PER_S: int = 100 * MB
# Compiling kernels and capturing CUDA graphs, which takes an engine minutes without its caches.
WARM_UP_SECONDS = 600
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
ANSWER_TOKENS = 1024
UNKNOWN_DRAIN_SECONDS = 60  # twice what Kubernetes gives a pod, where no speed is known
STOP_SECONDS = 30  # Kubernetes' own grace period, for the engine to end after it has answered
DRAIN_SECONDS = (30, 600)  # Kubernetes' own grace period; longer would hold up a node's drain


def startup_seconds(scene: Scene) -> int:
    """The first start downloads the published weights into their volume, and reads them."""
    seconds = WARM_UP_SECONDS + 2 * published_bytes(scene) / TRANSFER_BYTES_PER_S
    return math.ceil(seconds / 60) * 60


def startup_reason(scene: Scene) -> str:
    size, rate = format_bytes(published_bytes(scene)), TRANSFER_BYTES_PER_S // MB
    return (
        f"{size} of published weights to download once and to read, both at no less than"
        f" {rate} MB/s, and {WARM_UP_SECONDS} s to warm up"
    )


def arrival_seconds(scene: Scene) -> int:
    """From a pod that is created to one that is ready."""
    return PREPARE_SECONDS + startup_seconds(scene)


def restart_seconds(scene: Scene) -> int:
    """From a pod that goes to its successor that is ready, with weights that are on the volume."""
    read = published_bytes(scene) / TRANSFER_BYTES_PER_S
    stop = drain_seconds(scene) + STOP_SECONDS
    return math.ceil((stop + PULL_SECONDS + WARM_UP_SECONDS + read) / 60) * 60


def outage(scene: Scene) -> str:
    """What an update of a single replica means to whoever uses it."""
    minutes = restart_seconds(scene) // 60
    return f"so an update is an outage, of {minutes} min at the worst"


def update_seconds(scene: Scene) -> int:
    """As long as whoever applies an update waits for its pods, which follow one another."""
    one_by_one = scene.workload.replicas * restart_seconds(scene)
    return max(arrival_seconds(scene), min(one_by_one, LONGEST_WAIT_SECONDS))


def published_bytes(scene: Scene) -> int:
    """The checkpoint as it is published, which engines may quantise while they load it; what the
    GPUs hold of it where the plan says no more."""
    wanted = f"{scene.key}.checkpoint_bytes"
    known = [e.value for e in scene.plan.evidence if e.quantity == wanted]
    held = scene.workload.memory.weights_bytes * scene.workload.parallelism.gpus
    return int(known[0]) if known else held


def drain_seconds(scene: Scene) -> int:
    """How long a pod that goes still works: on the requests it has, at the pessimistic speed."""
    pace, request = _slowest(scene, "time_per_output_token"), _slowest(scene, "request_latency")
    seconds = ANSWER_TOKENS * pace if pace else request or UNKNOWN_DRAIN_SECONDS
    low, high = DRAIN_SECONDS
    return sorted((low, math.ceil(seconds), high))[1]


def drain_reason(scene: Scene) -> str:
    if _slowest(scene, "time_per_output_token"):
        return f"{ANSWER_TOKENS} more tokens of each answer"
    if _slowest(scene, "request_latency"):
        return "as long as a request takes: those at work are finished"
    return "for the requests at work"


def _slowest(scene: Scene, metric: str) -> float | None:
    """The upper end of a metric's interval."""
    return next((m.estimate.high for m in scene.workload.metrics if m.name == metric), None)
