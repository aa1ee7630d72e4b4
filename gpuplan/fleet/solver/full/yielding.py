"""A fleet that is full: who has a place. A higher priority before a lower one, of one priority more
GPUs before fewer; room for growth comes last. What stands already never leaves."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import partial
from itertools import islice

from gpuplan.fleet.problem import PRIORITIES
from gpuplan.fleet.solver.classes import Fleet
from gpuplan.fleet.solver.effort import YIELDING_HOSTS
from gpuplan.fleet.solver.improve import Packer, open_all, unplaced
from gpuplan.fleet.solver.insert import on_host, open_for
from gpuplan.fleet.solver.state import OpenHost

RANKS = range(len(PRIORITIES) - 1, -2, -1)

Left = tuple[Fraction, ...]  # GPUs that found no place, of the highest priority first


def left_over(fleet: Fleet, items: Iterable[int]) -> Left:
    gpus = dict.fromkeys(RANKS, Fraction(0))
    alike = Counter((fleet.rank(item), fleet.class_of[item]) for item in items)
    for (rank, kind), number in alike.items():
        gpus[rank] += number * fleet.classes[kind].gpus
    return tuple(gpus.values())


def give_way(packer: Packer) -> None:
    """Those that have no place take one where others leave that count less."""
    fleet, failed = packer.fleet, set[tuple[int, int]]()
    trials = 0
    order = partial(order_of, fleet)
    waiting = deque(sorted(unplaced(fleet, packer.state), key=order))
    while waiting and trials < YIELDING_HOSTS:
        item = waiting.popleft()
        kind = (fleet.class_of[item], fleet.rank(item))
        if kind in failed:
            continue
        for host in islice(_hosts(packer, item), YIELDING_HOSTS - trials):
            trials += 1
            gone = _instead(packer, item, host)
            if gone is not None:
                waiting = deque(sorted([*waiting, *gone], key=order))
                failed.clear()
                break
        else:
            failed.add(kind)
    packer.state.close_empty()
    open_all(packer, unplaced(fleet, packer.state), order)  # who left may have left room for others


def order_of(fleet: Fleet, item: int) -> tuple[int, int, int]:
    """Who has a place first."""
    return *_counts(fleet, item), item


def _counts(fleet: Fleet, item: int) -> tuple[int, int]:
    """The lower, the more it counts."""
    return -fleet.rank(item), fleet.by_gpus[fleet.class_of[item]]


def _hosts(packer: Packer, item: int) -> Iterator[OpenHost]:
    """Those of the types that it may stand on, first those where least would leave."""
    fleet, state = packer.fleet, packer.state
    kinds = {choice.chassis for choice in fleet.classes[fleet.class_of[item]].choices}
    some = (
        (left_over(fleet, lesser), host.id)
        for host in state.hosts.values()
        if host.chassis.index in kinds and state.may_stand(item, host)
        if (lesser := _lesser(packer, item, host))
    )
    for _, number in sorted(some):
        yield state.hosts[number]


def _lesser(packer: Packer, item: int, host: OpenHost) -> list[int]:
    """Those on a host that count less than the item; the least first."""
    fleet = packer.fleet
    mine = _counts(fleet, item)
    lesser = [i for i in host.items if i not in packer.state.kept and _counts(fleet, i) > mine]
    return sorted(lesser, key=lambda i: order_of(fleet, i), reverse=True)


def _instead(packer: Packer, item: int, host: OpenHost) -> list[int] | None:
    """The item on the host, and who has no place any more; None, and all as it was, where that
    would be no gain. As few leave as will do, those that count least first."""
    state, fleet = packer.state, packer.fleet
    gone: list[int] = []
    state.begin()
    for other in _lesser(packer, item, host):
        state.remove(other)
        gone.append(other)
        if placed_on(packer, item, host):
            break
    else:
        state.undo()
        return None
    left = [i for i in reversed(gone) if not packer.insert(i)]
    if left_over(fleet, left) < left_over(fleet, [item]):
        state.commit()
        return left
    state.undo()
    return None


def placed_on(packer: Packer, item: int, host: OpenHost) -> bool:
    """The item on just this host, where it has a place. One that is empty may become another
    tenant's; where that gives no place either, it is left closed."""
    state = packer.state
    choices = [
        (choice, pool)
        for choice, pool in packer.choices[packer.fleet.class_of[item]]
        if choice.chassis == host.chassis.index
    ]
    for choice, pool in choices:
        where = on_host(state, host, choice, pool) if pool[0] == host.owner else None
        if where is not None:
            state.put(item, where)
            return True
    if not host.items:
        state.close(host)
        return open_for(state, item, choices)
    return False
