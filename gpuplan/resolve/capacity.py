"""The inverse questions of a manifest, each of its workloads alone: what its machines serve, which
models fit there, what latency costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal

from gpuplan.catalog.load import Catalog
from gpuplan.errors import Rejected
from gpuplan.models.load import bundled_names, known
from gpuplan.models.model import Model
from gpuplan.models.vision import vision_names
from gpuplan.plan.capacity import Answer, Lengths, ModelFit, Objective, Question
from gpuplan.resolve.run import Resolved
from gpuplan.resolve.variants import with_model
from gpuplan.sizing.ask.demand import (
    GROWING,
    SERVICES,
    LanguageDemand,
    ModelDemand,
    PoolingDemand,
    ServingDemand,
    TrainingDemand,
    accepted,
)
from gpuplan.sizing.ask.fields import CONFIDENCE
from gpuplan.sizing.ask.given import Given, numbers
from gpuplan.sizing.ask.parts import OpenLoop
from gpuplan.sizing.decide.capacity import capacities, choice
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.hardware.sites import joined
from gpuplan.sizing.kinds.serving.frontier import frontier
from gpuplan.sizing.kinds.training.inverse import frontier as frontier_of_runs
from gpuplan.sizing.kinds.training.inverse import runs

Kind = Literal["rate", "split", "models", "frontier"]


def answers(
    resolved: Resolved,
    catalog: Catalog,
    kind: Kind,
    *,
    nodes: int | None,
    only: str | None,
    budget: float | None = None,
    progress: Callable[[str], None],
) -> Iterator[Answer]:
    """An answer for each workload that serves or trains something; for that called `only` where one
    is named. `nodes` are asked of each type that is bought, one where nothing is said; a run may
    cost `budget` USD."""
    site = joined(resolved.site)
    for number, demand in enumerate(resolved.demands):
        if isinstance(demand, TrainingDemand) and _asked_of_runs(demand, kind, only):
            progress(f"asking {demand.name}")
            curve = kind == "frontier"
            planned_runs = (
                frontier_of_runs(demand, site) if curve else runs(demand, site, nodes, budget)
            )
            yield Answer(question=_question(demand, budget), runs=planned_runs)
        if not isinstance(demand, GROWING):
            continue
        language = isinstance(demand, LanguageDemand) and not _apart(demand)
        if only not in (None, demand.name) or (kind == "frontier" and not language):
            continue
        progress(f"asking {demand.name}")
        question = _question(demand)
        if kind == "models":
            fits = tuple(_models(resolved, number, catalog, site))
            yield Answer(question=question, models=fits)
        elif kind == "frontier" and isinstance(demand, LanguageDemand):
            yield Answer(question=question, frontier=frontier(demand, site))
        else:
            splitting = kind == "split" and isinstance(demand, ServingDemand)
            rates = capacities(demand, site, nodes or 1, splitting=splitting)
            yield Answer(question=question, capacities=rates)


def _asked_of_runs(demand: TrainingDemand, kind: Kind, only: str | None) -> bool:
    return kind in ("rate", "frontier") and only in (None, demand.name)


def _apart(demand: LanguageDemand) -> bool:
    """Whether no replica does both prefill and decode, which a curve of latency would be of."""
    return isinstance(demand, ServingDemand) and demand.disaggregated


def _question(demand: ModelDemand, budget: float | None = None) -> Question:
    lengths = demand.lengths if isinstance(demand, LanguageDemand) else None
    read = demand if isinstance(demand, PoolingDemand) else lengths
    loop = demand.arrivals if isinstance(demand, SERVICES) else None
    growth = demand.growth if isinstance(demand, GROWING) else None
    return Question(
        workload=demand.name,
        model=demand.model.identifier,
        precision=demand.precision,
        input_tokens=_lengths(read.input_mean, read.input_p95) if read else None,
        output_tokens=_lengths(lengths.output_mean, lengths.output_p95) if lengths else None,
        objectives=tuple(_objectives(demand)),
        confidence=demand.confidence.value,
        peak=loop.peak.value if isinstance(loop, OpenLoop) else None,
        growth=growth.factor.value if growth else 1.0,
        budget=budget,
    )


def _lengths(mean: Given, p95: Given) -> Lengths:
    return Lengths(mean=mean.value, p95=p95.value)


def _objectives(demand: ModelDemand) -> Iterator[Objective]:
    may = {limit.field.path for limit in accepted(demand).values()}
    for number in numbers(demand):
        section, _, name = number.field.path.partition(".")
        if section == "slo" and number.field is not CONFIDENCE:
            yield Objective(
                name=name.replace(".", "_"),
                limit=number.value,
                unit=number.unit,
                accepted=number.field.path in may,
            )


def _models(resolved: Resolved, number: int, catalog: Catalog, site: Site) -> Iterator[ModelFit]:
    """Every bundled model of the workload's kind, the largest first."""
    own = resolved.demands[number]
    assert isinstance(own, ModelDemand)
    every_model = (known(name) for name in (*bundled_names(), *vision_names()))
    models = [m for m in every_model if m is not None and _alike(m, own.model)]
    for model in sorted(models, key=lambda m: (-m.parameters, m.identifier)):
        fit = ModelFit(model=model.identifier, parameters=model.parameters)
        try:
            demand = with_model(resolved.loaded, number, model, catalog)
        except Rejected as rejected:
            yield replace(fit, problem=rejected.diagnostics[0].message)
            continue
        assert isinstance(demand, ModelDemand)
        yield _fit(replace(fit, precision=demand.precision), demand, site)


def _fit(fit: ModelFit, demand: ModelDemand, site: Site) -> ModelFit:
    layout, nearest = choice(demand, site)
    if layout is not None:
        return replace(
            fit,
            gpu=layout.device.gpu.identifier,
            partition=layout.device.partition,
            gpu_count=layout.gpu_count,
            tensor_parallel_size=layout.gpus,
            replicas=layout.replicas,
            usd_per_hour=layout.usd_per_hour,
        )
    if nearest is None:
        return fit
    return replace(fit, nearest=nearest.device.gpu.identifier, shortfalls=nearest.shortfalls)


def _alike(model: Model, own: Model) -> bool:
    """Whether it is of the same kind: writes text, reads it for vectors or scores, makes images."""
    kinds = {getattr(m, "pooling", None) for m in (model, own)}
    return type(model) is type(own) and len(kinds) == 1
