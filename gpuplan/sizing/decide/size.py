"""Size one workload: `search` its candidates, and when one is chosen, `finish` its record."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from gpuplan.diagnostics import Diagnostic, Severity, remedied
from gpuplan.plan.model import Alternative
from gpuplan.plan.wording import NOTHING
from gpuplan.sizing.ask.demand import (
    SERVICES,
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
from gpuplan.sizing.ask.messages import unknown_override
from gpuplan.sizing.candidates.builds import barred
from gpuplan.sizing.candidates.choose import RACK, Candidate
from gpuplan.sizing.candidates.devices import named
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sized import Sized, Unforced
from gpuplan.sizing.decide.messages import (
    not_measured,
    nothing_fits,
    nothing_runs,
    override_does_not_fit,
    rack_feeds_no_node,
)
from gpuplan.sizing.decide.searched import Search
from gpuplan.sizing.decide.without import ENGINE_LIMITS, SEARCHED, overridden, without
from gpuplan.sizing.hardware.devices import Device, partitions
from gpuplan.sizing.hardware.measured import MEASURED
from gpuplan.sizing.hardware.offers import GpuOffer, OtherSite, Site
from gpuplan.vendors import vendor_of

# Kinds whose speed is also that of the host's cores, which are others in each shape.
HOST_BOUND = (VisionDemand, VisionRunDemand)
OfferGroups = Iterable[tuple[GpuOffer, Iterable[Candidate]]]


Others = Callable[[], Iterable[OtherSite]]


def search(demand: Demand, site: Site, others: Others = tuple) -> Search | tuple[Diagnostic, ...]:
    """Every layout that meets every objective, and those that do not; or why there is none.
    `others` are asked only then, for what would do instead."""
    problem = _unknown_choice(demand, site)
    if problem is not None:
        return (problem,)
    made = _search(demand, site)
    if not any(c.feasible for c in made.allowed):
        return (_nothing(made, site, others()),)
    return made


def _search(demand: Demand, site: Site) -> Search:
    return Search(demand, tried(demand, site))


def tried(demand: Demand, site: Site) -> tuple[tuple[GpuOffer, tuple[Candidate, ...]], ...]:
    """Every candidate of every offer, those that fit and those that do not. What is true of a GPU
    in the largest shape that is bought is true in the others: a smaller one holds those inside a
    node, and none is joined with others to one replica. Only work that may be stopped takes nodes
    that may be taken back."""
    offers = [o for o in site.gpus if demand.preemptible or not o.spot]
    largest, own = _largest(offers), host_bound(demand)
    of_each = [o if own or _alone(o) else largest[o.gpu.identifier] for o in offers]
    searched = {id(o): o for o in of_each}
    groups: dict[int, tuple[Candidate, ...]] = {
        id(o): (c,) for o in searched.values() if (c := barred(demand, o, site))
    }
    left = tuple(o for o in searched.values() if id(o) not in groups)
    by_offer = _engine(demand)[0](demand, replace(site, gpus=left)) if left else ()
    groups |= {id(offer): tuple(group) for offer, group in by_offer}
    return tuple(
        (o, groups[id(base)] if o is base else _inside(o, base, groups[id(base)]))
        for o, base in zip(offers, of_each, strict=True)
    )


def host_bound(demand: Demand) -> bool:
    """Whether what a replica does depends on the node beside its GPU."""
    return isinstance(demand, HOST_BOUND)


def _largest(offers: Iterable[GpuOffer]) -> dict[str, GpuOffer]:
    """Of each GPU type that is bought in several shapes the largest, kept before spare."""
    largest: dict[str, GpuOffer] = {}
    for offer in sorted(offers, key=lambda o: (-o.gpus_per_node, o.spot)):
        if not _alone(offer):
            largest.setdefault(offer.gpu.identifier, offer)
    return largest


def _alone(offer: GpuOffer) -> bool:
    """Whether no other shape of it is bought."""
    return offer.shape is None or offer.node_count is not None


def _inside(
    offer: GpuOffer, base: GpuOffer, candidates: Iterable[Candidate]
) -> tuple[Candidate, ...]:
    """Those of `base`, another node with the same GPUs, on `offer`."""
    spans = offer.gpus_per_node == base.gpus_per_node
    devices: dict[int, Device] = {}
    for candidate in candidates:
        device = candidate.device
        if id(device) not in devices:
            devices[id(device)] = replace(device, offer=offer)
    return tuple(
        replace(c, device=devices[id(c.device)])
        for c in candidates
        if spans or c.gpus <= offer.gpus_per_node
    )


def moved(search: Search, site: Site) -> Search:
    """What was tried, on the bought nodes of `site` with the same GPUs; types of GPUs and sizes of
    nodes that were not tried are left out."""
    tried_there = {id(offer): group for offer, group in search.groups}
    largest = _largest(offer for offer, _ in search.groups)
    if host_bound(search.demand):
        alike = (o for o in site.gpus if o.gpu.identifier in largest)
        return _search(search.demand, replace(site, gpus=tuple(alike)))
    groups = []
    for offer in site.gpus:
        base = largest.get(offer.gpu.identifier)
        allowed = search.demand.preemptible or not offer.spot
        if base is not None and allowed and offer.gpus_per_node <= base.gpus_per_node:
            groups.append((offer, _inside(offer, base, tried_there[id(base)])))
    return Search(search.demand, tuple(groups))


def _engine(demand: Demand) -> tuple[Callable[..., OfferGroups], Callable[..., Sized]]:
    """What searches a kind of workload and what records its winner; imports no other kind's."""
    searched: Callable[..., OfferGroups]
    recorded: Callable[..., Sized]
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


