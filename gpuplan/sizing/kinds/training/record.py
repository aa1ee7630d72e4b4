"""The chosen layout of a training run, with the evidence of every number."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from gpuplan.plan.model import (
    Alternative,
    Interruption,
    Metric,
    Training,
    Volume,
)
from gpuplan.sizing.ask.demand import TrainingDemand
from gpuplan.sizing.candidates.assemble import Cost, finish, record_cost, storage
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.interruptions import interruption
from gpuplan.sizing.candidates.needs import record_start
from gpuplan.sizing.candidates.replicas import memory_budget
from gpuplan.sizing.candidates.resources import host_resources, volume
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sheets import CHECKPOINTS_KEPT, RUN_COST
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.intervals import inverse, metric
from gpuplan.sizing.evidence.sheet import Scope, sheet
from gpuplan.sizing.hardware.domains import in_domain
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.training import datasets, failures, grid, layouts
from gpuplan.sizing.kinds.training.judge import UTILIZED, SizedRun, engine_of, parallelism
from gpuplan.sizing.kinds.training.load import SEEN, length
from gpuplan.sizing.kinds.training.needs import record_run
from gpuplan.sizing.kinds.training.notes import noted
from gpuplan.sizing.memory.margin import gpu_memory_metric
from gpuplan.sizing.model.checkpoints import published_bytes
from gpuplan.sizing.physics.training.division import Division
from gpuplan.units import MICRO, format_bytes

_RESUMED = sheet("""
    resumed_bytes: B = model_bytes + checkpoint_bytes  # the model, and the checkpoint over it
""")
_STORED_COST = sheet("""
    usd_of_checkpoints: USD = checkpoint_storage_bytes * checkpoint_volumes / gigabyte
        * usd_per_gb_month * time_to_finish / month  # the volume, while it runs
""")
_WHOLE_COST = sheet("""
    usd_per_run: USD = usd_per_hour * time_to_finish / hour + usd_of_checkpoints
        # GPUs and checkpoints, the whole run
