"""The contents of the nodes of a packing."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.fleet.solver.classes import Pool
from gpuplan.fleet.solver.nodes.contents import Content, Item, Shared, Slot
from gpuplan.fleet.solver.state import OpenHost, State


def contents_of(state: State) -> Iterator[Content]:
    """Each once; nodes with a part of a workload that stands on several are left out."""
    contents: dict[Content, None] = {}
    for host in state.hosts.values():
        for node in range(len(host.chassis.masks)):
            content = _content(state, host, node)
            if content is not None:
                contents[content] = None
    yield from contents


def _content(state: State, host: OpenHost, node: int) -> Content | None:
    mine = host.chassis.masks[node]
    numbers: dict[tuple[int, int, Pool], Item] = {}
    slots: dict[int, list[Slot]] = {}
    shared: dict[int, tuple[Pool, int]] = {}
    for item in host.items:
        where = state.where[item]
        assert where is not None, "a host lists who stands on it"
        choice, _, mask, start, pool = where
        if not mask & mine:
            continue
        if mask & ~mine:
            return None
        kind = state.fleet.class_of[item]
        known = numbers.get((kind, id(choice), pool))
        number = 1 if known is None else known.number + 1
        numbers[kind, id(choice), pool] = Item(kind, choice, pool, number)
        if not choice.whole:
            slots.setdefault(mask, []).append((choice.part, start))
            shared[mask] = (pool, choice.geometry)
    site = (host.chassis.index, host.owner, host.chassis.kind_of[node])
    gpus = sorted(((*shared[mask], tuple(sorted(each))) for mask, each in slots.items()), key=str)
    items = sorted(numbers.values(), key=lambda i: (i.kind, i.choice.option, str(i.pool)))
    made = tuple(Shared(pool, geometry, each) for pool, geometry, each in gpus)
    return Content(site, tuple(items), made) if items else None
