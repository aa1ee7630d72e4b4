"""Pack a problem: outline, deal, leftovers, then better packings from that one."""

from __future__ import annotations

from gpuplan.packing.answer import answer
from gpuplan.packing.classes import Fleet, compile_fleet
from gpuplan.packing.deal import deal
from gpuplan.packing.improve import Packer, Ruin, close_hosts, insert_all, open_all, unplaced
from gpuplan.packing.keep import keep
from gpuplan.packing.master import Outline, fewest_hosts, first_outline, outline
from gpuplan.packing.problem import Problem, Result
from gpuplan.packing.state import State

ROUNDS = 2
Items = dict[int, list[int]]


def pack(problem: Problem) -> Result:
    """The same problem gives the same answer in every process."""
    fleet = compile_fleet(problem)
    first = first_outline(fleet)
    packer = stay(fleet) if problem.kept else construct(fleet, first)
    close_hosts(packer)
    Ruin(packer, seed=1).run(iterations(fleet), first.bound)
    close_hosts(packer)
    bound, cut_short = first.bound, first.cut_short
    placed = by_class(fleet, [i for i, where in enumerate(packer.state.where) if where is not None])
    if unplaced(fleet, packer.state):
        again = outline(fleet, placed, [site.available for site in fleet.sites], whole=False)
        bound, cut_short = again.bound, cut_short or again.cut_short
    hosts = fewest_hosts(fleet, placed)
    return answer(packer, bound, hosts, (cut_short,) if cut_short else ())


def iterations(fleet: Fleet) -> int:
    """Of ruin and recreate: what is worth its time."""
    items = len(fleet.request)
    return min(2500, 20 * items) if items <= 3000 else 200 if items <= 20_000 else 0


def by_class(fleet: Fleet, items: list[int]) -> Items:
    found: Items = {}
    for item in items:
        found.setdefault(fleet.class_of[item], []).append(item)
    return found


def construct(fleet: Fleet, first: Outline) -> Packer:
    packer = Packer(State(fleet))
    deal(packer.state, first, {kind.index: kind.items for kind in fleet.classes})
    settle(packer)
    return packer


def stay(fleet: Fleet) -> Packer:
    """What stands stays; the rest goes into holes, then onto hosts of their own."""
    packer = Packer(State(fleet))
    keep(packer)
    settle(packer)
    return packer


def settle(packer: Packer) -> None:
    """Place the leftovers."""
    state, fleet = packer.state, packer.fleet
    for _ in range(ROUNDS):
        left = insert_all(packer, unplaced(fleet, state))
        state.close_empty()
        if not left:
            return
        items = by_class(fleet, left)
        deal(state, outline(fleet, items, state.remaining(), whole=len(left) <= 200), items)
    insert_all(packer, unplaced(fleet, state))
    open_all(packer, unplaced(fleet, state))
    state.close_empty()
