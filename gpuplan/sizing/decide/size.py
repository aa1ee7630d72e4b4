"""Size one workload: `search` its candidates, and when one is chosen, `finish` its record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from gpuplan.diagnostics import Diagnostic, Severity
from gpuplan.plan.model import Alternative
from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.ask.fields import SEARCHED
from gpuplan.sizing.ask.messages import unknown_override
from gpuplan.sizing.candidates.choose import Candidate, best, furthest
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.decide.messages import nothing_fits, override_does_not_fit
from gpuplan.sizing.hardware.devices import partitions
from gpuplan.sizing.hardware.offers import GpuOffer, Site

Groups = Iterable[tuple[GpuOffer, Iterable[Candidate]]]


@dataclass(frozen=True, slots=True)
class Search:
    """What was tried for a workload: the candidates of each offer."""

    demand: Demand
    groups: tuple[tuple[GpuOffer, tuple[Candidate, ...]], ...]

    @property
    def allowed(self) -> Iterator[Candidate]:
        """All candidates, or those of the GPU type that an override asks for."""
        forced = self.demand.overrides.gpu
        return (c for o, group in self.groups if forced in (None, o.gpu.identifier) for c in group)


def search(demand: Demand, site: Site) -> Search | tuple[Diagnostic, ...]:
    """Every layout that meets every objective, and those that do not; or why there is none."""
    problem = _unknown_choice(demand, site)
    if problem is not None:
        return (problem,)
    found = _search(demand, site)
    if not any(c.feasible for c in found.allowed):
        return (_nothing(found, site),)
    return found


def _search(demand: Demand, site: Site) -> Search:
    return Search(demand, tried(demand, site))


def tried(demand: Demand, site: Site) -> tuple[tuple[GpuOffer, tuple[Candidate, ...]], ...]:
    """Every candidate of every offer, those that fit and those that do not."""
    groups = _engine(demand)[0](demand, site)
    return tuple((offer, tuple(group)) for offer, group in groups)


def _engine(demand: Demand) -> tuple[Callable[..., Groups], Callable[..., Sized]]:
    """What searches a kind of workload and what records its winner; imports no other kind's."""
    if demand.kind in ("serving", "batch"):
        from gpuplan.sizing.kinds.serving.record import serve
        from gpuplan.sizing.kinds.serving.search import candidates as replicas

        return replicas, serve
    if demand.kind == "training":
        from gpuplan.sizing.kinds.training.record import train
        from gpuplan.sizing.kinds.training.search import candidates as runs

        return runs, train
    if demand.kind == "notebook":
        from gpuplan.sizing.kinds import notebooks

        return notebooks.candidates, notebooks.open_notebooks
    from gpuplan.sizing.kinds.images.record import draw
    from gpuplan.sizing.kinds.images.search import candidates as pipelines

    return pipelines, draw


def finish(
    search: Search, site: Site, winner: Candidate, alternatives: tuple[Alternative, ...]
) -> Sized | tuple[Diagnostic, ...]:
    """The workload as `winner` runs it, with its evidence; or the overrides that cannot work."""
    demand = search.demand
    sized = _engine(demand)[1](Settled(demand), site, winner, alternatives, _free(demand, site))
    errors = tuple(d for d in sized.diagnostics if d.severity is Severity.ERROR)
    if errors or demand.kind != "serving":
        return errors or sized
    from gpuplan.sizing.kinds.serving.tradeoffs import tradeoffs

    found = tradeoffs(demand, search.allowed, winner)
    return replace(sized, workload=replace(sized.workload, tradeoffs=found))


def _unknown_choice(demand: Demand, site: Site) -> Diagnostic | None:
    """A GPU type or partition that an override asks for and the site lacks."""
    gpu, partition = demand.overrides.gpu, demand.overrides.partition
    known = tuple(dict.fromkeys(o.gpu.identifier for o in site.gpus))
    if gpu is not None and gpu not in known:
        return _unknown(demand, "gpu", gpu, known)
    offers = (o for o in site.gpus if gpu in (None, o.gpu.identifier))
    if partition is not None:
        names = {str(d.partition) for o in offers for d in partitions(o, site)}
        if partition not in names:
            return _unknown(demand, "partition", partition, tuple(sorted(names)))
    return None


def _unknown(demand: Demand, field: str, value: str, known: tuple[str, ...]) -> Diagnostic:
    at = demand.origin.child("overrides", field)
    return unknown_override(f"overrides.{field}", value, known, at)


def _nothing(search: Search, site: Site) -> Diagnostic:
    from gpuplan.sizing.decide.remedies import blamed, change

    demand = search.demand
    rejected = [c for c in (furthest(group) for _, group in search.groups) if c is not None]
    rejected = [c for c in rejected if demand.overrides.gpu in (None, c.device.gpu.identifier)]
    fields, instead = blamed(demand, site, _best)
    if fields:
        at = demand.origin.child("overrides", fields[0])
        return override_does_not_fit(fields, rejected, at, instead)
    remedy = change(demand, site, rejected, _best)
    return nothing_fits(demand.name, rejected, demand.origin, remedy)


def _best(demand: Demand, site: Site) -> Candidate | None:
    return best(_search(demand, site).allowed)


def _free(demand: Demand, site: Site) -> dict[str, float]:
    """What the search would choose without the overrides that narrow it; {} without such."""
    if all(getattr(demand.overrides, f) is None for f in SEARCHED):
        return {}
    from gpuplan.sizing.decide.remedies import without
    from gpuplan.sizing.kinds.training.search import Layout

    winner = _best(without(demand, SEARCHED), site)
    if winner is None:
        return {}
    chosen = {"tensor_parallel_size": float(winner.gpus), "gpu_count": float(winner.gpu_count)}
    if isinstance(winner.detail, Layout):
        chosen["micro_batch"] = float(winner.detail.micro_batch)
    return chosen
