"""The chosen candidate as the plan's workload: what all kinds of workload have in common."""

from __future__ import annotations

from typing import Any

from gpuplan.diagnostics import Diagnostic
from gpuplan.engines import drafts
from gpuplan.plan.model import Alternative, Evidence, Parallelism, Workload, record
from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.ask.messages import missing_fact, not_acted_on
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.evidence.formula import Formula, Ledger, Quantity, constant
from gpuplan.sizing.hardware.devices import quantity
from gpuplan.sizing.hardware.offers import Site
from gpuplan.targets import TARGETS
from gpuplan.units import GIB, format_bytes, format_seconds, format_usd

_GPUS = Formula("replicas * gpus_per_replica", "1", "whole GPUs")
_SHARED_GPUS = Formula("ceil(replicas / per_gpu)", "1", "GPUs that hold the partitions")
_PAID = Formula(
    "pool_nodes * gpus_per_node * asked_gpus / pool_gpus",
    "1",
    "nodes are paid whole: its part of all GPUs of its pool's nodes",
)
_COST = Formula("paid_gpus * usd_per_gpu_hour", "USD/h", "list price of the GPUs that are paid for")
_WATTS = Formula("taken_gpus * gpu_watts", "W", "board power of the GPUs; hosts come on top")
_IDLE = Formula("usd_per_hour * idle_seconds / 3600", "USD", "what the idle hours of a day cost")
PORT = 8000  # that servers listen on
RATE = Formula("peak * growth", "1/s", "the peak at the end of the horizon")
MEAN_LOAD = Formula(
    "mean_rate / requests_per_second", "1", "part of the capacity that the busy hours use"
)
_STORAGE = Formula("ceil(1.1 * bytes / gibibyte) * gibibyte", "B", "10 % room, whole GiB")
GIBIBYTE = constant(GIB, "B", "1 GiB")


@record
class Cost:
    """What a workload takes; `usd_per_hour` is None where no price is known."""

    gpu_count: int
    usd_per_hour: Quantity | None
    watts: float


def record_cost(settled: Settled, candidate: Candidate, replicas: Quantity) -> Cost:
    """GPUs, price and power as evidence."""
    ledger, device = settled.ledger, candidate.device
    if device.partition is None:
        per = constant(candidate.gpus, "1", "layout of a replica")
        count = ledger.derive("gpu_count", _GPUS, replicas=replicas, gpus_per_replica=per)
    else:
        per = constant(device.per_gpu, "1", f"{device.partition} on {device.gpu.identifier}")
        count = ledger.derive("gpu_count", _SHARED_GPUS, replicas=replicas, per_gpu=per)
    taken = ledger.given(
        "taken_gpus", Quantity(float(candidate.taken_gpus), "1", _taken_reason(candidate))
    )
    paid = _record_paid(ledger, candidate) if candidate.bought else taken
    cost: Quantity | None = None
    if device.offer.usd_per_gpu_hour is not None:
        price = ledger.given("usd_per_gpu_hour", device.offer.usd_per_gpu_hour)
        cost = ledger.derive("usd_per_hour", _COST, paid_gpus=paid, usd_per_gpu_hour=price)
        if (idle := settled.given.get("load.idle")) is not None:
            ledger.derive("usd_per_day_idle", _IDLE, usd_per_hour=cost, idle_seconds=idle)
    watts = ledger.derive("watts", _WATTS, taken_gpus=taken, gpu_watts=quantity(device.gpu.watts))
    return Cost(gpu_count=int(count), usd_per_hour=cost, watts=watts.value)


def _record_paid(ledger: Ledger, candidate: Candidate) -> Quantity:
    """Of nodes that are bought."""
    nodes, gpus = candidate.pool or (candidate.nodes, candidate.asked_gpus)
    offer = candidate.device.offer
    inputs = {
        "pool_nodes": Quantity(float(nodes), "1", "choice: nodes that hold the pool's workloads"),
        "gpus_per_node": Quantity(
            float(offer.gpus_per_node), "1", f"platform: {offer.node_type or 'node'}"
        ),
        "asked_gpus": Quantity(
            float(candidate.asked_gpus), "1", "choice: the GPUs that the replicas take"
        ),
        "pool_gpus": Quantity(float(gpus), "1", "choice: all workloads of the pool together"),
    }
    given = {name: ledger.given(name, quantity) for name, quantity in inputs.items()}
    return ledger.derive("paid_gpus", _PAID, **given)


