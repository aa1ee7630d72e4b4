"""The packing, in the words of the problem."""

from __future__ import annotations

from gpuplan.fleet.problem import Moved, Placed, Result
from gpuplan.fleet.solver.cards import Cards, assign_cards
from gpuplan.fleet.solver.classes import Fleet
from gpuplan.fleet.solver.full.refusals import refusals
from gpuplan.fleet.solver.improve import Packer
from gpuplan.fleet.solver.state import State


def answer(packer: Packer, bound: int, bound_hosts: int, cut_short: tuple[str, ...]) -> Result:
    fleet, state = packer.fleet, packer.state
    known = ((fleet.items.get((p.request, p.number)), p) for p in fleet.problem.kept)
    before = {item: placed for item, placed in known if item is not None}
    stay = {i: p for i, p in before.items() if state.spot(i) == state.kept.get(i, ())}
    cards = assign_cards(state, stay)
    placed = {
        item: placed_at(fleet, state, item, cards)
        for item, where in enumerate(state.where)
        if where is not None
    }
    moved = tuple(
        Moved(before=before[item], after=placed[item], why=_why(packer, before[item], item))
        for item in sorted(before)
        if item in placed and item not in stay and not fleet.is_growth(item)
    )
    used = [(chassis.host.name, len(state.labels[chassis.index])) for chassis in fleet.chassis]
    return Result(
        placed=tuple(placed.values()),
        refused=refusals(fleet, state),
        moved=moved,
        hosts=tuple((name, number) for name, number in used if number),
        cost=state.cost,
        bound=min(bound, state.cost),
        bound_hosts=min(bound_hosts, len(state.hosts)),
        cut_short=cut_short,
    )


def placed_at(fleet: Fleet, state: State, item: int, cards: Cards | None = None) -> Placed:
    """Where an item stands; without its network cards unless they are given."""
    where = state.where[item]
    assert where is not None, "not placed"
    choice, number, mask, start, _ = where
    host = state.hosts[number]
    mode = part = None
    if not choice.whole:
        geometry = fleet.geometries[choice.geometry]
        mode, part = geometry.mode.name, geometry.parts[choice.part].name
    gpus = (n for g, n in enumerate(host.chassis.numbers) if mask >> g & 1)
    return Placed(
        request=fleet.problem.requests[fleet.request[item]].name,
        number=fleet.number[item],
        host_type=host.chassis.host.name,
        host=host.label,
        gpus=tuple(sorted(gpus)),
        mode=mode,
        part=part,
        start=start,
        cards=(cards or {}).get(item, ()),
    )


def _why(packer: Packer, before: Placed, item: int) -> str:
    if item not in packer.state.kept:
        return f"its place on {before.host_type} {before.host} does not suit it any more"
    chassis, label = packer.state.kept[item][:2]
    if label in packer.state.labels[chassis]:
        return f"makes room on {before.host_type} {before.host}"
    return f"{before.host_type} {before.host} is given back"
