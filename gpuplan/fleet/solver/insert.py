"""One item into the hosts in use, or into a new one: tightest hole of the cheapest kind first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from gpuplan.fleet.solver.classes import Choice, Class, Pool
from gpuplan.fleet.solver.effort import INSERT_LOOKS
from gpuplan.fleet.solver.state import OpenHost, State, Where

Ranked = Sequence[tuple[Choice, Pool]]


def ranked(kind: Class) -> list[tuple[Choice, Pool]]:
    """A class's choices with the pools for each, cheapest share first."""
    return [(choice, pool) for choice in kind.choices for pool in pools_of(choice, kind)]


def pools_of(choice: Choice, kind: Class) -> tuple[Pool, ...]:
    """Whole GPUs belong to nobody else anyhow: only the host's owner counts."""
    if not choice.whole:
        return kind.pools
    return tuple(dict.fromkeys((owner, None) for owner, _ in kind.pools))


def insert(state: State, item: int, choices: Ranked) -> bool:
    """Into a hole of the hosts in use; False where none is."""
    for choice, pool in choices:
        where = find(state, item, choice, pool)
        if where is not None:
            state.put(item, where)
            return True
    return False


def open_for(state: State, item: int, choices: Ranked) -> bool:
    """Into a new host: of the type with the cheapest share that can still be had."""
    for choice, pool in choices:
        if state.can_open(choice.chassis):
            host = state.open(choice.chassis, pool[0])
            where = on_host(state, host, choice, pool)
            if where is not None:
                state.put(item, where)
                return True
            state.close(host)
    return False


def find(state: State, item: int, choice: Choice, pool: Pool) -> Where | None:
    if choice.whole:
        return _find_whole(state, item, choice, pool)
    return _find_shared(state, item, choice, pool) or _find_free(state, item, choice, pool)


def _find_shared(state: State, item: int, choice: Choice, pool: Pool) -> Where | None:
    """A GPU that others share already; one that this fills best."""
    bucket = state.shared.get((choice.chassis, *pool, choice.geometry))
    if not bucket:
        return None
    state.work += 1
    geometry, fit = state.fleet.geometries[choice.geometry], []
    for now, gpus in bucket.items():
        if gpus:
            added = geometry.add(now, choice.part)
            if added is not None:
                fit.append((geometry.value(added[0]), now, added[1]))
    for _, now, start in sorted(fit):
        for number, gpu in islice(bucket[now], INSERT_LOOKS):
            state.work += 1
            host = state.hosts[number]
            if host.holds(host.chassis.node_of[gpu], choice.wanted) and state.may_stand(item, host):
                return choice, host.id, 1 << gpu, start, pool
    return None


def _nodes(
    state: State, chassis: int, owner: str | None, least: int
) -> Iterator[tuple[OpenHost, int]]:
    """Nodes with at least so many free GPUs, the fullest first."""
    lists = state.nodes.get((chassis, owner))
    if not lists:
        return
    state.work += 1
    for free in range(least, state.fleet.chassis[chassis].gpus + 1):
        nodes = lists.get(free)
        if nodes:
            for number, node in islice(nodes, INSERT_LOOKS):
                state.work += 1
                yield state.hosts[number], node


def _find_free(state: State, item: int, choice: Choice, pool: Pool) -> Where | None:
    """A GPU that is free, on the fullest node."""
    added = state.fleet.geometries[choice.geometry].add(0, choice.part)
    assert added is not None, "a choice fits an empty GPU"
    for host, node in _nodes(state, choice.chassis, pool[0], 1):
        if host.holds(node, choice.wanted) and state.may_stand(item, host):
            mask = host.chassis.single(host.free & host.chassis.masks[node])
            return choice, host.id, mask, added[1], pool
    return None


def _find_whole(state: State, item: int, choice: Choice, pool: Pool) -> Where | None:
    chassis = state.fleet.chassis[choice.chassis]
    if chassis.within_node(choice.gpus):
        for host, node in _nodes(state, choice.chassis, pool[0], choice.gpus):
            if host.holds(node, choice.wanted) and state.may_stand(item, host):
                mask = chassis.pick(host.free & chassis.masks[node], choice.gpus)
                if mask:
                    return choice, host.id, mask, None, pool
    return _find_span(state, item, choice, pool)


def _find_span(state: State, item: int, choice: Choice, pool: Pool) -> Where | None:
    chassis = state.fleet.chassis[choice.chassis]
    if not chassis.spans(chassis.mask, choice.gpus):
        return None
    for host, _ in _nodes(state, choice.chassis, pool[0], 1):
        state.work += 2
        mask = _span(host, choice) if state.may_stand(item, host) else 0
        if mask:
            return choice, host.id, mask, None, pool
    return None


def _span(host: OpenHost, choice: Choice) -> int:
    for mask in host.chassis.spans(host.free, choice.gpus):
        if all(host.holds(j, choice.on(n)) for j, n in host.chassis.parts_of(mask)):
            return mask
    return 0


def on_host(state: State, host: OpenHost, choice: Choice, pool: Pool) -> Where | None:
    """A place on just this host."""
    if not choice.whole:
        return _shared_on(state, host, choice, pool) or _free_on(state, host, choice, pool)
    if host.chassis.within_node(choice.gpus):
        for node, gpus in enumerate(host.chassis.masks):
            mask = host.chassis.pick(host.free & gpus, choice.gpus)
            if mask and host.holds(node, choice.wanted):
                return choice, host.id, mask, None, pool
    mask = _span(host, choice)
    return (choice, host.id, mask, None, pool) if mask else None


def _shared_on(state: State, host: OpenHost, choice: Choice, pool: Pool) -> Where | None:
    geometry = state.fleet.geometries[choice.geometry]
    fit = []
    for gpu, now in enumerate(host.gpu_state):
        if (host.gpu_mode[gpu], host.gpu_owner[gpu]) != (choice.geometry, pool[1]):
            continue
        added = geometry.add(now, choice.part)
        if added is not None and host.holds(host.chassis.node_of[gpu], choice.wanted):
            fit.append((geometry.value(added[0]), gpu, added[1]))
    if not fit:
        return None
    _, gpu, start = min(fit)
    return choice, host.id, 1 << gpu, start, pool


def _free_on(state: State, host: OpenHost, choice: Choice, pool: Pool) -> Where | None:
    added = state.fleet.geometries[choice.geometry].add(0, choice.part)
    assert added is not None, "a choice fits an empty GPU"
    fit = [
        ((host.free & gpus).bit_count(), node)
        for node, gpus in enumerate(host.chassis.masks)
        if host.free & gpus and host.holds(node, choice.wanted)
    ]
    if not fit:
        return None
    mask = host.chassis.single(host.free & host.chassis.masks[min(fit)[1]])
    return choice, host.id, mask, added[1], pool