def _taken_reason(candidate: Candidate) -> str:
    if candidate.isolation == "node":
        return "choice: whole nodes, as isolation 'node' asks"
    if candidate.device.partition is not None:
        return "choice: the share of the GPUs that the partitions take"
    return "choice: the GPUs of all replicas"


def storage(
    settled: Settled, name: str, size: Quantity, field: str, need: Quantity | None = None
) -> Quantity:
    """The size of a volume that holds `size`, or the override, which must hold `need` at least."""
    made = settled.ledger.derive(name, _STORAGE, bytes=size, gibibyte=GIBIBYTE)
    chosen = settled.settle(name, made, field)
    if need is not None:
        why = f"{format_bytes(need.value)} must lie there"
        settled.hold(field, why, works=chosen.value >= need.value)
    return chosen


def notes(demand: Demand, site: Site, candidate: Candidate) -> tuple[Diagnostic, ...]:
    """What a person should know beside the numbers."""
    found: list[Diagnostic] = []
    idle = demand.value("load.idle")
    if idle:
        cost = candidate.usd_per_hour
        money = "" if cost is None else f", {format_usd(float(cost) * idle / 3600)} a day"
        found.append(
            not_acted_on(
                f"'{demand.name}' is idle {format_seconds(idle)} a day{money}: nothing scales it",
                demand.origin.child("load", "idle"),
                "lower the replicas in those hours, or give them to preemptible work",
            )
        )
    drafting = demand.command or (
        demand.speculative
        and demand.engine.name in drafts.ENGINES
        and TARGETS[site.target].starts_engines
    )
    if demand.value("speculative.accepted_tokens") is not None and not drafting:
        found.append(
            not_acted_on(
                f"'{demand.name}' is sized with speculative decoding, which nothing turns on",
                demand.origin.child("speculative"),
                "name its 'method', of engine vllm or sglang, or tell the engine in `command`",
            )
        )
    if demand.value("dataset.rate") is not None and site.storage_bytes_per_s is None:
        found.append(
            missing_fact(
                "the bandwidth of the storage",
                f"the dataset of '{demand.name}'",
                demand.origin.child("dataset", "rate"),
                "write `platform.storage.bandwidth`",
            )
        )
    return tuple(found)


def finish(
    settled: Settled,
    site: Site,
    candidate: Candidate,
    alternatives: tuple[Alternative, ...],
    cost: Cost,
    **fields: Any,
) -> Sized:
    """`fields` are those of `plan.Workload` that the kind of workload knows."""
    demand, device = settled.demand, candidate.device
    if demand.overrides.gpu is not None:
        settled.text("gpu", "overrides.gpu", demand.overrides.gpu)
    if demand.overrides.partition is not None:
        settled.text("partition", "overrides.partition", demand.overrides.partition)
    if demand.overrides.kv_cache_dtype is not None:
        settled.text("kv_cache_dtype", "overrides.kv_cache_dtype", demand.overrides.kv_cache_dtype)
    values: dict[str, Any] = {
        "name": demand.name,
        "task": demand.task,
        "tenant": demand.tenant,
        "description": demand.description,
        "model": demand.model_ref,
        "precision": None if demand.model is None else demand.precision,
        "engine": demand.engine,
        "command": demand.command,
        "environment": demand.environment,
        "secrets": demand.secrets,
        "gpu": device.gpu.identifier,
        "partition": device.partition,
        "node_pool": device.pool,
        "parallelism": Parallelism(),
        "replicas": candidate.replicas,
        "gpus_per_node": candidate.gpus,
        "isolation": demand.isolation,
        "priority": demand.priority,
        "preemptible": demand.preemptible,
        "deadline_seconds": demand.value("deadline"),
        "gpu_count": cost.gpu_count,
        "usd_per_hour": candidate.usd_per_hour,
        "watts": cost.watts,
        "alternatives": alternatives,
        "overrides": tuple(settled.overrides),
        "renamed_from": demand.renamed_from,
        "origin": demand.origin,
    }
    evidence: tuple[Evidence, ...] = settled.ledger.evidence()
    return Sized(
        workload=Workload(**(values | fields)),
        evidence=evidence,
        diagnostics=(*notes(demand, site, candidate), *settled.problems),
    )