""")


def recorded(
    settled: Settled[TrainingDemand],
    site: Site,
    candidate: Candidate[SizedRun],
    alternatives: tuple[Alternative, ...],
) -> Sized:
    layout = candidate.evaluated
    demand = settled.demand
    scope = _record(settled, site, candidate)
    cost = record_cost(settled, candidate, constant(1, "1", "one run"), scope["gpus"])
    bought = settled.demand.spare_nodes is not None
    if "spare_nodes" in scope and cost.usd_per_hour is not None and not bought:
        scope = scope | {"usd_per_hour": cost.usd_per_hour}
        scope = failures.SPARE_COST.record(settled.ledger, scope)
    volumes, scope = _volumes(settled, site, scope, candidate)
    stored = _prices(settled, site, scope, cost, volumes)
    inside = min(candidate.gpus, candidate.device.offer.gpus_per_node)
    sized = finish(
        settled,
        site,
        candidate,
        alternatives,
        cost,
        engine=engine_of(demand, layout),
        parallelism=parallelism(layout.run.division),
        nodes_per_replica=candidate.nodes,
        one_domain=in_domain(candidate.device, candidate.nodes, candidate.spares) or None,
        gpus_per_node=inside,
        memory=memory_budget(scope),
        metrics=_metrics(demand, layout, scope),
        bound_by=bound_by(layout),
        resources=host_resources(settled, candidate.device, inside),
        volumes=volumes,
        usd_of_storage=stored,
        interruption=_interruption(settled, site, candidate, cost, scope),
        training=_settings(demand, layout, scope, spares=candidate.spares),
        layouts=layouts.rivals(demand, site, candidate),
        concurrency=1,
    )
    eight = layouts.in_eight_bits(demand, site, candidate)
    return noted(sized, site, demand, layout, scope, eight=eight)


def _prices(
    settled: Settled[TrainingDemand],
    site: Site,
    scope: Scope,
    cost: Cost,
    volumes: tuple[Volume, ...],
) -> Decimal | None:
    """The price of the run, and of it that of its checkpoints, where storage has one."""
    ledger, price = settled.ledger, site.storage_usd_per_gb_month
    if price is None:
        if cost.usd_per_hour is not None:
            RUN_COST.record(ledger, scope | {"usd_per_hour": cost.usd_per_hour})
        return None
    shared = next(v.shared for v in volumes if v.purpose == "checkpoints")
    count = constant(1, "1", "one for all nodes") if shared else scope["nodes"]
    scope = _STORED_COST.record(
        ledger, scope | {"checkpoint_volumes": count, "usd_per_gb_month": price}
    )
    if cost.usd_per_hour is not None:
        _WHOLE_COST.record(ledger, scope | {"usd_per_hour": cost.usd_per_hour})
    return Decimal(repr(scope["usd_of_checkpoints"].value)).quantize(MICRO)


def _interruption(
    settled: Settled[TrainingDemand],
    site: Site,
    candidate: Candidate[SizedRun],
    cost: Cost,
    scope: Scope,
) -> Interruption | None:
    """The whole run waits for any of its nodes."""
    demand = settled.demand
    given = {
        "replicas": constant(1, "1", "one run"),
        "time_to_finish": scope["time_to_finish"],
        "checkpoint_interval": demand.checkpoint_interval,
    }
    if (limit := demand.limit.first) is not None:
        given["time_limit"] = limit
    if not candidate.device.offer.spot:
        return None
    loaded = _RESUMED.record(settled.ledger, scope)["resumed_bytes"]
    return interruption(settled, site, candidate, cost, given, loaded=loaded)


def _record(settled: Settled[TrainingDemand], site: Site, candidate: Candidate[SizedRun]) -> Scope:
    layout = candidate.evaluated
    ledger, demand, run = settled.ledger, settled.demand, layout.run
    scope = run.prepared.shape.record(ledger, run.scope)
    if failures.counted(demand, site, candidate.nodes):
        scope |= failures.inputs(demand, site, candidate.nodes)
        scope = failures.losses(demand).record(ledger, scope)
        scope = failures.SPARES.record(ledger, scope)
    sheet, inputs = length(demand)
    scope = sheet.record(ledger, scope | inputs)
    scope |= {
        "gpus": settled.choice(
            "gpu_count",
            Quantity(float(run.division.gpus), "1", "choice: the cheapest run in time"),
            demand.overrides.gpu_count,
            settled.free.gpu_count,
        ),
        "micro_batch": settled.choice(
            "micro_batch",
            Quantity(float(layout.micro_batch), "1", "choice: the largest that fits"),
            demand.overrides.micro_batch,
            settled.free.micro_batch,
        ),
    }
    if demand.dataset.tokens is not None:
        SEEN.record(ledger, scope | {"dataset_tokens": demand.dataset.tokens})
    if demand.lora_rank is not None:
        scope["lora_rank"] = demand.lora_rank
    scope = run.record(ledger, scope)
    if "failures_per_second" in scope:
        scope = failures.TIMES.record(ledger, scope)
    routed = scope.get("routed_parameters", constant(0, "1", "no experts"))
    return UTILIZED.record(ledger, scope | {"routed_parameters": routed})


def _metrics(demand: TrainingDemand, layout: SizedRun, scope: Scope) -> tuple[Metric, ...]:
    basis, factors = layout.basis, layout.factors
    tokens = demand.tokens_per_second or demand.accepted_tokens_per_second
    limit = demand.limit.shown
    return (
        metric(
            "tokens_per_second",
            "1/s",
            scope["tokens_per_second"].value,
            factors=inverse(factors),
            basis=basis,
            limit=tokens.value if tokens else None,
            sense="at_least",
        ),
        metric("step_seconds", "s", scope["step_seconds"].value, factors=factors, basis=basis),
        metric(
            "time_to_finish",
            "s",
            scope["time_to_finish"].value,
            factors=factors,
            basis=basis,
            limit=limit.value if limit else None,
        ),
        gpu_memory_metric(scope, *layout.run.memory_interval),
    )


def bound_by(layout: SizedRun) -> str:
    """The largest part of a step."""
    v = layout.values
    each = v["gradient_accumulation_steps"]
    products = v["matmul_seconds"] + v["head_seconds"] + v["attention_seconds"]
    parts = {
        "compute": each * (products + v.get("expert_seconds", 0.0)),
        "memory bandwidth": each
        * (v["operand_seconds"] + v["elementwise_seconds"] + v["weight_seconds"])
        + v.get("update_seconds", 0.0),
        "interconnect": v["exchange_seconds"]
        + each * sum(v.get(f"{part}_seconds", 0.0) for part in ("tensor", "context", "dispatch")),
        "pipeline bubble": v["bubble"]
        * (v["pipeline_parallel_size"] - 1)
        / v["virtual_stages"]
        * v["micro_seconds"]
        if "bubble" in v
        else 0.0,
        "host": each * (v["micro_seconds"] - v["device_seconds"]),
    }
    return max(parts, key=lambda name: parts[name])


def _volumes(
    settled: Settled[TrainingDemand], site: Site, scope: Scope, candidate: Candidate[SizedRun]
) -> tuple[tuple[Volume, ...], Scope]:
    """The volumes, and `scope` with what lies there."""
    ledger, demand, shared = settled.ledger, settled.demand, candidate.nodes > 1
    overrides = demand.overrides
    model = published_bytes(ledger, demand.model, "model_bytes")
    downloads = datasets.downloads(settled, model)
    models = storage(settled, "model_storage_bytes", downloads, overrides.model_storage, downloads)
    record_start(settled, site, candidate.device, stored=model, weights=scope["weights_bytes"])
    if not failures.counted(demand, site, candidate.nodes):
        adapter = demand.method in ("lora", "qlora")
        written = failures.ADAPTER if adapter else failures.CHECKPOINT
        writers = constant(1, "1", "one node writes") if adapter else _nodes(candidate)
        if (rate := site.storage_bytes_per_s) is not None:
            written += failures.WRITE
            scope = scope | {"storage_bytes_per_s": rate, "nodes": writers}
        scope = written.record(ledger, scope)
    scope = CHECKPOINTS_KEPT.record(ledger, scope)
    checkpoint, kept = scope["checkpoint_bytes"], scope["checkpoints_kept_bytes"]
    size = storage(
        settled, "checkpoint_storage_bytes", kept, overrides.checkpoint_storage, checkpoint
    )
    why = f"two checkpoints that are kept and one that is written take {format_bytes(kept.value)}"
    wise = size.value >= kept.value or size.value < checkpoint.value
    settled.hold(overrides.checkpoint_storage, why, works=True, wise=wise)
    record_run(
        settled,
        site,
        scope,
        nodes=candidate.nodes,
        checkpoint=checkpoint,
        bridged=not candidate.device.gpu.nvlink_bytes_per_s,
    )
    volumes = [
        volume(site, "models", models, shared=shared),
        volume(site, "checkpoints", size, shared=shared),
    ]
    why = "'dataset.size' says what lies there, and is not written"
    settled.hold(overrides.dataset_storage, why, works=demand.dataset.size is not None)
    if demand.dataset.size is not None:
        needed = datasets.kept(settled)
        data = storage(settled, "dataset_storage_bytes", needed, overrides.dataset_storage, needed)
        volumes.append(volume(site, "dataset", data, shared=shared))
    more = {"model_bytes": model, "checkpoint_storage_bytes": size, "nodes": _nodes(candidate)}
    return tuple(volumes), scope | more


def _nodes(candidate: Candidate[SizedRun]) -> Quantity:
    return Quantity(float(candidate.nodes), "1", "choice: nodes of the run")


def _settings(demand: TrainingDemand, layout: SizedRun, scope: Scope, *, spares: int) -> Training:
    return Training(
        method=demand.method,
        sequence_length=int(scope["sequence_length"]),
        global_batch=int(scope["global_batch"]),
        micro_batch=layout.micro_batch,
        gradient_accumulation_steps=int(scope["gradient_accumulation_steps"]),
        steps=int(scope["steps"]),
        optimizer=demand.optimizer,
        recompute=layout.run.division.recompute,
        sharding=layout.run.division.sharding,
        lora_rank=None if demand.lora_rank is None else int(demand.lora_rank),
        virtual_pipeline_stages=_several(layout.run.division.virtual),
        ends_are_layers=_ends(demand, layout.run.division),
        checkpoint_interval_seconds=scope.get("saved_every", demand.checkpoint_interval).value,
        dataset=demand.dataset.name,
        spare_nodes=spares or None,
    )


def _ends(demand: TrainingDemand, division: Division) -> Literal[True] | None:
    even = grid.whole_stages(demand.model.layers, division.pipeline, division.virtual)
    return None if even else True


def _several(number: int) -> int | None:
    return number if number > 1 else None