def _language(demand: LanguageDemand) -> tuple[Callable[..., OfferGroups], Callable[..., Sized]]:
    if isinstance(demand, ServingDemand) and demand.disaggregated:
        from gpuplan.sizing.kinds.serving import pooled, pools

        return pools.candidates, pooled.serve
    from gpuplan.sizing.kinds.serving import record, search

    return search.candidates, record.serve


def finish(
    search: Search, site: Site, winner: Candidate, alternatives: tuple[Alternative, ...]
) -> Sized | tuple[Diagnostic, ...]:
    """The workload as `winner` runs it, with its evidence; or the overrides that cannot work."""
    demand = search.demand
    settled = Settled(demand, _unforced(demand, site))
    sized = _engine(demand)[1](settled, site, winner, alternatives)
    errors = tuple(d for d in sized.diagnostics if d.severity is Severity.ERROR)
    if errors or not isinstance(demand, SERVICES):
        return errors or sized
    from gpuplan.sizing.candidates.tradeoffs import tradeoffs

    work = replace(sized.workload, tradeoffs=tradeoffs(search.allowed, winner))
    if isinstance(demand, ServingDemand) and not demand.disaggregated:
        from gpuplan.sizing.kinds.serving.rivals import rivals
        from gpuplan.sizing.kinds.serving.split import cheaper

        layouts, apart = rivals(search.allowed, winner), cheaper(demand, site, winner)
        work = replace(work, served_layouts=layouts, cheaper_split=apart)
    return replace(sized, workload=work)


def _unknown_choice(demand: Demand, site: Site) -> Diagnostic | None:
    """A GPU type or partition that an override asks for and the site lacks."""
    gpu, partition = demand.overrides.gpu, demand.overrides.partition
    known = tuple(dict.fromkeys(o.gpu.identifier for o in site.gpus))
    if gpu is not None and gpu not in known:
        return _unknown(demand, "gpu", gpu, known)
    offers = (o for o in site.gpus if gpu in (None, o.gpu.identifier))
    if partition is not None:
        shared = [d for o in offers for d in partitions(o, site)]
        names = {str(d.partition) for d in shared}
        if not named(partition, shared):
            return _unknown(demand, "partition", partition, tuple(sorted(names)))
    return None


def _unknown(demand: Demand, field: str, value: str, known: tuple[str, ...]) -> Diagnostic:
    at = demand.origin.child("overrides", field)
    return unknown_override(f"overrides.{field}", value, known, at)


def _nothing(made: Search, site: Site, others: Iterable[OtherSite]) -> Diagnostic:
    from gpuplan.sizing.decide.remedies import advice, blamed
    from gpuplan.sizing.kinds.serving.nodes import apart, short_of_memory

    demand, rejected = made.demand, made.rejected
    if rejected and all(c.shortfalls[0].resource.startswith(MEASURED) for c in rejected):
        return not_measured(demand.name, rejected, demand.origin)
    if rejected and all(c.shortfalls[0].resource.startswith(NOTHING) for c in rejected):
        return nothing_runs(demand.name, rejected, demand.origin, vendor_of(None).title)
    fields, instead = blamed(demand, site, _search)
    if fields:
        at = demand.origin.child("overrides", fields[0])
        problem = override_does_not_fit(fields, rejected, at, instead.words)
        return remedied(problem, *instead.remedies)
    if rejected and all(c.shortfalls[0].resource == RACK for c in rejected):
        return rack_feeds_no_node(rejected, demand.origin)
    elsewhere = tuple(others)
    change = advice(made, site, elsewhere, _search)
    if not change.remedies and (names := overridden(demand)):
        change = advice(_search(without(demand, names), site), site, elsewhere, _search, names)
    words = change.words
    if short_of_memory(made.allowed) and (why := apart(demand, site)):
        words = f"{why}; {words}" if words else why
    problem = nothing_fits(demand.name, rejected, demand.origin, words)
    return remedied(problem, *change.remedies)


def _unforced(demand: Demand, site: Site) -> Unforced:
    """What the search would choose without the overrides that narrow it."""
    if all(getattr(demand.overrides, name) is None for name in (*SEARCHED, *ENGINE_LIMITS)):
        return Unforced()
    winner = _search(without(demand, (*SEARCHED, *ENGINE_LIMITS)), site).best
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
    from gpuplan.sizing.kinds.serving.search import LimitedReplica
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
