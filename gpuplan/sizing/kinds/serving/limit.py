"""How many sequences a replica runs within memory, objectives and the engine's limit; what stops
it."""

from __future__ import annotations

from gpuplan.frozen import frozen
from gpuplan.plan.model import Flip, Shortfall
from gpuplan.plan.times import field_of
from gpuplan.sizing.evidence.formula import canonical
from gpuplan.sizing.physics.serving.replica import BUSIEST, MOST_SEQUENCES, Replica

PART = 1 / 16  # of a sequence; as finely the mean number of a service is found

ALONE = 2 * PART  # so few on average do without a second place, where an override allows one only

IDLE = 16  # replicas that a service may have above the requests that run at once, a judgement

Gate = tuple[tuple[Shortfall, ...], Flip | None]


@frozen
class LimitedReplica:
    """A replica and the most sequences at which it meets every objective: those of one of its ranks
    (a stage of its pipeline, a group of its data-parallel attention), and of all."""

    replica: Replica
    limit: float

    @property
    def sequences(self) -> float:
        return self.limit * self.replica.service.division.ranks


def holds(replica: Replica, sequences: float) -> bool:
    """Whether memory and the engine's limit of sequences allow as many."""
    needs = replica.needs(sequences)
    few = needs["running"] <= replica.places or (replica.service.random and sequences <= ALONE)
    return few and needs["used_bytes"] <= needs["usable_bytes"]


def fits(replica: Replica, sequences: float) -> bool:
    """Whether objectives allow as many too, and prompts leave the replica time."""
    if not holds(replica, sequences):
        return False
    times = replica.times(sequences)
    if replica.service.random and times["prefill_load"] > BUSIEST:
        return False
    return all(canonical(times[name] * slow) <= limit for name, limit, slow in replica.limits)


def largest(replica: Replica) -> float:
    """The most sequences that fit, 0 when not even one does. A service has them on average, and any
    part of one; a batch keeps whole places taken."""
    random = replica.service.random
    if not fits(replica, PART if random else 1):
        return 0
    low, high = 0 if random else 1, MOST_SEQUENCES
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(replica, middle) else (low, middle - 1)
    return _finer(replica, low) if random else _faster(replica, low)


def _faster(replica: Replica, most: float) -> float:
    """Of the `most` places of a batch and the size of a CUDA graph below, what answers more."""
    if replica.graph_sizes is None:
        return most
    whole = replica.graph_sizes.below(most)
    return max(whole, most, key=lambda places: replica.times(places)["replica_rate"])


def _finer(replica: Replica, whole: int) -> float:
    """Between `whole` sequences, which fit, and one more. Where few fit, a whole one is a step so
    large that more work could seem to need fewer GPUs."""
    step, most = 0.5, float(whole)
    while step >= PART:
        if fits(replica, most + step):
            most += step
        step /= 2
    return most or PART


def first_gate(replica: Replica) -> Gate:
    """What keeps a single sequence from fitting."""
    return gate(replica, replica.slowness)


def kept_apart(replica: Replica, limit: float, replicas: int) -> Gate:
    """What a whole request on each replica of a service fails, where objectives hold only because
    so many replicas are idle that requests hardly meet on one; nothing where more than one runs on
    each, where few are idle, and of a batch."""
    if not replica.service.random or replicas * (1 - limit) <= IDLE:
        return (), None
    return gate(replica, 1)


def gate(replica: Replica, sequences: float) -> Gate:
    """The gates that `sequences` fail, memory first, and what would open the first."""
    needs = replica.needs(sequences)
    if needs["used_bytes"] > needs["usable_bytes"]:
        return _memory_gate(replica, needs)
    times = replica.times(sequences)
    for name, limit, slow in replica.limits:
        value = canonical(times[name] * slow)
        if value > limit:
            short = Shortfall(resource=name, requested=value, used=0.0, capacity=limit, unit="s")
            return (short,), Flip(quantity=field_of(name), now=limit, needed=value, unit="s")
    return (), None


def _memory_gate(replica: Replica, needs: dict[str, float]) -> Gate:
    """Weights and work space first; where those fit, the cache is what does not."""
    fixed = needs["weights_bytes"] + needs["activations_bytes"] + needs["own_bytes"]
    cache_only = fixed <= needs["usable_bytes"]
    short = Shortfall(
        resource="kv_cache" if cache_only else "gpu_memory",
        requested=needs["kv_cache_bytes"] if cache_only else needs["used_bytes"],
        used=needs["used_bytes"] - needs["kv_cache_bytes"] if cache_only else 0.0,
        capacity=needs["usable_bytes"],
        unit="B",
    )
    capacity = replica.device.memory_bytes.value
    needed = needs["driver_bytes"] + needs["used_bytes"] / needs["gpu_memory_utilization"]
    flip = Flip(quantity="gpu_memory_bytes", now=capacity, needed=float(round(needed)), unit="B")
    return (short,), flip
