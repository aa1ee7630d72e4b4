"""Language models: a service that keeps its latency at the peak, or a batch that must finish."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from gpuplan.plan.model import Shortfall
from gpuplan.sizing.ask.demand import BatchDemand, LanguageDemand, ServingDemand
from gpuplan.sizing.ask.parts import Objectives
from gpuplan.sizing.candidates.choose import Candidate, Merit, nodes_gate
from gpuplan.sizing.candidates.devices import devices
from gpuplan.sizing.candidates.gates import count_gate, refused, stopped, uneven
from gpuplan.sizing.candidates.replicas import and_filled
from gpuplan.sizing.candidates.sheets import room_in
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.evidence.halving import halved
from gpuplan.sizing.evidence.sheet import Sheet, floats
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.hardware.efficiency import unmeasured, unsupported
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.kinds.serving import experts, nodes
from gpuplan.sizing.kinds.serving.limit import PART, LimitedReplica, first_gate, kept_apart, largest
from gpuplan.sizing.kinds.serving.load import FINISH, OFFERED, REPLICAS, arriving
from gpuplan.sizing.memory.engines import step_tokens
from gpuplan.sizing.physics.serving.replica import Replica
from gpuplan.sizing.physics.serving.scopes import formats
from gpuplan.sizing.physics.serving.service import (
    NO_DRAFT,
    Declared,
    Division,
    Service,
    Tokens,
)

# Gates in the order in which a candidate meets them.
PRECISION, LAYOUT, MEMORY, CACHE, OBJECTIVE, REPLICA_COUNT, NODES = range(7)
NEARLY = 0.01  # of its limit; as finely the number of sequences is found for a merit
_PASSED = {"gpu_memory": MEMORY, "kv_cache": CACHE}


def candidates(
    demand: LanguageDemand, site: Site
) -> list[tuple[GpuOffer, list[Candidate[LimitedReplica]]]]:
    """Every device and tensor-parallel size of every offer, and replicas over nodes where memory
    limits those inside one."""
    return [
        (offer, [c for d in devices(demand, offer, site) for c in _layouts(demand, d, site)])
        for offer in site.gpus
    ]


def service(
    demand: LanguageDemand,
    device: Device,
    division: Division,
    fabric_rate: Quantity | None = None,
) -> Service:
    """A replica of the demand in so many parts. `fabric_rate`: see `Service`."""
    lengths, overrides, drafts = demand.lengths, demand.overrides, demand.drafts
    serving = demand if isinstance(demand, ServingDemand) else None
    declared = Declared(
        accepted_tokens=drafts.accepted_tokens if drafts else None,
        draft_tokens=drafts.draft_tokens if drafts else None,
        draft_cost=drafts.draft_cost if drafts else None,
        draft_bytes=(drafts and drafts.draft_memory) or NO_DRAFT,
        drafted_by=demand.speculative.method if demand.speculative else None,
        prefix_hit_share=demand.prefix_cache,
        burst=serving.burst if serving else None,
    )
    objectives = serving.objectives if serving else Objectives()
    return Service(
        model=demand.model,
        device=device,
        division=division,
        fabric_rate=fabric_rate,
        engine=demand.engine.name,
        release=demand.engine.version,
        precision=demand.precision,
        formats=formats(demand.model, demand.precision, overrides.kv_cache_dtype or "auto"),
        tokens=Tokens(
            input_mean=lengths.input_mean,
            input_p95=lengths.input_p95,
            output_mean=lengths.output_mean,
            output_p95=lengths.output_p95,
            longest=demand.max_model_len,
        ),
        gpu_memory_utilization=demand.gpu_memory_utilization,
        confidence=demand.confidence.value,
        max_num_seqs=overrides.max_num_seqs.value if overrides.max_num_seqs else None,
        max_num_batched_tokens=None
        if overrides.max_num_batched_tokens is None
        else overrides.max_num_batched_tokens.value,
        step_tokens=step_tokens(
            demand.engine.name, device.gpu.identifier, device.memory_bytes.value
        ),
        limits=tuple((name, limit.value) for name, limit in objectives.limits.items()),
        shown=tuple(serving.accepted.limits) if serving else (),
        declared=declared,
        random=serving is not None,
        anchors=demand.anchors,
    )


def sized_rate(demand: LanguageDemand, replica: Replica, seconds: float) -> float:
    """Requests per second that must be served where a request takes `seconds`, as slow as the
    confidence allows; users of a closed loop wait for them."""
    return _evaluated(demand, replica, Sheet(()), seconds, replica.slowness)["sized_rate"]


def expected(
    demand: LanguageDemand, replica: Replica, replicas: float, limit: float, *, nearly: float = 1e-6
) -> float:
    """The concurrency that solves Little's law for one rank of a replica, to `nearly` of the limit
    and to four digits."""
    ranks = replica.service.division.ranks

    def short(sequences: float) -> bool:
        seconds = replica.times(sequences)["request_seconds"]
        values = _evaluated(demand, replica, OFFERED, seconds, 1.0, replicas=replicas)
        return values["offered_sequences"] > sequences * ranks

    least = min(PART, limit)
    if not short(least):
        return least
    _, enough = halved(least, limit, short, nearly * limit)
    return float(f"{enough:.4g}")


def _evaluated(
    demand: LanguageDemand,
    replica: Replica,
    sheet: Sheet,
    seconds: float,
    slowness: float,
    **numbers: float,
) -> dict[str, float]:
    """`sheet` after that of the requests that arrive, where one takes `seconds`."""
    load, inputs = arriving(demand)
    scope = floats(inputs) | numbers
    scope |= {"request_seconds": seconds, "slowness": slowness}
    scope["output_mean"] = replica.service.tokens.output_mean.value
    return sheet(load(scope))


def replicas(demand: LanguageDemand, site: Site) -> Iterator[Replica]:
    """Every device and tensor-parallel size inside a node that can be built, whether or not it
    fits."""
    forced = demand.overrides.gpu
    offers = [o for o in site.gpus if forced in (None, o.gpu.identifier)]
    for device in (d for offer in offers for d in devices(demand, offer, site)):
        if not precision_gate(demand, device):
            for gpus in sizes(demand, device):
                if not layout_gate(demand, device, division := inside(demand, gpus)):
                    yield Replica(service(demand, device, division))


def precision_gate(demand: LanguageDemand, device: Device) -> tuple[Shortfall, ...]:
    """Of a GPU that the weights' or the cache's precision is not for, or the engine's kernels, or
    that nobody measured."""
    gate = unsupported(device.gpu, demand.precision, demand.engine.name)
    gate = gate or experts.missing(demand, device.gpu) or unmeasured(device.gpu)
    if demand.overrides.kv_cache_dtype == "fp8":
        gate += unsupported(device.gpu, "fp8")
    return gate


def inside(demand: LanguageDemand, gpus: int) -> Division:
    """A replica inside a node."""
    return Division(tensor_parallel_size=gpus, pipeline_stages=demand.overrides.stages)


def _layouts(
    demand: LanguageDemand, device: Device, site: Site
) -> Iterator[Candidate[LimitedReplica]]:
    if gate := precision_gate(demand, device):
        yield refused(demand, device, 1, gate, passed=PRECISION)
        return
    tried = [
        c
        for gpus in sizes(demand, device)
        for c in _candidates(demand, device, inside(demand, gpus))
    ]
    yield from tried
    if nodes.short_of_memory(tried):
        yield from _over_nodes(demand, device, site)
    elif nodes.too_slow(tried):
        near = replace(site, fabric=None)  # no network between nodes makes a token faster
        yield from _over_nodes(demand, device, near)


def _over_nodes(
    demand: LanguageDemand, device: Device, site: Site
) -> Iterator[Candidate[LimitedReplica]]:
    """Replicas on more and more nodes, until more of them are no cheaper."""
    cheapest, networked = math.inf, site.fabric is not None
    for count in range(2, nodes.most(demand, device, site) + 1):
        tried = [
            _candidate(demand, device, division, nodes.rate(device, site, division))
            for division in nodes.divisions(demand, device, count, networked=networked)
        ]
        yield from tried
        held = [float(c.whole_gpus) for c in tried if c.feasible]
        if cheapest < math.inf and min(held, default=math.inf) >= cheapest:
            return
        cheapest = min([*held, cheapest])


def sizes(demand: LanguageDemand, device: Device) -> list[int]:
    """Tensor-parallel sizes: powers of two that split heads and widths evenly, inside a node."""
    chosen = demand.overrides.tensor_parallel_size
    if chosen is not None:
        return [int(chosen)]
    room = 1 if device.partition else device.offer.gpus_per_node
    room //= demand.overrides.stages
    powers = [1 << i for i in range(room.bit_length()) if 1 << i <= room] or [1]
    return [n for n in powers if not nodes.uneven(demand.model, n)]


def _candidates(
    demand: LanguageDemand, device: Device, division: Division
) -> Iterator[Candidate[LimitedReplica]]:
    """The layout with the least replicas; of a batch also with all that its paid nodes hold."""
    least = _candidate(demand, device, division)
    layout = least.detail
    if layout is None:
        yield least
        return
    yield from and_filled(
        demand, lambda filled: counted(demand, device, layout, filled) if filled else least
    )


def _candidate(
    demand: LanguageDemand, device: Device, division: Division, rate: Quantity | None = None
) -> Candidate[LimitedReplica]:
    of_all, layout = division.gpus, division.parallelism
    if gate := layout_gate(demand, device, division):
        return refused(demand, device, of_all, gate, passed=LAYOUT, parallelism=layout)
    replica = Replica(service(demand, device, division, rate))
    limit = largest(replica)
    if not limit:
        gate, flip = first_gate(replica)
        passed = _PASSED.get(gate[0].resource, OBJECTIVE)
        room = device.offer.gpus_per_node
        if passed == MEMORY and of_all == room:
            gate += (_nodes_too_small(gate[0], room),)
        return refused(demand, device, of_all, gate, passed=passed, flip=flip, parallelism=layout)
    made = counted(demand, device, LimitedReplica(replica, limit))
    if demand.overrides.replicas is not None:
        return made
    gate, flip = kept_apart(replica, limit, made.replicas)
    return stopped(made, gate, passed=OBJECTIVE, flip=flip)


def layout_gate(
    demand: LanguageDemand, device: Device, division: Division
) -> tuple[Shortfall, ...]:
    """Of a division that its nodes do not hold, or that does not divide the model."""
    room = division.nodes * (1 if device.partition else device.offer.gpus_per_node)
    gpus, stages = division.tensor_parallel_size, division.pipeline_stages
    if division.gpus > room:
        name = "gpus_per_partition" if device.partition else "gpus_per_node"
        return (count_gate(name, division.gpus, room),)
    if demand.model.layers % stages:
        return (uneven(stages, demand.model.layers, "layers", "stages"),)
    dimension = nodes.uneven(demand.model, gpus)
    if dimension:
        return (uneven(gpus, *dimension),)
    return experts.undivided(demand, device.gpu, division)


def _nodes_too_small(memory: Shortfall, room: int) -> Shortfall:
    """What a node would have to have to hold a replica alone."""
    needed = 1 << math.ceil(math.log2(room * memory.requested / memory.capacity))
    return count_gate("gpus_per_node", max(needed, 2 * room), room)


def counted(
    demand: LanguageDemand, device: Device, layout: LimitedReplica, filled: int | None = None
) -> Candidate[LimitedReplica]:
    """As many replicas as the load takes, as the override says, or as are `filled` in."""
    replica, hours = layout.replica, None
    seconds = replica.times(layout.limit)["request_seconds"]
    values = _evaluated(
        demand, replica, REPLICAS, seconds, replica.slowness, limit_sequences=layout.sequences
    )
    needed, chosen = int(values["replicas"]), demand.overrides.replicas
    count = filled or (needed if chosen is None else int(chosen))
    if isinstance(demand, BatchDemand):
        finish = FINISH(values | {"replicas": count})["time_to_finish"]
        hours = finish / 3600
    candidate = Candidate(
        device=device,
        gpus=replica.gpus,
        parallelism=replica.service.division.parallelism,
        replicas=count,
        isolation=demand.isolation,
        hours=hours,
        detail=layout,
        merit=Merit(lambda: _merit(demand, layout, count, seconds)),
    )
    gate, flip = nodes_gate(candidate)
    passed = NODES
    if count < needed:
        gate, flip, passed = (count_gate("replicas", needed, count),), None, REPLICA_COUNT
    return stopped(candidate, gate, passed=passed, flip=flip)


def _merit(
    demand: LanguageDemand, layout: LimitedReplica, count: int, seconds: float
) -> tuple[float, float]:
    """Requests per second at the limit, where one takes `seconds`, over those that must be served;
    and the likely latency of a service at its peak, or the time that a batch takes."""
    replica, limit = layout.replica, layout.limit
    if isinstance(demand, ServingDemand):
        room = count * layout.sequences / seconds / sized_rate(demand, replica, seconds)
        sequences = expected(demand, replica, count, limit, nearly=NEARLY)
        return room, replica.times(sequences)["request_latency"]
    assert isinstance(demand, BatchDemand)
    values = _evaluated(
        demand, replica, FINISH, seconds, 1.0, limit_sequences=layout.sequences, replicas=count
    )
    return room_in(demand.limit, values["time_to_finish"])
