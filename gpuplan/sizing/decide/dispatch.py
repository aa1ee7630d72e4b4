"""What searches a kind of workload and what records its winner; imports no other
kind's."""

from __future__ import annotations

from collections.abc import Callable, Iterable

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
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.hardware.offers import GpuOffer

Searcher = Callable[..., Iterable[tuple[GpuOffer, Iterable[Candidate]]]]
Recorder = Callable[..., Sized]


def searcher(demand: Demand) -> Searcher:
    """Of each offer of a site the candidates: `(demand, site)`."""
    return _of_kind(demand)[0]


def recorder(demand: Demand) -> Recorder:
    """What records a winner: `(settled, site, winner, alternatives)`."""
    return _of_kind(demand)[1]


def _of_kind(demand: Demand) -> tuple[Searcher, Recorder]:
    searched: Searcher
    recorded: Recorder
    if isinstance(demand, LanguageDemand):
        searched, recorded = _language(demand)
    elif isinstance(demand, PoolingDemand):
        from gpuplan.sizing.kinds.pooling import record as pooled
        from gpuplan.sizing.kinds.pooling import search as readers

        searched, recorded = readers.candidates, pooled.read
    elif isinstance(demand, SpeechDemand):
        from gpuplan.sizing.kinds.speech import record as written
        from gpuplan.sizing.kinds.speech import search as transcribers

        searched, recorded = transcribers.candidates, written.write
    elif isinstance(demand, VisionDemand):
        from gpuplan.sizing.kinds.vision import record as looked
        from gpuplan.sizing.kinds.vision import search as classifiers

        searched, recorded = classifiers.candidates, looked.look
    elif isinstance(demand, VisionRunDemand):
        from gpuplan.sizing.kinds.vision import run_record, runs

        searched, recorded = runs.candidates, run_record.learn
    elif isinstance(demand, DiffusionDemand):
        from gpuplan.sizing.kinds.images import record as drawn
        from gpuplan.sizing.kinds.images import search as pipelines

        searched, recorded = pipelines.candidates, drawn.draw
    elif isinstance(demand, NotebookDemand):
        from gpuplan.sizing.kinds import notebooks

        searched, recorded = notebooks.candidates, notebooks.open_notebooks
    else:
        from gpuplan.sizing.kinds.training import record as trained
        from gpuplan.sizing.kinds.training import search as layouts

        searched, recorded = layouts.candidates, trained.train
    return searched, recorded


def _language(demand: LanguageDemand) -> tuple[Searcher, Recorder]:
    if isinstance(demand, ServingDemand) and demand.disaggregated:
        from gpuplan.sizing.kinds.serving import pooled, pools

        return pools.candidates, pooled.serve
    from gpuplan.sizing.kinds.serving import record, search

    return search.candidates, record.serve
