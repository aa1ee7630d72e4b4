"""The inverse questions of a manifest, each of its workloads alone: what its machines serve, which
models fit there, what latency costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal

from gpuplan.catalog.load import Catalog
from gpuplan.errors import Rejected
from gpuplan.models.load import bundled, bundled_names
from gpuplan.plan.capacity import Answer, Lengths, ModelFit, Objective, Question
from gpuplan.resolve.run import Resolved
from gpuplan.resolve.variants import with_model
from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.decide.capacity import KINDS, TOKENS, capacities, choice
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.hardware.sites import joined
from gpuplan.sizing.kinds.serving.frontier import frontier

Kind = Literal["rate", "split", "models", "frontier"]


def answers(
    resolved: Resolved,
    catalog: Catalog,
    kind: Kind,
    *,
    nodes: int,
    only: str | None,
    progress: Callable[[str], None],
) -> Iterator[Answer]:
    """An answer for each workload that serves something; for that called `only` where one is named.
    `nodes` are asked of each type that is bought."""
    site = joined(resolved.site)
    kinds = TOKENS if kind == "frontier" else KINDS
    for number, demand in enumerate(resolved.demands):
        if demand.kind not in kinds or only not in (None, demand.name):
            continue
        progress(f"asking {demand.name}")
        question = _question(demand)
        if kind == "models":
            fits = tuple(_models(resolved, number, catalog, site))
            yield Answer(question=question, models=fits)
        elif kind == "frontier":
            yield Answer(question=question, frontier=frontier(demand, site))
        else:
            splitting = kind == "split" and demand.kind == "serving"
            rates = capacities(demand, site, nodes, splitting=splitting)
            yield Answer(question=question, capacities=rates)


def _question(demand: Demand) -> Question:
    return Question(
        workload=demand.name,
        model=demand.model.identifier if demand.model else None,
        precision=demand.precision,
        input_tokens=_lengths(demand, "load.input_tokens"),
        output_tokens=_lengths(demand, "load.output_tokens"),
        objectives=tuple(_objectives(demand)),
        confidence=demand.value("slo.confidence") or 0.0,
        peak=demand.value("load.requests_per_second.peak"),
        growth=demand.value("growth.factor") or 1.0,
    )


def _lengths(demand: Demand, field: str) -> Lengths | None:
    mean = demand.value(f"{field}.mean")
    return None if mean is None else Lengths(mean=mean, p95=demand.value(f"{field}.p95"))


def _objectives(demand: Demand) -> Iterator[Objective]:
    for field, limit in demand.given.items():
        if field.startswith("slo.") and field != "slo.confidence":
            yield Objective(name=field.removeprefix("slo."), limit=limit.value, unit=limit.unit)


def _models(resolved: Resolved, number: int, catalog: Catalog, site: Site) -> Iterator[ModelFit]:
    """Every bundled model of the workload's kind, the largest first."""
    own = resolved.demands[number].model
    known = (bundled(name) for name in bundled_names())
    models = [m for m in known if m is not None and type(m) is type(own)]
    for model in sorted(models, key=lambda m: (-m.parameters, m.identifier)):
        fit = ModelFit(model=model.identifier, parameters=model.parameters)
        try:
            demand = with_model(resolved.loaded, number, model, catalog)
        except Rejected as rejected:
            yield replace(fit, problem=rejected.diagnostics[0].message)
        else:
            yield _fit(replace(fit, precision=demand.precision), demand, site)


def _fit(fit: ModelFit, demand: Demand, site: Site) -> ModelFit:
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
