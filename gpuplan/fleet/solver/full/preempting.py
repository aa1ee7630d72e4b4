"""A proposal, not a packing: who of those that stand would be stopped or moved for who has no place
and a higher priority. What stands stays until somebody decides."""

from __future__ import annotations

from gpuplan.fleet.problem import Moved, Placed, Preemption
from gpuplan.fleet.solver.answer import placed_at
from gpuplan.fleet.solver.effort import PREEMPTED_HOSTS
from gpuplan.fleet.solver.full.yielding import Left, left_over, order_of, placed_on
from gpuplan.fleet.solver.improve import Packer, unplaced
from gpuplan.fleet.solver.state import OpenHost

MOST_PROPOSALS = 100

Plan = tuple[Left, int, int]  # GPUs that are stopped, by priority; moves; host


def preemptions(packer: Packer) -> tuple[Preemption, ...]:
    """For items of the highest priority first, each as if the ones before were done. The packing
    is not what it was afterwards. Room for growth comes last, so nobody leaves for it."""
    fleet, proposals = packer.fleet, list[Preemption]()
    failed: set[tuple[int, int]] = set()
    waiting = sorted(unplaced(fleet, packer.state), key=lambda item: order_of(fleet, item))
    for item in waiting:
        kind = (fleet.class_of[item], fleet.rank(item))
        if kind in failed or len(proposals) == MOST_PROPOSALS:
            continue
        best = _best(packer, item)
        if best is None:
            failed.add(kind)
        else:
            proposals.append(_carried_out(packer, item, packer.state.hosts[best[2]]))
    return tuple(proposals)


def _best(packer: Packer, item: int) -> Plan | None:
    """The host where the least is stopped: of the lowest priorities, fewest GPUs, fewest moves."""
    state = packer.state
    kinds = {choice.chassis for choice in packer.fleet.classes[packer.fleet.class_of[item]].choices}
    hosts = [
        (left_over(packer.fleet, lower), host.id)
        for host in state.hosts.values()
        if host.chassis.index in kinds and (lower := _lower(packer, item, host))
    ]
    plans: list[Plan] = []
    for _, number in sorted(hosts)[:PREEMPTED_HOSTS]:
        state.begin()
        gone = _make_room(packer, item, state.hosts[number])
        if gone is not None:
            stopped = [other for other in gone if state.where[other] is None]
            plans.append((left_over(packer.fleet, stopped), len(gone), number))
        state.undo()
    return min(plans, default=None)


def _lower(packer: Packer, item: int, host: OpenHost) -> list[int]:
    """Those of lower priority on a host, the least first."""
    fleet = packer.fleet
    lower = [other for other in host.items if fleet.rank(other) < fleet.rank(item)]
    return sorted(lower, key=lambda other: order_of(fleet, other), reverse=True)


def _make_room(packer: Packer, item: int, host: OpenHost) -> list[int] | None:
    """The item on the host; who left for it, of whom some stand elsewhere now."""
    state, gone = packer.state, list[int]()
    for other in _lower(packer, item, host):
        state.remove(other)
        gone.append(other)
        if state.may_stand(item, host) and placed_on(packer, item, host):
            for left in reversed(gone):
                packer.insert(left)
            return gone
    return None


def _carried_out(packer: Packer, item: int, host: OpenHost) -> Preemption:
    fleet, state = packer.fleet, packer.state
    before = {other: placed_at(fleet, state, other) for other in _lower(packer, item, host)}
    gone = _make_room(packer, item, host)
    assert gone is not None, "it was tried before"
    stopped: list[Placed] = [before[other] for other in gone if state.where[other] is None]
    after = placed_at(fleet, state, item)
    why = f"makes room for {after.request} #{after.number}"
    moved = [
        Moved(before=before[other], after=placed_at(fleet, state, other), why=why)
        for other in gone
        if state.where[other] is not None and placed_at(fleet, state, other) != before[other]
    ]
    return Preemption(placed=after, stopped=tuple(stopped), moved=tuple(moved))
