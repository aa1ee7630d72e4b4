"""The chosen layout of a training run, with the evidence of every number."""

from __future__ import annotations

from gpuplan.diagnostics import Diagnostic
from gpuplan.plan.model import Alternative, MemoryBudget, Metric, Parallelism, Training, Volume
from gpuplan.sizing.ask.demand import TrainingDemand
from gpuplan.sizing.ask.messages import missing_fact, not_acted_on
from gpuplan.sizing.candidates.assemble import finish, record_cost, storage
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.needs import record_start
from gpuplan.sizing.candidates.resources import host_resources, volume
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sized import Sized, Unforced
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.intervals import inverse, metric
from gpuplan.sizing.evidence.sheet import Scope, sheet
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.training import datasets
from gpuplan.sizing.kinds.training.load import SEEN, length
from gpuplan.sizing.kinds.training.needs import record_run
from gpuplan.sizing.kinds.training.search import SizedRun
from gpuplan.sizing.memory.margin import gpu_memory_metric
from gpuplan.sizing.model.checkpoints import published_bytes
from gpuplan.units import format_bytes, format_seconds

LONG_SECONDS = 14 * 86400.0

_CHECKPOINT = sheet("""
    checkpoint_bytes: B = parameters * (bf16_bytes + optimizer_bytes_each)
        # bf16 weights and optimizer states
""")
_ADAPTER = sheet("""
    checkpoint_bytes: B = trained_parameters * (bf16_bytes + optimizer_bytes_each)
        # adapters and their optimizer states
""")
_KEPT = sheet("""
    checkpoints_kept_bytes: B = 3 * checkpoint_bytes
        # two that are kept and one that is being written
""")
_WRITE = sheet("""
    checkpoint_seconds: s = checkpoint_bytes / storage_bytes_per_s  # at the storage's bandwidth
""")
_RUN_COST = sheet("""
    usd_per_run: USD = usd_per_hour * time_to_finish / hour  # the whole run
""")

# An interruption falls anywhere between two checkpoints.
_INTERRUPTED = sheet("""
    usd_per_interruption: USD = usd_per_hour * checkpoint_interval / (2 * hour)
        # half of the work between two checkpoints is done again, on average
""")


def train(
    settled: Settled[TrainingDemand],
    site: Site,
    candidate: Candidate,
    alternatives: tuple[Alternative, ...],
    free: Unforced,
) -> Sized:
    layout = candidate.detail
    assert isinstance(layout, SizedRun)
    ledger, demand = settled.ledger, settled.demand
    scope = _record(settled, layout, free)
    cost = record_cost(settled, candidate, constant(1, "1", "one run"))
    if cost.usd_per_hour is not None:
        scope = scope | {"usd_per_hour": cost.usd_per_hour}
        _RUN_COST.record(ledger, scope)
        if candidate.device.offer.spot:
            interval = demand.checkpoint_interval
            _INTERRUPTED.record(ledger, scope | {"checkpoint_interval": interval})
    inside = min(candidate.gpus, candidate.device.offer.gpus_per_node)
    sized = finish(
        settled,
        site,
        candidate,
        alternatives,
        cost,
        parallelism=Parallelism(data_parallel_size=candidate.gpus),
        nodes_per_replica=candidate.nodes,
        gpus_per_node=inside,
        memory=_budget(scope),
        metrics=_metrics(demand, layout, scope),
        bound_by=bound_by(layout),
        resources=host_resources(settled, candidate.device, inside),
        volumes=_volumes(settled, site, scope, candidate),
        training=_settings(demand, layout, scope),
        concurrency=1,
    )
    return _noted(sized, demand, layout)


def _record(settled: Settled[TrainingDemand], layout: SizedRun, free: Unforced) -> Scope:
    ledger, demand, run = settled.ledger, settled.demand, layout.run
    scope = run.prepared.shape.record(ledger, run.scope)
    sheet, inputs = length(demand)
    scope = sheet.record(ledger, scope | inputs)
    scope |= {
        "gpus": settled.choice(
            "gpus",
            Quantity(float(run.division.gpus), "1", "choice: the cheapest run in time"),
            demand.overrides.gpu_count,
            free.gpu_count,
        ),
        "micro_batch": settled.choice(
            "micro_batch",
            Quantity(float(layout.micro_batch), "1", "choice: the largest that fits"),
            demand.overrides.micro_batch,
            free.micro_batch,
        ),
    }
    if demand.dataset.tokens is not None:
        SEEN.record(ledger, scope | {"dataset_tokens": demand.dataset.tokens})
    if demand.lora_rank is not None:
        scope["lora_rank"] = demand.lora_rank
    return run.record(ledger, scope)


