"""The chosen candidate as the plan's workload: what all kinds of workload have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Literal, Required, TypedDict, Unpack

from gpuplan.plan.isolation import own_node
from gpuplan.plan.model import (
    Alternative,
    Disaggregation,
    Engine,
    HostResources,
    ImageGeneration,
    Interruption,
    Layout,
    MemoryBudget,
    Metric,
    Notebook,
    Parallelism,
    Serving,
    Training,
    Volume,
    Workload,
    record,
)
from gpuplan.plan.times import limit_name
from gpuplan.sizing.ask.demand import (
    LIMITED,
    Demand,
    ModelDemand,
    accepted,
    idle_time,
)
from gpuplan.sizing.ask.given import Given
from gpuplan.sizing.ask.messages import miss_that_is_none
from gpuplan.sizing.candidates.balance.record import record_balance
from gpuplan.sizing.candidates.builds import engine_on
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.notes import notes
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.evidence.formula import Formula, Ledger, Quantity, constant
from gpuplan.sizing.hardware.devices import quantity
from gpuplan.sizing.hardware.offers import Site
from gpuplan.units import format_bytes

_GPUS = Formula("replicas * gpus_per_replica", "1", "whole GPUs")
_SHARED_GPUS = Formula("ceil(replicas / per_gpu)", "1", "GPUs that hold the partitions")
_PAID = Formula(
    "pool_nodes * gpus_per_node * asked_gpus / pool_gpus",
    "1",
    "nodes are paid whole: its part of all GPUs of its pool's nodes",
)
_SPARES = Formula(
    "paid_gpus + spare_nodes * gpus_per_node", "1", "with nodes that stand by for the run"
)
_COST = Formula("paid_gpus * usd_per_gpu_hour", "USD/h", "list price of the GPUs that are paid for")
_WATTS = Formula("taken_gpus * gpu_watts", "W", "board power of the GPUs; hosts come on top")
_IDLE = Formula("usd_per_hour * idle_seconds / hour", "USD", "what the idle hours of a day cost")
_STORAGE = Formula("ceil(1.1 * stored_bytes / gibibyte) * gibibyte", "B", "10 % room, whole GiB")
PORT = 8000  # that servers listen on
LEAST = 1e-6  # of a probability, which is told to six digits


@record
class Cost:
    """What a workload takes; `usd_per_hour` is None where no price is known."""

    gpu_count: int
    usd_per_hour: Quantity | None
    watts: float


def record_cost(
    settled: Settled[Demand],
    candidate: Candidate,
    replicas: Quantity,
    chosen: Quantity | None = None,
) -> Cost:
    """GPUs, price and power as evidence. `chosen` is their number where the search chose it."""
    ledger, device = settled.ledger, candidate.device
    if chosen is not None:
        count = chosen
    elif device.partition is None:
        per = constant(candidate.gpus, "1", "layout of a replica")
        count = ledger.derive("gpu_count", _GPUS, replicas=replicas, gpus_per_replica=per)
    else:
        per = constant(device.per_gpu, "1", f"{device.partition} on {device.gpu.identifier}")
        count = ledger.derive("gpu_count", _SHARED_GPUS, replicas=replicas, per_gpu=per)
    taken = ledger.given(
        "taken_gpus", Quantity(float(candidate.taken_gpus), "1", _taken_reason(candidate))
    )
    paid = _record_paid(ledger, candidate) if candidate.bought else taken
    if candidate.spares:
        paid = _record_spares(ledger, candidate, paid)
    cost: Quantity | None = None
    if device.offer.usd_per_gpu_hour is not None:
        price = ledger.given("usd_per_gpu_hour", device.offer.usd_per_gpu_hour)
        cost = ledger.derive("usd_per_hour", _COST, paid_gpus=paid, usd_per_gpu_hour=price)
        if (idle := idle_time(settled.demand)) is not None:
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


def _record_spares(ledger: Ledger, candidate: Candidate, paid: Quantity) -> Quantity:
    """What is paid with nodes that stand by, all of whose GPUs the run pays."""
    per_node = float(candidate.device.offer.gpus_per_node)
    return ledger.derive(
        "paid_gpus_with_spares",
        _SPARES,
        paid_gpus=paid,
        spare_nodes=Quantity(float(candidate.spares), "1", "manifest: training.spare_nodes"),
        gpus_per_node=Quantity(per_node, "1", "offer: GPUs of a node"),
    )


def _taken_reason(candidate: Candidate) -> str:
    if own_node(candidate.isolation):
        return "choice: whole nodes, as isolation 'node' asks"
    if candidate.device.partition is not None:
        return "choice: the share of the GPUs that the partitions take"
    return "choice: the GPUs of all replicas"


def storage(
    settled: Settled[Demand],
    name: str,
    size: Quantity,
    chosen: Given | None = None,
    need: Quantity | None = None,
) -> Quantity:
    """The size of a volume that holds `size`, or the override, which must hold `need` at least."""
    made = settled.ledger.derive(name, _STORAGE, stored_bytes=size)
    volume = settled.settle(name, made, chosen)
    if need is not None:
        why = f"{format_bytes(need.value)} must lie there"
        settled.hold(chosen, why, works=volume.value >= need.value)
    return volume


def _deadline(demand: Demand) -> float | None:
    if not isinstance(demand, LIMITED):
        return None
    return None if demand.limit.deadline is None else demand.limit.deadline.value


def _marked(settled: Settled[Demand], metrics: Iterable[Metric]) -> Iterator[Metric]:
    """Those that are missed and accepted; a note where what may be missed is met."""
    demand, wanted = settled.demand, 0.0
    limits = accepted(demand)
    if isinstance(demand, ModelDemand):
        wanted = demand.confidence.value - LEAST
    for metric in metrics:
        chance = metric.probability
        limit = limits.get(metric.name)
        if limit is None or chance is None or metric.limit != limit.value:
            yield metric
        elif chance < wanted:
            yield replace(metric, accepted_miss=True)
        else:
            at = demand.origin.child("overrides", "accepted_misses")
            settled.problems.append(miss_that_is_none(limit_name(metric.name), at))
            yield metric


class Own(TypedDict, total=False):
    """The fields of `plan.Workload` that its kind of workload knows."""

    engine: Engine
    parallelism: Parallelism
    nodes_per_replica: int
    one_domain: Literal[True] | None
    gpus_per_node: int
    memory: Required[MemoryBudget]
    metrics: tuple[Metric, ...]
    bound_by: Required[str]
    resources: Required[HostResources]
    volumes: tuple[Volume, ...]
    serving: Serving | None
    disaggregation: Disaggregation | None
    training: Training | None
    image_generation: ImageGeneration | None
    notebook: Notebook | None
    concurrency: Required[int]
    usd_of_storage: Decimal | None
    interruption: Interruption | None
    layouts: tuple[Layout, ...]


def finish(
    settled: Settled[Demand],
    site: Site,
    candidate: Candidate,
    alternatives: tuple[Alternative, ...],
    cost: Cost,
    **fields: Unpack[Own],
) -> Sized:
    demand, device = settled.demand, candidate.device
    free = {"gpu": settled.free.gpu, "partition": settled.free.partition, "kv_cache_dtype": "auto"}
    for name, derived in free.items():
        if (value := getattr(demand.overrides, name)) is not None:
            settled.text(name, value, derived)
    for limit in demand.overrides.accepted_misses:
        settled.text("accepted_misses", limit, "none")
    if accepted(demand):
        fields["metrics"] = tuple(_marked(settled, fields["metrics"]))
    own: Own = {
        "engine": engine_on(demand, device.gpu),
        "parallelism": Parallelism(),
        "gpus_per_node": candidate.gpus,
        **fields,
    }
    workload = Workload(
        name=demand.name,
        task=demand.task,
        tenant=demand.tenant,
        description=demand.description,
        model=demand.model_ref,
        precision=demand.precision if isinstance(demand, ModelDemand) else None,
        command=demand.command,
        environment=demand.environment,
        secrets=demand.secrets,
        gpu=device.gpu.identifier,
        partition=device.partition,
        node_pool=device.pool,
        replicas=candidate.replicas,
        isolation=demand.isolation,
        priority=demand.priority,
        preemptible=demand.preemptible,
        after=demand.after,
        schedule=demand.schedule,
        deadline_seconds=_deadline(demand),
        gpu_count=cost.gpu_count,
        usd_per_hour=candidate.usd_per_hour,
        watts=cost.watts,
        alternatives=alternatives,
        overrides=tuple(settled.overrides),
        balance=record_balance(
            settled,
            site,
            candidate,
            metrics=fields.get("metrics", ()),
            bound_by=fields["bound_by"],
            training=fields.get("training"),
        ),
        renamed_from=demand.renamed_from,
        origin=demand.origin,
        **own,
    )
    said = notes(demand, site, candidate, fields.get("interruption"))
    evidence = settled.ledger.evidence()
    return Sized(workload=workload, evidence=evidence, diagnostics=(*said, *settled.problems))
