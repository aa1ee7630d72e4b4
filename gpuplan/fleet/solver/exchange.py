"""A place for an item that fits no hole: that of another one, which has another place to go."""

from __future__ import annotations

from itertools import islice

from gpuplan.fleet.solver.chassis import Amounts
from gpuplan.fleet.solver.classes import Choice
from gpuplan.fleet.solver.effort import EXCHANGE_LOOKS
from gpuplan.fleet.solver.insert import Ranked, insert
from gpuplan.fleet.solver.state import OpenHost, State, Where, kind_of


def exchange(state: State, item: int, choices: Ranked, everyone: list[Ranked], tries: int) -> bool:
    """`everyone`: the choices of each class. At most so many others are asked to go elsewhere."""
    for choice, pool in choices:
        standing = state.standing.get(kind_of(choice, pool))
        for occupant in list(islice(standing or (), tries * EXCHANGE_LOOKS)):
            where = state.where[occupant]
            assert where is not None, "the index lists who stands"
            if not _suits(state, item, choice, (occupant, where)):
                continue
            tries -= 1
            theirs = everyone[state.fleet.class_of[occupant]]
            if _instead(state, item, choice, (occupant, where), theirs):
                return True
            if not tries:
                return False
    return False


def _suits(state: State, item: int, choice: Choice, occupant: tuple[int, Where]) -> bool:
    """Whether the item could stand where the other does."""
    seated, (theirs, number, mask, _, _) = occupant
    host = state.hosts[number]
    if state.fleet.spread[item] != state.fleet.spread[seated] and not state.may_stand(item, host):
        return False
    return all(_fits(host, j, choice.on(n), theirs.on(n)) for j, n in host.chassis.parts_of(mask))


def _fits(host: OpenHost, node: int, mine: Amounts, theirs: Amounts) -> bool:
    room = zip(mine, host.left[node], theirs, strict=True)
    return all(wanted <= left + given for wanted, left, given in room)


def _instead(
    state: State, item: int, choice: Choice, occupant: tuple[int, Where], theirs: Ranked
) -> bool:
    """`item` where the other stands, and the other in a hole; or all as it was."""
    seated, where = occupant
    state.remove(seated)
    state.put(item, (choice, *where[1:]))
    if insert(state, seated, theirs):
        return True
    state.remove(item)
    state.put(seated, where)
    return False
