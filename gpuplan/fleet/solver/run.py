"""Pack a problem: outline, deal, leftovers, then better packings from that one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpuplan.fleet.problem import Merged, Problem, Result
from gpuplan.fleet.solver.alike import alike, own
from gpuplan.fleet.solver.answer import answer
from gpuplan.fleet.solver.classes import Fleet, compile_fleet
from gpuplan.fleet.solver.deal import deal
from gpuplan.fleet.solver.effort import (
    LEFT_ROUNDS,
    LEFT_SMALL,
    SMALL,
    first_work,
    ruin_work,
    spare_work,
)
from gpuplan.fleet.solver.full.preempting import preemptions
from gpuplan.fleet.solver.full.yielding import Left, give_way, left_over
from gpuplan.fleet.solver.improve import Packer, Ruin, close_hosts, insert_all, open_all, unplaced
from gpuplan.fleet.solver.keep import keep
from gpuplan.fleet.solver.nodes.packing import by_nodes
from gpuplan.fleet.solver.outline.master import Outline, fewest_hosts, outline, whole_outline
from gpuplan.fleet.solver.outline.tighten import Items
from gpuplan.fleet.solver.spare import spare
from gpuplan.fleet.solver.state import State


def pack(problem: Problem, *, contents: bool = True) -> Result:
    """The same problem gives the same answer in every process. `contents`: those of whole nodes are
    looked at too, which takes longer."""
    fleet, merged = compile_fleet(problem), None
    if problem.kept:
        least = whole_outline(fleet)
        packer = improved(stay(fleet), least.bound)
    else:
        packer, least, merged = fresh(fleet, contents=contents)
    spare(packer, spare_work(ruin_work(len(fleet.request))))
    open_all(packer, unplaced(fleet, packer.state))
    give_way(packer)
    cut_short = least.cut_short
    if unplaced(fleet, packer.state):
        stand = [i for i, where in enumerate(packer.state.where) if where is not None]
        available = [chassis.available for chassis in fleet.chassis]
        least = outline(fleet, by_class(fleet, stand), available)
        cut_short = cut_short or least.cut_short
    result = answer(packer, least.bound, fewest_hosts(least), (cut_short,) if cut_short else ())
    result = replace(result, merged=merged)
    return replace(result, preemptions=preemptions(packer)) if result.refused else result


def fresh(fleet: Fleet, *, contents: bool) -> tuple[Packer, Outline, Merged | None]:
    """A packing where nothing stands, what bounds it, and what was merged for it."""
    fewer = alike(fleet)
    if fewer is not None:
        packer, first = packed(fewer.up, contents=contents)
        if not unplaced(fewer.up, packer.state):
            least = whole_outline(fewer.down)
            least.cut_short = least.cut_short or first.cut_short
            return improved(own(fleet, packer.state), least.bound), least, fewer.said
    return *packed(fleet, contents=contents), None


def packed(fleet: Fleet, *, contents: bool) -> tuple[Packer, Outline]:
    """The best of several packings of a fleet, and what bounds them."""
    packer, least = best(fleet, whole_outline(fleet), contents=contents)
    if contents and not met(packer, least):
        packings, bound = by_nodes(fleet, least, packer, finished(least))
        packer, least = min([packer, *packings], key=key_of), replace(least, bound=bound)
    return packer, least


def best(fleet: Fleet, first: Outline, *, contents: bool) -> tuple[Packer, Outline]:
    """The better of packings from one outline or two (small fleets), and the one that bounds; of
    larger fleets with a part of the work where `contents` follow."""
    items = len(fleet.request)
    small, work = items <= SMALL, first_work(ruin_work(items), items, contents=contents)
    packer = improved(construct(fleet, first), first.bound, work)
    if met(packer, first) or not small:
        return packer, first
    second = whole_outline(fleet, whole=True)
    least = max(first, second, key=lambda each: each.bound)
    rival = improved(construct(fleet, second), least.bound)
    return min(packer, rival, key=key_of), least


def met(packer: Packer, least: Outline) -> bool:
    """Nothing can be better."""
    return packer.state.cost <= least.bound and not unplaced(packer.fleet, packer.state)


def finished(least: Outline) -> Callable[[Packer], Packer]:
    def finish(packer: Packer) -> Packer:
        settle(packer)
        return improved(packer, least.bound)

    return finish


def key_of(packer: Packer) -> tuple[Left, int, int]:
    """What is left over, the cost, the GPUs: less of each, in this order, is better."""
    state = packer.state
    return left_over(packer.fleet, unplaced(packer.fleet, state)), state.cost, state.gpus


def improved(packer: Packer, bound: int, work: int | None = None) -> Packer:
    """`work`: another than the usual one of ruin and recreate."""
    close_hosts(packer)
    usual = ruin_work(len(packer.fleet.request))
    Ruin(packer, seed=1).run(usual if work is None else work, bound)
    close_hosts(packer)
    return packer


def by_class(fleet: Fleet, items: list[int]) -> Items:
    classes: Items = {}
    for item in items:
        classes.setdefault(fleet.class_of[item], []).append(item)
    return classes


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
    for _ in range(LEFT_ROUNDS):
        left = insert_all(packer, unplaced(fleet, state))
        state.close_empty()
        if not left:
            return
        items = by_class(fleet, left)
        whole = len(left) <= LEFT_SMALL
        deal(state, outline(fleet, items, state.remaining(), whole=whole), items)
    insert_all(packer, unplaced(fleet, state))
    open_all(packer, unplaced(fleet, state))
    state.close_empty()
