"""Contents of nodes onto real hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gpuplan.fleet.solver.effort import SEAT_LOOKS
from gpuplan.fleet.solver.insert import on_host
from gpuplan.fleet.solver.nodes.contents import Content, Item, NodeSite
from gpuplan.fleet.solver.state import OpenHost, State

Queues = dict[int, list[int]]  # items of each class that have no place yet
# GPU and start, by pool, geometry, part
Starts = dict[tuple[object, ...], list[tuple[int, int | None]]]


def seat(state: State, chosen: Sequence[tuple[Content, int]], queues: Queues) -> None:
    """Each content so many times. Who finds nobody of its class left, or a neighbour that it must
    not have, leaves its slot empty."""
    waiting: dict[NodeSite, list[Content]] = {}
    for content, number in chosen:
        waiting.setdefault(content.site, []).extend([content] * number)
    owners = dict.fromkeys((chassis, owner) for chassis, owner, _ in waiting)
    for chassis, owner in owners:
        kinds = {site[2]: each for site, each in waiting.items() if site[:2] == (chassis, owner)}
        while any(kinds.values()) and state.can_open(chassis):
            _fill(state, state.open(chassis, owner), kinds, queues)
    state.close_empty()


def _fill(state: State, host: OpenHost, kinds: dict[int, list[Content]], queues: Queues) -> None:
    """The next contents of each kind of node; one that spans nodes takes all of its kind."""
    for kind, contents in kinds.items():
        nodes = [node for node, other in enumerate(host.chassis.kind_of) if other == kind]
        while nodes:
            fit = [n for n, content in enumerate(contents) if content.spans <= len(nodes)]
            if not fit:
                break
            content = contents.pop(_suiting(state, host, contents, fit[:SEAT_LOOKS], queues))
            if content.spans > 1:
                nodes = nodes[content.spans :]
                _across(state, host, content.items[0], queues)
            else:
                _node(state, host, nodes.pop(0), content, queues)


def _suiting(
    state: State, host: OpenHost, contents: list[Content], fit: list[int], queues: Queues
) -> int:
    """Of the first contents the one of which most can stand beside what is on the host."""
    if not host.items:
        return fit[0]
    free: dict[int, int] = {}

    def standing(kind: int) -> int:
        if kind not in free:
            free[kind] = _free(state, host, queues.get(kind, []))
        return free[kind]

    def short(n: int) -> int:
        counts = contents[n].counts.items()
        return sum(max(0, each - standing(kind)) for kind, each in counts)

    return min(fit, key=lambda n: (short(n), n))


def _free(state: State, host: OpenHost, queue: list[int]) -> int:
    """Items of a class that may stand on the host together."""
    spread = [state.fleet.spread[item] for item in queue]
    groups = {group for group in spread if group >= 0}
    return spread.count(-1) + len(groups - host.groups)


def _next(state: State, host: OpenHost, queue: list[int]) -> int | None:
    """One of a class that may stand on the host; of the spread group that has most left, since
    each of those needs a host of its own."""
    spread = state.fleet.spread
    if queue and state.fleet.class_of[queue[0]] not in state.spreads:
        return queue.pop(0)
    sizes = Counter(spread[item] for item in queue if spread[item] >= 0)
    fit = [(-max(1, sizes[spread[i]]), n) for n, i in enumerate(queue) if state.may_stand(i, host)]
    return queue.pop(min(fit)[1]) if fit else None


def _across(state: State, host: OpenHost, item: Item, queues: Queues) -> None:
    number = _next(state, host, queues.get(item.kind, []))
    if number is None:
        return
    where = on_host(state, host, item.choice, item.pool)
    if where is None:
        queues[item.kind].append(number)
    else:
        state.put(number, where)


def _node(state: State, host: OpenHost, node: int, content: Content, queues: Queues) -> None:
    whole = [item for item in content.items if item.choice.whole]
    for item in sorted(whole, key=lambda i: -i.choice.gpus):
        for _ in range(item.number):
            mask = host.chassis.pick(host.free & host.chassis.masks[node], item.choice.gpus)
            if mask:
                _put(state, (host, node), item, queues, (mask, None))
    slots = _slots(host, node, content)
    for item in content.items:
        free = slots.get((item.pool, item.choice.geometry, item.choice.part), [])
        for _ in range(item.number):
            if free and _put(state, (host, node), item, queues, free[0]):
                free.pop(0)


def _put(
    state: State, on: tuple[OpenHost, int], item: Item, queues: Queues, at: tuple[int, int | None]
) -> bool:
    """One more of a class on GPUs of a node, from a start; False where nobody of it may."""
    host, node = on
    if not host.holds(node, item.choice.wanted):
        return False
    number = _next(state, host, queues.get(item.kind, []))
    if number is not None:
        state.put(number, (item.choice, host.id, *at, item.pool))
    return number is not None


def _slots(host: OpenHost, node: int, content: Content) -> Starts:
    """A GPU for each layout, and where its slots are."""
    slots: Starts = {}
    free = host.free & host.chassis.masks[node]
    for shared in content.shared:
        mask = host.chassis.single(free)
        if not mask:
            break
        free &= ~mask
        for part, start in shared.slots:
            slots.setdefault((shared.pool, shared.geometry, part), []).append((mask, start))
    return slots
