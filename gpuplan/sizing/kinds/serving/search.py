"""Language models: a service that keeps its latency at the peak, or a batch that must finish."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from gpuplan.models.model import Transformer
from gpuplan.plan.model import Shortfall
from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.ask.limits import peak_rate, requests, time_limit, weighed_hours
from gpuplan.sizing.candidates.choose import Candidate, nodes_gate
from gpuplan.sizing.candidates.devices import devices
from gpuplan.sizing.candidates.gates import count_gate, refused, stopped, uneven
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.hardware.efficiency import unsupported
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.physics.serving.replica import Replica

# Gates in the order in which a candidate meets them.
PRECISION, LAYOUT, MEMORY, CACHE, OBJECTIVE, REPLICAS, NODES = range(7)
_PASSED = {"gpu_memory": MEMORY, "kv_cache": CACHE}


@dataclass(frozen=True, slots=True)
class Layout:
    """A replica and the most sequences at which it meets every objective."""

    replica: Replica
    limit: float


def candidates(demand: Demand, site: Site) -> list[tuple[GpuOffer, list[Candidate]]]:
    """Every device and tensor-parallel size of every offer."""
    return [
        (offer, [c for d in devices(demand, offer, site) for c in _layouts(demand, d)])
        for offer in site.gpus
    ]


def rate(demand: Demand, seconds: float) -> float:
    """Requests per second that must be served: the peak at the horizon, or what the wanted tokens
    per second take. `seconds` are those of a request, which users in a closed loop wait for."""
    tokens = demand.value("slo.tokens_per_second")
    wanted = 0.0 if tokens is None else tokens / output_mean(demand)
    return max(peak_rate(demand, seconds), wanted)


def expected(
    demand: Demand, replica: Replica, replicas: float, limit: float, *, nearly: float = 1e-6
) -> float:
    """The concurrency that solves Little's law for one replica, to `nearly` of the limit and to
    four digits; at least one sequence, where as many are allowed."""

    def short(sequences: float) -> bool:
        seconds = replica.times(sequences)["request_seconds"]
        return rate(demand, seconds) / replicas * seconds > sequences

    low, high = min(1.0, limit), limit
    if not short(low):
        return low
    while high - low > nearly * limit:
        middle = (low + high) / 2
        low, high = (middle, high) if short(middle) else (low, middle)
    return float(f"{high:.4g}")


def output_mean(demand: Demand) -> float:
    return demand.given["load.output_tokens.mean"].value


def replicas(demand: Demand, site: Site) -> Iterator[Replica]:
    """Every device and tensor-parallel size that can be built, whether or not it fits."""
    forced = demand.overrides.gpu
    offers = [o for o in site.gpus if forced in (None, o.gpu.identifier)]
    for device in (d for offer in offers for d in devices(demand, offer, site)):
        if not _precision_gate(demand, device):
            sizes = _sizes(demand, device)
            yield from (
                Replica(demand, device, n) for n in sizes if not _layout_gate(demand, device, n)
            )


def _precision_gate(demand: Demand, device: Device) -> tuple[Shortfall, ...]:
    gate = unsupported(device.gpu, demand.precision)
    if demand.overrides.kv_cache_dtype == "fp8":
        gate += unsupported(device.gpu, "fp8")
    return gate


def _layouts(demand: Demand, device: Device) -> Iterator[Candidate]:
    if gate := _precision_gate(demand, device):
        yield refused(demand, device, 1, gate, passed=PRECISION)
        return
    for gpus in _sizes(demand, device):
        yield _candidate(demand, device, gpus)


def _sizes(demand: Demand, device: Device) -> list[int]:
    """Tensor-parallel sizes: powers of two that split heads and widths evenly, inside a node."""
    chosen = demand.overrides.tensor_parallel_size
    if chosen is not None:
        return [chosen]
    room = 1 if device.partition else device.offer.gpus_per_node
    powers = [1 << i for i in range(room.bit_length()) if 1 << i <= room]
    assert isinstance(demand.model, Transformer)
    return [n for n in powers if not _uneven(demand.model, n)]


def _uneven(model: Transformer, gpus: int) -> tuple[int, str] | None:
    """The dimension that `gpus` do not split evenly, if any."""
    kv_heads = 1 if model.latent else model.kv_heads
    width = model.experts.intermediate_size if model.experts else model.intermediate_size
    if model.attention_heads % gpus:
        return model.attention_heads, "attention heads"
    if kv_heads % gpus and gpus % kv_heads:
        return kv_heads, "KV heads"
    return (width, "rows of the MLP") if width % gpus else None


def _candidate(demand: Demand, device: Device, gpus: int) -> Candidate:
    gate = _layout_gate(demand, device, gpus)
    if gate:
        return refused(demand, device, gpus, gate, passed=LAYOUT)
    replica = Replica(demand, device, gpus)
    limit = replica.largest()
    if not limit:
        gate, flip = replica.first_gate()
        passed = _PASSED.get(gate[0].resource, OBJECTIVE)
        room = device.offer.gpus_per_node
        if passed == MEMORY and gpus == room:
            gate += (_nodes_too_small(gate[0], room),)
        return refused(demand, device, gpus, gate, passed=passed, flip=flip)
    return _replicas(demand, device, Layout(replica, limit))


def _layout_gate(demand: Demand, device: Device, gpus: int) -> tuple[Shortfall, ...]:
    assert isinstance(demand.model, Transformer)
    room = 1 if device.partition else device.offer.gpus_per_node
    if gpus > room:
        name = "gpus_per_partition" if device.partition else "gpus_per_node"
        return (count_gate(name, gpus, room),)
    found = _uneven(demand.model, gpus)
    return (uneven(gpus, *found),) if found else ()


def _nodes_too_small(memory: Shortfall, room: int) -> Shortfall:
    """A replica over several nodes is not emitted."""
    needed = 1 << math.ceil(math.log2(room * memory.requested / memory.capacity))
    return count_gate("gpus_per_node", max(needed, 2 * room), room)


def _replicas(demand: Demand, device: Device, layout: Layout) -> Candidate:
    """As many replicas as the load takes, or as the override says."""
    replica, hours = layout.replica, 1.0
    seconds = replica.times(layout.limit)["request_seconds"]
    needed = _needed(demand, replica, layout.limit, seconds)
    chosen = demand.overrides.replicas
    count = chosen or needed
    if demand.kind == "batch":
        hours = weighed_hours(demand, requests(demand) * seconds / (layout.limit * count))
    candidate = Candidate(
        device=device,
        gpus=replica.gpus,
        replicas=count,
        isolation=demand.isolation,
        hours=hours,
        detail=layout,
    )
    gate, flip = nodes_gate(candidate)
    passed = NODES
    if chosen is not None and chosen < needed:
        gate, flip, passed = (count_gate("replicas", needed, chosen),), None, REPLICAS
    return stopped(candidate, gate, passed=passed, flip=flip)


def _needed(demand: Demand, replica: Replica, limit: float, seconds: float) -> int:
    """Replicas at `limit` sequences each, as slow as the confidence allows."""
    slow = seconds * replica.slowness / limit
    if demand.kind == "serving":
        return max(1, math.ceil(rate(demand, seconds * replica.slowness) * slow - 1e-9))
    needed = 1.0
    if (within := time_limit(demand)) is not None:
        needed = max(needed, requests(demand) * slow / within)
    if (tokens := demand.value("slo.tokens_per_second")) is not None:
        needed = max(needed, tokens / output_mean(demand) * slow)
    return math.ceil(needed - 1e-9)
