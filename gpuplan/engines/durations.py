"""How long a server may take to start and to finish its answers, wherever it runs: bounds, not
predictions.

What is slower than a bound is taken for hanging, so each is well above what is usual.
"""

from __future__ import annotations

import math

from gpuplan.plan.model import Plan, Workload
from gpuplan.units import MB, format_bytes

# Less than a link of 1 Gb/s carries: a hub or a shared volume on a bad day.
TRANSFER_BYTES_PER_S: int = 100 * MB
# Compiling kernels and capturing CUDA graphs, which takes an engine minutes without its caches.
WARM_UP_SECONDS = 600
UNKNOWN_DRAIN_SECONDS = 60  # twice what Kubernetes gives a pod, where no speed is known
ANSWER = "load.output_tokens.p95"
DRAIN_SECONDS = (30, 600)  # Kubernetes' own grace period; longer would hold up whoever waits


def startup_seconds(plan: Plan, workload: Workload) -> int:
    """The first start downloads the published weights into their volume, and reads them."""
    seconds = WARM_UP_SECONDS + 2 * published_bytes(plan, workload) / TRANSFER_BYTES_PER_S
    return math.ceil(seconds / 60) * 60


def startup_reason(plan: Plan, workload: Workload) -> str:
    size, rate = format_bytes(published_bytes(plan, workload)), TRANSFER_BYTES_PER_S // MB
    return (
        f"{size} of published weights to download once and to read, both at no less than"
        f" {rate} MB/s, and {WARM_UP_SECONDS} s to warm up"
    )


def published_bytes(plan: Plan, workload: Workload) -> int:
    """The checkpoint as it is published, which engines may quantise while they load it; what the
    GPUs hold of it where the plan says no more."""
    known = _recorded(plan, workload, "checkpoint_bytes")
    held = workload.memory.weights_bytes * workload.parallelism.gpus
    return held if known is None else int(known)


def drain_seconds(plan: Plan, workload: Workload) -> int:
    """How long a server that ends still works on the requests it has, at the pessimistic speed."""
    low, high = DRAIN_SECONDS
    seconds = math.ceil(_answer_seconds(plan, workload) or UNKNOWN_DRAIN_SECONDS)
    return sorted((low, seconds, high))[1]


def drain_reason(plan: Plan, workload: Workload) -> str:
    tokens, seconds = _recorded(plan, workload, ANSWER), _answer_seconds(plan, workload)
    if seconds is None:
        return "for the requests at work"
    if tokens is None:
        text = "as long as a request takes: those at work are finished"
    else:
        text = f"an answer of {tokens:,.0f} tokens, as 95 % are at most, is finished"
    least, most = DRAIN_SECONDS
    if seconds > most:
        return f"{text} in {seconds:,.0f} s; longer than {most} s would hold up maintenance"
    return text if seconds >= least else f"{text}; {least} s are the least"


def _answer_seconds(plan: Plan, workload: Workload) -> float | None:
    """Of a long answer, from its arrival; else of a request; None where no speed is known."""
    pace = _slowest(workload, "time_per_output_token")
    tokens = _recorded(plan, workload, ANSWER)
    if pace is not None and tokens is not None:
        return (_slowest(workload, "time_to_first_token") or 0) + tokens * pace
    return _slowest(workload, "request_latency")


def _recorded(plan: Plan, workload: Workload, quantity: str) -> float | None:
    """A quantity of the workload's evidence."""
    wanted = f"{workload.name}.{quantity}"
    return next((e.value for e in plan.evidence if e.quantity == wanted), None)


def _slowest(workload: Workload, metric: str) -> float | None:
    """The upper end of a metric's interval."""
    return next((m.estimate.high for m in workload.metrics if m.name == metric), None)
