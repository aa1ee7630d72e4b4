"""Prefill and decode in pools of their own: what machines serve so, beside one pool for both.

A prefill replica takes one prompt after the other (M/G/1), hands its KV cache over, and never
decodes; a decode replica is never stalled by a prompt. No backend writes such pools: this answers
whether they would pay. Nothing of it is measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from gpuplan.plan.capacity import Split
from gpuplan.plan.records import Estimate
from gpuplan.sizing.ask.demand import LanguageDemand
from gpuplan.sizing.evidence.formula import canonical
from gpuplan.sizing.evidence.intervals import Factors, estimate, inverse
from gpuplan.sizing.evidence.sheet import Sheet, sheet
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.kinds.serving.limit import holds
from gpuplan.sizing.kinds.serving.search import replicas
from gpuplan.sizing.physics.serving.declared import bursting
from gpuplan.sizing.physics.serving.latency import OPEN, PROMPTS_ALONE, QUEUE, VARIATION
from gpuplan.sizing.physics.serving.replica import MOST_SEQUENCES, Replica

MOST_LOAD = 0.8  # busy part of a prefill replica, where no first token is asked for; else 0.95
FIRST = sheet("""
    transfer_seconds: s = prompt_cache_bytes / transfer_rate  # the prompt's KV cache, once
    first_token_seconds: s = first_overhead + transfer_seconds  # arrival, and the cache's way
""")
FIRST += VARIATION + PROMPTS_ALONE + QUEUE
FIRST += Sheet(tuple(line for line in OPEN.lines if line[0] == "time_to_first_token"))


@dataclass(frozen=True, slots=True)
class Part:
    """One replica of a pool: its requests per second with the wanted confidence, and the likely
    time that its objective is about. `sequences` of a prefill replica are 1."""

    gpus: int
    rate: float
    seconds: float
    sequences: int = 1


def split(demand: LanguageDemand, offer: GpuOffer, site: Site) -> Split | None:
    """The best split of the GPUs of `offer`; None where one half or the other fits nowhere."""
    made = [r for r in replicas(demand, replace(site, gpus=(offer,))) if not r.device.partition]
    decoding = [p for r in made if (p := _decode(r)) is not None]
    prefilling = [p for r in made if (p := _prefill(r)) is not None]
    found = max(_pairs(offer, prefilling, decoding), default=None, key=lambda pair: pair[0])
    if found is None:
        return None
    assured, first, first_count, token, token_count = found
    slow, factors = made[0].slowness, made[0].token_factors
    return Split(
        gpu=offer.gpu.identifier,
        prefill_replicas=first_count,
        prefill_tensor_parallel_size=first.gpus,
        decode_replicas=token_count,
        decode_tensor_parallel_size=token.gpus,
        sequences=token.sequences,
        assured=canonical(assured),
        requests_per_second=_likely(assured * slow, factors),
        time_to_first_token=canonical(first.seconds),
        time_per_output_token=canonical(token.seconds),
    )


def _likely(rate: float, factors: Factors) -> Estimate:
    return estimate(rate, inverse(factors), "extrapolated")


Pair = tuple[float, Part, int, Part, int]


def _pairs(offer: GpuOffer, first: Iterable[Part], token: list[Part]) -> Iterable[Pair]:
    """Every pair of sizes and numbers of replicas; a replica lies in one node."""
    nodes, room = offer.node_count or 0, offer.gpus_per_node
    for one in first:
        for other in token:
            for count in range(1, nodes * (room // other.gpus) + 1):
                left = nodes * room - count * other.gpus
                most = min(nodes * (room // one.gpus), left // one.gpus)
                if most:
                    wanted = math.ceil(count * other.rate / one.rate - 1e-9)
                    used = max(1, min(most, wanted))
                    yield min(count * other.rate, used * one.rate), one, used, other, count


def _decode(replica: Replica) -> Part | None:
    """The most sequences at which a token is in time, without any prompt between them."""
    limits = {name: limit / slow for name, limit, slow in replica.limits}
    limit = limits.get("time_per_output_token", math.inf)

    def works(sequences: int) -> bool:
        return holds(replica, sequences) and replica.times(sequences)["decode_seconds"] <= limit

    if not works(1):
        return None
    low, high = 1, MOST_SEQUENCES
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if works(middle) else (low, middle - 1)
    times = replica.times(low)
    seconds = times["decode_seconds"]
    rate = low / (times["output_mean"] * seconds * replica.slowness)
    return Part(replica.gpus, rate, seconds, low)


def _prefill(replica: Replica) -> Part | None:
    """The busiest that a replica may be for the first token to be in time."""
    if not holds(replica, 1):
        return None
    limits = {name: limit / slow for name, limit, slow in replica.limits}
    limit = limits.get("time_to_first_token")
    first_token = bursting(FIRST, Sheet(())) if replica.bursts else FIRST
    scope = replica.times(1.0) | _transfer(replica)
    work = scope["prefill_work_seconds"]

    def first(load: float) -> float:
        load_scope = {"prefill_load": load, "prompt_step_seconds": work, "closed_rate": load / work}
        return first_token(scope | load_scope)["time_to_first_token"]

    low, high = 0.001, MOST_LOAD if limit is None else 0.95
    if limit is not None and first(low) > limit:
        return None
    if limit is not None and first(high) > limit:
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (middle, high) if first(middle) <= limit else (low, middle)
        high = low
    rate = high / (work * replica.slowness)
    return Part(replica.gpus, rate, first(high))


def _transfer(replica: Replica) -> dict[str, float]:
    """The cache of a mean prompt, and the rate at which a replica sends it: by NVLink where there
    is one, else by PCIe."""
    needs, gpu = replica.needs(1.0), replica.device.gpu
    link = gpu.nvlink_bytes_per_s or gpu.pcie_bytes_per_s
    each = needs["kv_cache_bytes"] / needs["kv_cache_tokens"]
    return {"prompt_cache_bytes": each * needs["input_mean"], "transfer_rate": link.value}
