"""What a replay of a workload's settings gave: a record for renderers."""

from __future__ import annotations

from typing import Literal

from gpuplan.plan.records import record

STILL_WAITING = 0.03  # of all measured requests, at the end, where as many are answered as arrive


@record
class ReplayedTime:
    """Seconds of all measured requests. `planned` is what the plan prints at that load for
    `statistic`, None at another load; `limit` is the objective of that statistic."""

    name: str
    mean: float
    p50: float
    p95: float
    p99: float
    statistic: Literal["mean", "p95"]
    planned: float | None
    limit: float | None

    @property
    def value(self) -> float:
        """Of the statistic that the plan and the objective are about."""
        return self.mean if self.statistic == "mean" else self.p95

    @property
    def kept(self) -> bool:
        return self.limit is None or self.value <= self.limit


@record
class Moment:
    """How many requests run and wait on one replica, on average over a part of the time."""

    running: float
    waiting: float


@record
class Replayed:
    """One workload at one load. Rates are per second and of all replicas; `arrived` is what came
    in the measured time, `answered` what was answered in it; of a batch, all wait from the start.
    Running and waiting are of one replica, `waiting_last` on average over the last tenth."""

    workload: str
    arrivals: str
    seed: int | None
    requests: int
    seconds: float
    replicas: int
    max_num_seqs: int
    max_num_batched_tokens: int
    cache_tokens: int
    arrived: float | None
    answered: float
    wanted: float | None
    times: tuple[ReplayedTime, ...]
    running_mean: float
    running_most: int
    waiting_most: int
    waiting_last: float
    preempted: int
    moments: tuple[Moment, ...]

    @property
    def keeps_up(self) -> bool:
        """Whether what arrives is answered: a replica that is too slow leaves ever more waiting. A
        batch must be answered as fast as is wanted."""
        if self.arrived is None:
            return self.wanted is None or self.answered >= (1 - STILL_WAITING) * self.wanted
        return self.waiting_last <= STILL_WAITING * self.requests

    @property
    def delivers(self) -> bool:
        return self.keeps_up and all(t.kept for t in self.times)