def _budget(scope: Scope) -> MemoryBudget:
    return MemoryBudget(
        weights_bytes=int(scope["weights_bytes"]),
        gradients_bytes=int(scope["gradients_bytes"]),
        optimizer_bytes=int(scope["optimizer_bytes"]),
        activations_bytes=int(scope["activations_bytes"]),
        overhead_bytes=int(scope["overhead_bytes"]),
        capacity_bytes=int(scope["memory_bytes"]),
        usable_bytes=int(scope["usable_bytes"]),
    )


def _metrics(demand: TrainingDemand, layout: SizedRun, scope: Scope) -> tuple[Metric, ...]:
    basis, factors = layout.basis, layout.factors
    tokens, limit = demand.tokens_per_second, demand.limit.first
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
        "interconnect": v["exchange_seconds"],
        "host": each * (v["micro_seconds"] - v["device_seconds"]),
    }
    return max(parts, key=lambda name: parts[name])


def _volumes(
    settled: Settled[TrainingDemand], site: Site, scope: Scope, candidate: Candidate
) -> tuple[Volume, ...]:
    ledger, demand, shared = settled.ledger, settled.demand, candidate.nodes > 1
    overrides = demand.overrides
    model = published_bytes(ledger, demand.model, "model_bytes")
    downloads = datasets.downloads(settled, model)
    models = storage(settled, "model_storage_bytes", downloads, overrides.model_storage, downloads)
    record_start(settled, site, candidate.device, stored=model, weights=scope["weights_bytes"])
    written = (_ADAPTER if demand.method in ("lora", "qlora") else _CHECKPOINT) + _KEPT
    if (rate := site.storage_bytes_per_s) is not None:
        written += _WRITE
        scope = scope | {"storage_bytes_per_s": rate}
    scope = written.record(ledger, scope)
    checkpoint, kept = scope["checkpoint_bytes"], scope["checkpoints_kept_bytes"]
    size = storage(
        settled, "checkpoint_storage_bytes", kept, overrides.checkpoint_storage, checkpoint
    )
    why = f"two checkpoints that are kept and one that is written take {format_bytes(kept.value)}"
    wise = size.value >= kept.value or size.value < checkpoint.value
    settled.hold(overrides.checkpoint_storage, why, works=True, wise=wise)
    record_run(settled, site, scope, nodes=candidate.nodes, checkpoint=checkpoint)
    found = [
        volume(site, "models", models, shared=shared),
        volume(site, "checkpoints", size, shared=shared),
    ]
    if demand.dataset.size is not None:
        data = storage(settled, "dataset_storage_bytes", datasets.kept(settled))
        found.append(volume(site, "dataset", data, shared=shared))
    return tuple(found)


def _settings(demand: TrainingDemand, layout: SizedRun, scope: Scope) -> Training:
    return Training(
        method=demand.method,
        sequence_length=int(scope["sequence_length"]),
        global_batch_sequences=int(scope["global_batch"]),
        micro_batch_sequences=layout.micro_batch,
        gradient_accumulation_steps=int(scope["gradient_accumulation_steps"]),
        steps=int(scope["steps"]),
        optimizer=demand.optimizer,
        recompute=layout.run.division.recompute,
        sharding=layout.run.division.sharding,
        lora_rank=None if demand.lora_rank is None else int(demand.lora_rank),
        checkpoint_interval_seconds=demand.checkpoint_interval.value,
        dataset=demand.dataset.name,
    )


def _noted(sized: Sized, demand: TrainingDemand, layout: SizedRun) -> Sized:
    """With what a person should know of a run."""
    found: list[Diagnostic] = list(sized.diagnostics)
    seconds = layout.values["time_to_finish"]
    if demand.limit.first is None and seconds > LONG_SECONDS:
        found.append(
            not_acted_on(
                f"'{demand.name}' takes {format_seconds(seconds)}, the cheapest way to run it",
                demand.origin.child("training"),
                "write `slo: {finish_within: 7 d}` to use more GPUs",
            )
        )
    if demand.dataset.name is not None and demand.dataset.size is None:
        found.append(
            missing_fact(
                "the size of the dataset",
                f"a volume for '{demand.dataset.name}'",
                demand.origin.child("dataset"),
                "write `size: 200 GB`; without it the engine keeps the data in its scratch space",
            )
        )
    return Sized(workload=sized.workload, evidence=sized.evidence, diagnostics=tuple(found))
