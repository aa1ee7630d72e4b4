"""A part of a load, where several places carry it together."""

from __future__ import annotations

from math import ceil

from gpuplan.manifest.v1 import Workload


def divisible(work: Workload) -> bool:
    """Whether others can take a part of what arrives."""
    load = work.load
    return load is not None and (
        load.requests_per_second is not None or load.concurrency is not None
    )


def part_of(work: Workload, mean: float, peak: float) -> Workload:
    """With a part of the load's mean and another of what must be served; users at once are what
    must be served. Work that is no service is as it was."""
    load = work.load
    if load is None or not divisible(work):
        return work
    changed: dict[str, object] = {}
    if load.requests_per_second is not None:
        rate = load.requests_per_second
        most = rate.mean if rate.peak is None else rate.peak
        parts = {"mean": rate.mean * mean, "peak": most * peak}
        changed["requests_per_second"] = rate.model_copy(update=parts)
    if load.concurrency is not None:
        users = ceil(load.concurrency.users * peak)
        changed["concurrency"] = load.concurrency.model_copy(update={"users": users})
    return work.model_copy(update={"load": load.model_copy(update=changed)})
