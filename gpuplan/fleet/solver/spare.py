"""Fewer GPUs at no more cost: who is alone on a GPU, or almost, joins others on theirs."""

from __future__ import annotations

from gpuplan.fleet.solver.effort import PATIENCE, SPARE_PRICES
from gpuplan.fleet.solver.improve import Packer, Ruin
from gpuplan.fleet.solver.insert import find
from gpuplan.fleet.solver.state import OpenHost, State

HALF = 0.5  # of a GPU: what is emptier is tried


def spare(packer: Packer, work: int) -> None:
    """GPUs are emptied one by one; then a few hosts at a time are packed anew, as long as somebody
    has a whole GPU that a part would do for."""
    share_all(packer)
    if wasteful(packer.state):
        _Sparing(packer, seed=2).run(work)
        share_all(packer)
    packer.state.close_empty()


def wasteful(state: State) -> list[int]:
    """Items on a whole GPU for which a part would do."""
    shares = [any(not c.whole for c in kind.choices) for kind in state.fleet.classes]
    return [
        item
        for item, where in enumerate(state.where)
        if where is not None and where[0].whole and shares[state.fleet.class_of[item]]
    ]


def share_all(packer: Packer) -> None:
    """Who has a whole GPU takes a part where one is free; then GPUs less than half full are emptied
    where their items fit others."""
    for item in wasteful(packer.state):
        _move(packer, [item], joining=False)
    for items in _thin(packer.state):
        _move(packer, items, joining=True)


def _thin(state: State) -> list[list[int]]:
    """The items of each GPU that is shared and less than half full, the emptiest first."""
    items: dict[tuple[int, int], list[int]] = {}
    fractions: dict[tuple[int, int], float] = {}
    for item, where in enumerate(state.where):
        if where is not None and not where[0].whole:
            key = (where[1], where[2])
            items.setdefault(key, []).append(item)
            fraction = state.fleet.geometries[where[0].geometry].fractions[where[0].part]
            fractions[key] = fractions.get(key, 0.0) + fraction
    return [
        items[key]
        for key in sorted(fractions, key=lambda k: (fractions[k], k))
        if fractions[key] < HALF
    ]


def _move(packer: Packer, items: list[int], *, joining: bool) -> None:
    """To parts elsewhere, if all find one; `joining`: only if that frees a GPU."""
    state = packer.state
    before = (state.gpus, packer.price())
    state.begin()
    for item in items:
        state.remove(item)
    done = all(_to_part(packer, item) for item in items)
    after = (state.gpus, packer.price())
    if done and after[1] <= before[1] and (after[0] < before[0] or not joining):
        state.commit()
    else:
        state.undo()


def _to_part(packer: Packer, item: int) -> bool:
    state = packer.state
    for choice, pool in packer.choices[state.fleet.class_of[item]]:
        where = None if choice.whole else find(state, item, choice, pool)
        if where is not None:
            state.put(item, where)
            return True
    return False


class _Sparing(Ruin):
    """Ruin and recreate around hosts with wasteful items."""

    spread = SPARE_PRICES

    def run(self, work: int, bound: int = -1) -> None:
        """Until so many places were looked at, or nobody is wasteful."""
        del bound
        state = self.state
        end, gained, gpus = state.work + work, state.work, state.gpus
        self.wasteful = wasteful(state)
        while self.wasteful and state.work < min(end, gained + work // PATIENCE):
            self._step()
            state.work += 1
            if state.gpus < gpus:
                gained, gpus = state.work, state.gpus
                self.wasteful = wasteful(state)

    def _choose(self) -> list[OpenHost]:
        """A host with a wasteful item, and one to three others."""
        state, random = self.state, self.random
        chosen: dict[int, OpenHost] = {}
        where = state.where[self.wasteful[random.randrange(len(self.wasteful))]]
        assert where is not None, "who is wasteful stands somewhere"
        chosen[where[1]] = state.hosts[where[1]]
        hosts = list(state.hosts.values())
        for _ in range(random.randint(1, 3)):
            host = hosts[random.randrange(len(hosts))]
            chosen[host.id] = host
        return list(chosen.values())
