"""What a replay of a workload's settings gave: a record for renderers."""

from __future__ import annotations

from gpuplan.frozen import record
from gpuplan.plan.times import Statistic

STILL_WAITING = 0.03  # of all measured requests, at the end, where as many are answered as arrive


@record
class ReplayedTime:
    """Seconds of all measured requests; `curve` are their percentiles from 0 to 100.
    `planned` is what the plan prints at that load for
    `statistic`, None at another load; `limit` is the objective of that statistic, and
    `accepted_miss` that it may be missed."""

    name: str
    mean: float
    p50: float
    p95: float
    p99: float
    statistic: Statistic
    planned: float | None
    limit: float | None
    curve: tuple[float, ...]
    accepted_miss: bool = False

    @property
    def value(self) -> float:
        """Of the statistic that the plan and the objective are about."""
        value: float = getattr(self, self.statistic)
        return value

    @property
    def kept(self) -> bool:
        return self.limit is None or self.accepted_miss or self.value <= self.limit

    @property
    def missed(self) -> bool:
        return self.limit is not None and self.value > self.limit


@record
class Moment:
    """A part of the time: how many requests run and wait on one replica, and the tokens of its
    cache that are taken, on average; requests per second that arrive and are answered, of all."""

    running: float
    waiting: float
    cache_tokens: float
    arrived: float
    answered: float


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
