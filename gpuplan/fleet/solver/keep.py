"""What stands now, as a packing to start from: what is still asked for and still legal stays."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.fleet.problem import Placed
from gpuplan.fleet.solver.chassis import Chassis
from gpuplan.fleet.solver.classes import Choice, Fleet, Pool
from gpuplan.fleet.solver.improve import Packer
from gpuplan.fleet.solver.insert import pools_of
from gpuplan.fleet.solver.state import OpenHost, State
from gpuplan.plan.isolation import Neighbours

Seat = tuple[int, Placed, Chassis]


def keep(packer: Packer) -> None:
    """Open the hosts in use and put everybody back; who cannot stay is left to be placed."""
    by_host: dict[tuple[int, int], list[Seat]] = {}
    for item, placed, chassis in _known(packer.fleet):
        by_host.setdefault((chassis.index, placed.host), []).append((item, placed, chassis))
    for (index, label), seats in by_host.items():
        available = packer.fleet.chassis[index].available
        if available is not None and label >= available:
            continue
        owner = _tenant(packer.fleet, seats, "node")
        host = packer.state.open(index, owner, label)
        for seat in seats:
            _put(packer, host, seat, seats)
    packer.state.close_empty()


def _known(fleet: Fleet) -> Iterator[Seat]:
    """Kept items that are still asked for, on host types that still exist."""
    by_name = {chassis.host.name: chassis for chassis in fleet.chassis}
    seen: set[int] = set()
    for placed in fleet.problem.kept:
        item = fleet.items.get((placed.request, placed.number))
        if item is None or item in seen or placed.host_type not in by_name:
            continue
        if fleet.class_of[item] < 0:
            continue
        seen.add(item)
        yield item, placed, by_name[placed.host_type]


def _tenant(fleet: Fleet, seats: list[Seat], isolation: Neighbours) -> str | None:
    """Whose the host or the GPU is: the first who refuses to share it."""
    requests = (fleet.problem.requests[fleet.request[item]] for item, _, _ in seats)
    return next((r.tenant for r in requests if r.isolation == isolation), None)


def _put(packer: Packer, host: OpenHost, seat: Seat, seats: list[Seat]) -> None:
    item, placed, chassis = seat
    state = packer.state
    mask = sum(1 << i for i, number in enumerate(chassis.numbers) if number in placed.gpus)
    beside = [other for other in seats if set(other[1].gpus) & set(placed.gpus)]
    gpu_owner = _tenant(packer.fleet, beside, "gpu") if host.owner is None else None
    choice = _choice(packer.fleet, item, placed, chassis)
    if choice is None or mask.bit_count() != len(placed.gpus):
        return
    pool = (host.owner, None if choice.whole else gpu_owner)
    if _legal(state, item, host, (choice, mask, placed.start, pool)):
        state.put(item, (choice, host.id, mask, placed.start, pool))
        spot = state.spot(item)
        assert spot is not None, "it was put there"
        if not packer.fleet.is_growth(item):
            state.kept[item] = spot


def _choice(fleet: Fleet, item: int, placed: Placed, chassis: Chassis) -> Choice | None:
    """The choice of the item's class that stands so."""
    for choice in fleet.classes[fleet.class_of[item]].choices:
        mode = part = None
        if not choice.whole:
            geometry = fleet.geometries[choice.geometry]
            mode, part = geometry.mode.name, geometry.parts[choice.part].name
        same = choice.chassis == chassis.index and (mode, part) == (placed.mode, placed.part)
        if same and (not choice.whole or choice.gpus == len(placed.gpus)):
            return choice
    return None


def _legal(
    state: State, item: int, host: OpenHost, seat: tuple[Choice, int, int | None, Pool]
) -> bool:
    choice, mask, start, pool = seat
    kind = state.fleet.classes[state.fleet.class_of[item]]
    if pool not in pools_of(choice, kind) or not state.may_stand(item, host):
        return False
    if choice.whole:
        fits = all(host.holds(j, choice.on(n)) for j, n in host.chassis.parts_of(mask))
        return fits and mask & host.free == mask and host.chassis.allows(mask)
    gpu = mask.bit_length() - 1
    if not host.holds(host.chassis.node_of[gpu], choice.wanted):
        return False
    geometry, free = state.fleet.geometries[choice.geometry], host.free >> gpu & 1
    if not free and (host.gpu_mode[gpu], host.gpu_owner[gpu]) != (choice.geometry, pool[1]):
        return False
    return geometry.at(host.gpu_state[gpu], choice.part, start) is not None
