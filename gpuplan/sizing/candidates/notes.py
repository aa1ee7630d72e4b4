"""What a person should know of a chosen candidate beside its numbers."""

from __future__ import annotations

from gpuplan.catalog.shapes import Shape
from gpuplan.diagnostics import Diagnostic
from gpuplan.engines import drafts
from gpuplan.plan.model import Interruption
from gpuplan.sizing.ask.demand import (
    Demand,
    LanguageDemand,
    NotebookDemand,
    TrainingDemand,
    idle_time,
)
from gpuplan.sizing.ask.messages import missing_fact, not_acted_on, whole_for_little
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.devices import may_share
from gpuplan.sizing.hardware.devices import partitions
from gpuplan.sizing.hardware.offers import Site
from gpuplan.targets import TARGETS
from gpuplan.units import format_bytes, format_seconds, format_usd


def notes(
    demand: Demand, site: Site, candidate: Candidate, lost: Interruption | None
) -> tuple[Diagnostic, ...]:
    """What a person should know beside the numbers."""
    diagnostics: list[Diagnostic] = []
    idle = idle_time(demand)
    if idle is not None and idle.value:
        cost = candidate.usd_per_hour
        money = "" if cost is None else f", {format_usd(float(cost) * idle.value / 3600)} a day"
        diagnostics.append(
            not_acted_on(
                f"'{demand.name}' is idle {format_seconds(idle.value)} a day{money}: "
                "nothing scales it",
                demand.origin.child("load", "idle"),
                "lower the replicas in those hours, or give them to preemptible work",
            )
        )
    if isinstance(demand, NotebookDemand) and (part := _would_do(demand, site, candidate)):
        wanted = format_bytes(int(demand.gpu_memory))
        gpu, isolation = candidate.device.gpu.identifier, demand.isolation
        problem = whole_for_little(
            demand.name, gpu, wanted, part, isolation=isolation, origin=demand.origin
        )
        diagnostics.append(problem)
    shape = candidate.device.offer.shape
    if shape is not None and lost is not None:
        diagnostics.append(_interrupted(demand, shape, lost))
    if shape is not None and demand.preemptible and _listed_as_kept(candidate, site):
        diagnostics.append(_kept(demand, shape))
    if isinstance(demand, LanguageDemand) and demand.drafts and not _drafts(demand, site):
        diagnostics.append(
            not_acted_on(
                f"'{demand.name}' is sized with speculative decoding, which nothing turns on",
                demand.origin.child("speculative"),
                "name its 'method', of engine vllm or sglang, or tell the engine in `command`",
            )
        )
    unread = isinstance(demand, TrainingDemand) and demand.dataset.rate is not None
    if unread and site.storage_bytes_per_s is None:
        diagnostics.append(
            missing_fact(
                "the bandwidth of the storage",
                f"the dataset of '{demand.name}'",
                demand.origin.child("dataset", "rate"),
                "write `platform.storage.bandwidth`",
            )
        )
    return tuple(diagnostics)


def _would_do(demand: NotebookDemand, site: Site, candidate: Candidate) -> str | None:
    """The smallest part of its GPU that would hold each user, where isolation keeps it whole."""
    if candidate.device.partition is not None or may_share(demand):
        return None
    parts = partitions(candidate.device.offer, site)
    fitting = (d.partition for d in parts if d.memory_bytes.value >= int(demand.gpu_memory))
    return next(fitting, None)


def _interrupted(demand: Demand, shape: Shape, lost: Interruption) -> Diagnostic:
    """What an interruption costs; how many there are nobody states."""
    money = "" if lost.usd is None else f", {format_usd(lost.usd)}"
    redone = lost.seconds - lost.restart_seconds
    work = f"{format_seconds(redone)} of work and " if redone else ""
    return not_acted_on(
        f"'{demand.name}' runs on spare capacity ({shape.rented}): each time that a replica's is "
        f"taken back costs {work}{format_seconds(lost.restart_seconds)} of restart{money} on "
        "average, and the time until there is some again; how often is stated nowhere: price and "
        "duration are without any",
        demand.origin.child("preemptible"),
        "write `preemptible: false` to plan with nodes that are kept",
    )


def _listed_as_kept(candidate: Candidate, site: Site) -> bool:
    """Whether its nodes have a list price, and spare ones with its GPU none."""
    offer = candidate.device.offer
    spare = any(o.spot and o.gpu.identifier == offer.gpu.identifier for o in site.gpus)
    return offer.listed is not None and offer.shape is not None and not spare


def _kept(demand: Demand, shape: Shape) -> Diagnostic:
    """Work that may be stopped, on nodes that nobody takes back."""
    return not_acted_on(
        f"no price of spare capacity is known for {shape.rented or shape.name}: "
        f"'{demand.name}' is planned and priced on nodes that are kept",
        demand.origin.child("preemptible"),
        "state what it costs in 'platform.prices'",
    )


def _drafts(demand: LanguageDemand, site: Site) -> bool:
    """Whether somebody tells the engine how to draft."""
    if demand.command:
        return True
    emitted = demand.engine.name in drafts.ENGINES and TARGETS[site.target].starts_engines
    return demand.speculative is not None and emitted
