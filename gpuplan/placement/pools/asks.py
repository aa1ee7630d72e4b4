"""What a candidate of a workload would ask of its pool."""

from __future__ import annotations

import math
from decimal import Decimal

from gpuplan.placement.pools.bins import Ask
from gpuplan.placement.pools.packing import pool_name
from gpuplan.placement.pools.stages import hours_of
from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.resources import host_resources
from gpuplan.sizing.candidates.settle import Settled


def asked(demand: Demand, candidate: Candidate) -> Ask:
    """As the workload will ask it when it is sized so."""
    device = candidate.device
    hours = None if candidate.hours is None else Decimal(repr(candidate.hours))
    room = device.offer.gpus_per_node
    inside = min(candidate.gpus, room)
    host = host_resources(Settled(demand), device, inside)
    return Ask(
        workload=demand.name,
        pool=pool_name(
            device.pool, demand.isolation, demand.tenant, partitioned=device.share is not None
        ),
        kind=device.pool,
        gpu=device.gpu.identifier,
        partition=device.partition,
        replicas=candidate.replicas,
        nodes=math.ceil(candidate.gpus / room),
        gpus=inside,
        cores=host.cpu_cores,
        memory_bytes=host.host_memory_bytes,
        hours=hours_of(hours, demand.schedule),
        recurs=hours is not None and demand.schedule is not None,
        spares=candidate.spares,
    )
