"""What the sizing of a workload gives."""

from __future__ import annotations

from gpuplan.diagnostics import Diagnostic
from gpuplan.plan.model import Evidence, Workload, record


@record
class Sized:
    """A sized workload, where its numbers come from, and what a person should know beside it."""

    workload: Workload
    evidence: tuple[Evidence, ...]
    diagnostics: tuple[Diagnostic, ...] = ()


@record
class Unforced:
    """What a search would have chosen without the overrides that narrow it; None where nothing was
    forced, or nothing fits without."""

    gpu: str | None = None
    partition: str | None = None
    replicas: float | None = None
    tensor_parallel_size: float | None = None
    max_num_seqs: float | None = None
    max_num_batched_tokens: float | None = None
    gpu_count: float | None = None
    micro_batch: float | None = None
