"""Who found no place, and what was short on the host type that came nearest."""

from __future__ import annotations

from dataclasses import dataclass

from gpuplan.fleet.problem import Option, Refused, Request
from gpuplan.fleet.solver.chassis import Chassis
from gpuplan.fleet.solver.classes import Choice, Fleet, Pool, sets_on_empty
from gpuplan.fleet.solver.full.additions import RESOURCES, additions
from gpuplan.fleet.solver.state import OpenHost, State


@dataclass(frozen=True, slots=True)
class Short:
    """What is short; `near` is the share of it that there is."""

    near: float
    resource: str
    chassis: Chassis | None
    requested: float
    available: float
    unit: str


def refusals(fleet: Fleet, state: State) -> tuple[Refused, ...]:
    left: dict[int, list[int]] = {}
    for item, where in enumerate(state.where):
        if where is None:
            left.setdefault(fleet.request[item], []).append(item)
    return tuple(_refused(fleet, state, r, items) for r, items in left.items())


def _refused(fleet: Fleet, state: State, r: int, items: list[int]) -> Refused:
    request = fleet.problem.requests[r]
    never = fleet.class_of[items[0]] < 0
    short = _never(fleet, request) if never else _now(fleet, state, items[0])
    return Refused(
        request=request.name,
        numbers=tuple(fleet.number[item] for item in items),
        resource=short.resource,
        host_type=short.chassis.host.name if short.chassis else None,
        requested=short.requested,
        available=short.available,
        unit=short.unit,
        enough=additions(fleet, state, items),
    )


def _never(fleet: Fleet, request: Request) -> Short:
    """No host type has room for it, even empty."""
    shorts = [
        _on_empty(chassis, option)
        for option in request.options
        for chassis in fleet.chassis
        if chassis.host.gpu == option.gpu and option.host_gpus in (None, chassis.gpus)
    ]
    nothing = Short(-1.0, "gpus", None, max([1, *(o.gpus for o in request.options)]), 0, "gpus")
    return max(shorts, key=lambda short: short.near, default=nothing)


def _on_empty(chassis: Chassis, option: Option) -> Short:
    if chassis.available == 0:
        return Short(0.0, "hosts", chassis, 1, 0, "hosts")
    if option.mode is not None:
        sets = [mask & -mask for mask in chassis.masks if mask]
    else:
        sets = sets_on_empty(chassis, option.gpus)
    nearest = [
        min(_parts(chassis, option, mask), key=lambda s: s.near, default=None) for mask in sets
    ]
    shorts = [short for short in nearest if short is not None]
    if shorts:
        return max(shorts, key=lambda short: short.near)
    if option.mode is not None:
        return Short(0.0, "gpu_partitions", chassis, 1, 0, "partitions")
    most = _most(chassis, option.gpus - 1)
    return Short(most / option.gpus, "gpus", chassis, option.gpus, most, "gpus")


def _parts(chassis: Chassis, option: Option, mask: int) -> list[Short]:
    """What nodes are short of for their part of a workload on these GPUs."""
    shorts = []
    for node, gpus in chassis.parts_of(mask):
        of = max(option.gpus, 1)
        wanted = (option.cores, option.memory_bytes, option.functions)
        for (resource, unit), w, f in zip(RESOURCES, wanted, chassis.room[node], strict=True):
            part = -(-w * gpus // of)
            if part > f:
                shorts.append(Short(f / part, resource, chassis, part, f, unit))
    return shorts


def _most(chassis: Chassis, gpus: int) -> int:
    """The GPUs that one workload can have at most, if not more than so many."""
    for k in range(gpus, 0, -1):
        if any(chassis.pick(mask, k) for mask in chassis.masks) or chassis.spans(chassis.mask, k):
            return k
    return 0


def _now(fleet: Fleet, state: State, item: int) -> Short:
    """The fleet is full. The nearest: a GPU is there and other things are short."""
    kind = fleet.classes[fleet.class_of[item]]
    owners = {owner for owner, _ in kind.pools}
    best: Short | None = None
    for choice in kind.choices:
        for host in state.hosts.values():
            if host.chassis.index == choice.chassis and host.owner in owners:
                short = _on_host(fleet, state, item, host, choice)
                if best is None or short.near > best.near:
                    best = short
    chassis = fleet.chassis[kind.choices[0].chassis]
    return best or Short(0.0, "hosts", chassis, 1, 0, "hosts")


def _on_host(fleet: Fleet, state: State, item: int, host: OpenHost, choice: Choice) -> Short:
    """What is short on a host, at the node that has most of it."""
    chassis = host.chassis
    if not state.may_stand(item, host):
        group = fleet.spread[item]
        size = fleet.spread.count(group)
        return Short(-0.5, "hosts", chassis, size, len(state.labels[chassis.index]), "hosts")
    shorts, pools = [], fleet.classes[fleet.class_of[item]].pools
    for node, mask in enumerate(chassis.masks):
        gpus = _gpus(fleet, host, mask, choice, pools)
        if gpus is not None:
            shorts.append(gpus)
            continue
        free = host.left[node]
        wanted = choice.on(min(choice.gpus, mask.bit_count()))
        shares = [(f / w, n) for n, (f, w) in enumerate(zip(free, wanted, strict=True)) if w]
        near, n = min(shares, default=(0.0, 0))
        resource, unit = RESOURCES[n]
        shorts.append(Short(1 + near, resource, chassis, wanted[n], free[n], unit))
    return max(shorts, key=lambda short: short.near)


def _gpus(
    fleet: Fleet, host: OpenHost, mask: int, choice: Choice, pools: tuple[Pool, ...]
) -> Short | None:
    """A shortage of GPUs or of room on them, on these GPUs of a host; None if there is none."""
    free = host.free & mask
    if choice.whole:
        wanted = min(choice.gpus, mask.bit_count())
        if wanted and host.chassis.pick(free, wanted):
            return None
        number = free.bit_count()
        return Short(number / choice.gpus, "gpus", host.chassis, choice.gpus, number, "gpus")
    geometry = fleet.geometries[choice.geometry]
    shared = (
        geometry.add(host.gpu_state[g], choice.part)
        for g in range(host.chassis.gpus)
        if mask >> g & 1 and host.gpu_mode[g] == choice.geometry
        if (host.owner, host.gpu_owner[g]) in pools
    )
    if free or any(shared):
        return None
    return Short(0.0, "gpu_partitions", host.chassis, 1, 0, "partitions")
