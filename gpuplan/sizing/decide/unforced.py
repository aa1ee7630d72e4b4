"""What the search would choose without the overrides that narrow it."""

from __future__ import annotations

from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.candidates.sized import Unforced
from gpuplan.sizing.decide.tried import searched
from gpuplan.sizing.decide.without import ENGINE_LIMITS, SEARCHED, without
from gpuplan.sizing.hardware.offers import Site


def unforced(demand: Demand, site: Site) -> Unforced:
    """The choice that an override replaces, nothing where none narrows the search."""
    if all(getattr(demand.overrides, name) is None for name in (*SEARCHED, *ENGINE_LIMITS)):
        return Unforced()
    winner = searched(without(demand, (*SEARCHED, *ENGINE_LIMITS)), site).best
    if winner is None:
        return Unforced()
    places, tokens = _engine_limits(winner.detail)
    return Unforced(
        gpu=winner.device.gpu.identifier,
        partition=str(winner.device.partition or "none"),
        replicas=float(winner.replicas),
        tensor_parallel_size=float(winner.tensor_parallel_size),
        max_num_seqs=places,
        max_num_batched_tokens=tokens,
        gpu_count=float(winner.gpu_count),
        micro_batch=_micro_batch(winner.detail),
    )


def _engine_limits(layout: object) -> tuple[float | None, float | None]:
    """Places and tokens of a step as the engine of a served layout is told; None where it is told
    none, or its record derives them."""
    from gpuplan.sizing.kinds.serving.limit import LimitedReplica
    from gpuplan.sizing.kinds.speech.search import LimitedTranscriber
    from gpuplan.sizing.kinds.vision.search import SizedClassifier

    if isinstance(layout, LimitedReplica):
        needs = layout.replica.needs(layout.limit)
        return needs["max_num_seqs"], needs["max_num_batched_tokens"]
    if isinstance(layout, LimitedTranscriber):
        return layout.places, None
    return (layout.batch if isinstance(layout, SizedClassifier) else None), None


def _micro_batch(layout: object) -> float | None:
    """Of a run."""
    from gpuplan.sizing.kinds.training.judge import SizedRun
    from gpuplan.sizing.kinds.vision.runs import SizedLooking

    return float(layout.micro_batch) if isinstance(layout, SizedRun | SizedLooking) else None
