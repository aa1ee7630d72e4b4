"""What searches a kind of workload and what records its winner; imports no other
kind's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from gpuplan.frozen import frozen
from gpuplan.plan.model import Alternative
from gpuplan.sizing.ask.demand import (
    Demand,
    DiffusionDemand,
    LanguageDemand,
    NotebookDemand,
    PoolingDemand,
    ServingDemand,
    SpeechDemand,
    VisionDemand,
    VisionRunDemand,
)
from gpuplan.sizing.candidates.choose import Candidate, L
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.hardware.offers import GpuOffer, Site

D = TypeVar("D", bound=Demand)


@frozen
class Sizer(Generic[D, L]):
    """A kind of workload: `search` tries layouts on each offer of a site, and what it evaluated of
    the one that wins `record` writes down, with its evidence."""

    search: Callable[[D, Site], Iterable[tuple[GpuOffer, Iterable[Candidate[L]]]]]
    record: Callable[[Settled[D], Site, Candidate[L], tuple[Alternative, ...]], Sized]


def sizer(demand: Demand) -> Sizer[Any, Any]:
    """That of its class: the types of each agree, and are left here."""
    if isinstance(demand, LanguageDemand):
        return _language(demand)
    if isinstance(demand, PoolingDemand):
        from gpuplan.sizing.kinds.pooling import record as pooling_record
        from gpuplan.sizing.kinds.pooling import search as pooling

        return Sizer(pooling.candidates, pooling_record.recorded)
    if isinstance(demand, SpeechDemand):
        from gpuplan.sizing.kinds.speech import record as speech_record
        from gpuplan.sizing.kinds.speech import search as speech

        return Sizer(speech.candidates, speech_record.recorded)
    if isinstance(demand, VisionDemand):
        from gpuplan.sizing.kinds.vision import record as vision_record
        from gpuplan.sizing.kinds.vision import search as vision

        return Sizer(vision.candidates, vision_record.recorded)
    if isinstance(demand, VisionRunDemand):
        from gpuplan.sizing.kinds.vision import run_record, runs

        return Sizer(runs.candidates, run_record.recorded)
    if isinstance(demand, DiffusionDemand):
        from gpuplan.sizing.kinds.images import record as images_record
        from gpuplan.sizing.kinds.images import search as images

        return Sizer(images.candidates, images_record.recorded)
    if isinstance(demand, NotebookDemand):
        from gpuplan.sizing.kinds import notebooks

        return Sizer(notebooks.candidates, notebooks.recorded)
    from gpuplan.sizing.kinds.training import record as training_record
    from gpuplan.sizing.kinds.training import search as training

    return Sizer(training.candidates, training_record.recorded)


def _language(demand: LanguageDemand) -> Sizer[Any, Any]:
    if isinstance(demand, ServingDemand) and demand.disaggregated:
        from gpuplan.sizing.kinds.serving import pooled, pools

        return Sizer(pools.candidates, pooled.recorded)
    from gpuplan.sizing.kinds.serving import record, search

    return Sizer(search.candidates, record.recorded)
