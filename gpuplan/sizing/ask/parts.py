"""Parts of what a workload asks for, of one kind or of several: overrides, arrivals, lengths,
objectives, limits, growth, a dataset."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from gpuplan.plan.model import record
from gpuplan.plan.times import TIMES
from gpuplan.sizing.ask.given import Given


@record
class Overrides:
    """Values that replace derived ones; None: derived. Bytes, and numbers without a unit."""

    gpu: str | None = None
    partition: str | None = None
    kv_cache_dtype: Literal["auto", "fp8"] | None = None
    accepted_misses: tuple[str, ...] = ()
    replicas: Given | None = None
    tensor_parallel_size: Given | None = None
    pipeline_parallel_size: Given | None = None
    max_num_seqs: Given | None = None
    max_num_batched_tokens: Given | None = None
    micro_batch: Given | None = None
    gpu_count: Given | None = None
    cpu_cores_per_gpu: Given | None = None
    host_memory_per_gpu: Given | None = None
    shared_memory: Given | None = None
    scratch: Given | None = None
    model_storage: Given | None = None
    dataset_storage: Given | None = None
    checkpoint_storage: Given | None = None
    home_storage: Given | None = None

    @property
    def stages(self) -> int:
        """Of a pipeline of layers: one, unless the manifest wants more."""
        return 1 if self.pipeline_parallel_size is None else int(self.pipeline_parallel_size)


@record
class OpenLoop:
    """Requests per second that arrive whatever becomes of them: over the busy hours, and the peak
    that must be served."""

    mean: Given
    peak: Given


@record
class ClosedLoop:
    """Users who ask again `think_time` seconds after their answer is there."""

    users: Given
    think_time: Given


@record
class Lengths:
    """Tokens of a request: means, and 95th percentiles."""

    input_mean: Given
    input_p95: Given
    output_mean: Given
    output_p95: Given


@record
class Objective:
    """Seconds that a statistic of a time does not exceed with the wanted confidence; None: not
    asked."""

    mean: Given | None = None
    p50: Given | None = None
    p95: Given | None = None
    p99: Given | None = None


@record
class Objectives:
    """Of each time of a request."""

    time_to_first_token: Objective = field(default_factory=Objective)
    time_per_output_token: Objective = field(default_factory=Objective)
    request_latency: Objective = field(default_factory=Objective)

    @property
    def limits(self) -> dict[str, Given]:
        """Those that are asked, by the names of their times."""
        asked = {name: getattr(getattr(self, time), s) for name, (time, s) in TIMES.items()}
        return {name: limit for name, limit in asked.items() if limit is not None}


@record
class TimeLimit:
    """Seconds within which a run must end: an objective, a deadline, or both; `accepted` is an
    objective that may be missed."""

    finish_within: Given | None = None
    deadline: Given | None = None
    accepted: Given | None = None

    @property
    def first(self) -> Given | None:
        """The earlier one."""
        limits = [g for g in (self.finish_within, self.deadline) if g is not None]
        return min(limits, key=lambda g: g.value, default=None)

    @property
    def shown(self) -> Given | None:
        """The earliest of all, also one that may be missed."""
        limits = [g for g in (self.first, self.accepted) if g is not None]
        return min(limits, key=lambda g: g.value, default=None)


@record
class Growth:
    """The load is `factor` times as large at the end of `horizon` seconds."""

    factor: Given
    horizon: Given | None = None


@record
class Drafts:
    """Speculative decoding as it was measured: tokens that a step accepts and drafts, the time of
    drafting over that of a step, bytes of the draft model on each GPU."""

    accepted_tokens: Given
    draft_tokens: Given
    draft_cost: Given
    draft_memory: Given | None = None


@record
class Dataset:
    """What a run reads: bytes, tokens of one epoch, bytes per second that its loader must get."""

    name: str | None = None
    size: Given | None = None
    tokens: Given | None = None
    rate: Given | None = None
