"""The chosen run of a network that reads images, with the evidence of every number."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.plan.model import (
    Alternative,
    HostResources,
    Metric,
    Parallelism,
    Training,
    Volume,
)
from gpuplan.sizing.ask.demand import VisionRunDemand
from gpuplan.sizing.candidates.assemble import finish, record_cost, storage
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.needs import record_start
from gpuplan.sizing.candidates.replicas import memory_budget
from gpuplan.sizing.candidates.resources import WANTED_CORES, host_resources, volume
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.candidates.sheets import CHECKPOINTS_KEPT, RUN_COST
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.intervals import inverse, metric
from gpuplan.sizing.evidence.sheet import Scope, floats, sheet
from gpuplan.sizing.hardware.domains import in_domain
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.vision.record import parts
from gpuplan.sizing.kinds.vision.runs import SizedLooking, cores_known, files, length, run_of
from gpuplan.sizing.memory.margin import gpu_memory_metric
from gpuplan.sizing.model.checkpoints import whole_bytes
from gpuplan.sizing.physics.vision.classifier import CORES
from gpuplan.sizing.physics.vision.training import INTERVAL

_CHECKPOINT = sheet("""
    checkpoint_bytes: B = weights_bytes + optimizer_bytes  # one checkpoint
""")
_DATA = sheet("""
    dataset_file_bytes: B = dataset_images * file_bytes  # all images
""")


def recorded(
    settled: Settled[VisionRunDemand],
    site: Site,
    candidate: Candidate[SizedLooking],
    alternatives: tuple[Alternative, ...],
) -> Sized:
    layout = candidate.evaluated
    ledger, demand = settled.ledger, settled.demand
    scope, resources = _record(settled, site, candidate)
    cost = record_cost(settled, candidate, constant(1, "1", "one run"), scope["gpus"])
    if cost.usd_per_hour is not None:
        RUN_COST.record(ledger, scope | {"usd_per_hour": cost.usd_per_hour})
    inside = min(candidate.gpus, candidate.device.offer.gpus_per_node)
    return finish(
        settled,
        site,
        candidate,
        alternatives,
        cost,
        parallelism=Parallelism(data_parallel_size=layout.gpus),
        nodes_per_replica=candidate.nodes,
        one_domain=in_domain(candidate.device, candidate.nodes) or None,
        gpus_per_node=inside,
        memory=memory_budget(scope),
        metrics=tuple(_metrics(demand, layout, scope)),
        bound_by=bound_by(scope),
        resources=resources,
        volumes=_volumes(settled, site, candidate, scope),
        training=_settings(demand, layout, scope),
        concurrency=1,
    )


def _record(
    settled: Settled[VisionRunDemand], site: Site, candidate: Candidate[SizedLooking]
) -> tuple[Scope, HostResources]:
    ledger, demand, device = settled.ledger, settled.demand, candidate.device
    layout = candidate.evaluated
    run = run_of(demand, site, device, layout.gpus)
    assert run is not None
    for made, inputs in (length(demand), files(demand)):
        made.record(ledger, dict(inputs))
    if demand.dataset.size is None:
        ledger.given("file_bytes", files(demand)[1]["file_bytes"])
    gpus = settled.choice(
        "gpu_count",
        Quantity(float(layout.gpus), "1", "choice: the cheapest run in time"),
        demand.overrides.gpu_count,
        settled.free.gpu_count,
    )
    micro = settled.choice(
        "micro_batch",
        Quantity(float(layout.micro_batch), "1", "choice: the largest that fits"),
        demand.overrides.micro_batch,
        settled.free.micro_batch,
    )
    scope = run.record_compute(ledger, micro) | {"gpus": gpus}
    wanted = WANTED_CORES
    if cores_known(device):
        wanted = CORES.record(ledger, scope | {"usual_cores": WANTED_CORES})["wanted_cores"]
    inside = min(candidate.gpus, device.offer.gpus_per_node)
    resources = host_resources(settled, device, inside, wanted)
    share = Quantity(resources.cpu_cores / inside, "1", "choice: the cores of each GPU's loader")
    return run.record(ledger, scope, share), resources


def _metrics(demand: VisionRunDemand, layout: SizedLooking, scope: Scope) -> Iterator[Metric]:
    factors, basis = layout.run.interval
    limit = demand.limit.shown
    for name in ("step_seconds", "time_to_finish"):
        wanted = limit.value if limit is not None and name == "time_to_finish" else None
        value = scope[name].value
        yield metric(name, "s", value, factors=factors, basis=basis, limit=wanted)
    rate, around = scope["images_per_second"].value, inverse(factors)
    yield metric("images_per_second", "1/s", rate, factors=around, basis=basis)
    yield from parts(scope, around, basis)
    yield gpu_memory_metric(scope, INTERVAL, "extrapolated")


def bound_by(scope: Scope) -> str:
    """What more of would help most."""
    values = floats(scope)
    slowest = values["step_seconds"]
    if values["stored_seconds"] >= slowest:
        return "storage"
    if values["decoded_seconds"] >= slowest:
        return "decoding on CPU cores"
    parts = {
        "compute": values["matmul_seconds"] + values["attention_seconds"],
        "memory bandwidth": values["traffic_seconds"]
        + values["score_bytes"] * values["train_score_traffic"] / values["bandwidth"],
        "interconnect": values["exchange_seconds"]
        * values["gpus"]
        / values["global_batch"],  # of an image, as the others are
    }
    return max(parts, key=lambda name: parts[name])


def _volumes(
    settled: Settled[VisionRunDemand], site: Site, candidate: Candidate[SizedLooking], scope: Scope
) -> tuple[Volume, ...]:
    ledger, demand, shared = settled.ledger, settled.demand, candidate.nodes > 1
    overrides = demand.overrides
    stored = whole_bytes(ledger, demand.model, "model_bytes")
    models = storage(settled, "model_storage_bytes", stored, overrides.model_storage, stored)
    record_start(settled, site, candidate.device, stored=stored, weights=scope["weights_bytes"])
    scope = (_CHECKPOINT + CHECKPOINTS_KEPT + _DATA).record(
        ledger, scope | {"dataset_images": demand.dataset_images}
    )
    one, kept = scope["checkpoint_bytes"], scope["checkpoints_kept_bytes"]
    saved = storage(settled, "checkpoint_storage_bytes", kept, overrides.checkpoint_storage, one)
    data = scope["dataset_file_bytes"]
    data = storage(settled, "dataset_storage_bytes", data, overrides.dataset_storage, data)
    return (
        volume(site, "models", models, shared=shared),
        volume(site, "checkpoints", saved, shared=shared),
        volume(site, "dataset", data, shared=shared),
    )


def _settings(demand: VisionRunDemand, layout: SizedLooking, scope: Scope) -> Training:
    return Training(
        method="full" if demand.task == "finetuning" else "pretraining",
        sequence_length=demand.model.tokens,
        global_batch=int(demand.global_batch),
        micro_batch=layout.micro_batch,
        gradient_accumulation_steps=int(scope["gradient_accumulation_steps"]),
        steps=int(scope["steps"]),
        optimizer="adamw",
        recompute="none",
        sharding="none",
        lora_rank=None,
        checkpoint_interval_seconds=demand.checkpoint_interval.value,
        dataset=demand.dataset.name,
    )
