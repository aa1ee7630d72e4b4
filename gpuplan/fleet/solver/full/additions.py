"""What would take those that found no place, as everything else stands: hosts, or what one host
lacks of one resource. Each is tried on the packing, so it is enough; and no less of the same is."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.fleet.problem import Addition
from gpuplan.fleet.solver.chassis import Chassis
from gpuplan.fleet.solver.classes import Choice, Fleet
from gpuplan.fleet.solver.effort import LACKING_HOSTS
from gpuplan.fleet.solver.insert import on_host, pools_of
from gpuplan.fleet.solver.state import OpenHost, State

RESOURCES = (("cpu_cores", "cores"), ("host_memory", "bytes"), ("virtual_functions", "functions"))
MOST_ITEMS = 200  # of a request, for which hosts are counted


def additions(fleet: Fleet, state: State, items: list[int]) -> tuple[Addition, ...]:
    """Of one request's items that found no place: the cheapest hosts for all of them (where those
    are not too many to try), and the least of one resource of a host that takes one."""
    if fleet.class_of[items[0]] < 0:
        return ()
    return (*_hosts(fleet, state, items), *_resource(fleet, state, items[0]))


def _hosts(fleet: Fleet, state: State, items: list[int]) -> Iterator[Addition]:
    if len(items) > MOST_ITEMS:
        return
    kind = fleet.classes[fleet.class_of[items[0]]]
    types = dict.fromkeys(choice.chassis for choice in kind.choices)
    counts = [(_count(state, items, fleet.chassis[index]), index) for index in types]
    cost, number, index = min(
        (number * fleet.chassis[index].cost, number, index) for number, index in counts
    )
    yield Addition(
        host_type=fleet.chassis[index].host.name,
        resource="hosts",
        amount=number,
        unit="hosts",
        items=len(items),
        cost=cost,
    )


def _count(state: State, items: list[int], chassis: Chassis) -> int:
    """Hosts of a type that take all items, one after the other."""
    opened: list[OpenHost] = []
    state.begin()
    for item in items:
        if not any(_on(state, item, host) for host in opened):
            opened.append(_opened(state, item, chassis))
    state.undo()
    return len(opened)


def _opened(state: State, item: int, chassis: Chassis) -> OpenHost:
    kind = state.fleet.classes[state.fleet.class_of[item]]
    for owner in dict.fromkeys(owner for owner, _ in kind.pools):
        host = state.open(chassis.index, owner)
        if _on(state, item, host):
            return host
        state.close(host)
    raise AssertionError("a choice fits an empty host")


def _on(state: State, item: int, host: OpenHost) -> bool:
    if not state.may_stand(item, host):
        return False
    kind = state.fleet.classes[state.fleet.class_of[item]]
    for choice in kind.choices:
        if choice.chassis == host.chassis.index:
            for pool in pools_of(choice, kind):
                where = on_host(state, host, choice, pool) if pool[0] == host.owner else None
                if where is not None:
                    state.put(item, where)
                    return True
    return False


def _resource(fleet: Fleet, state: State, item: int) -> Iterator[Addition]:
    """The smallest part of what the item wants that one host lacks, where it lacks nothing else."""
    lacking = [
        (missing / wanted, host.id, n, missing)
        for host in list(state.hosts.values())[:LACKING_HOSTS]
        if state.may_stand(item, host)
        for choice in fleet.classes[fleet.class_of[item]].choices
        if choice.chassis == host.chassis.index
        for wanted, n, missing in _lacks(state, item, host, choice)
    ]
    if lacking:
        _, number, n, missing = min(lacking)
        host = state.hosts[number]
        resource, unit = RESOURCES[n]
        yield Addition(
            host_type=host.chassis.host.name,
            host=host.label,
            resource=resource,
            amount=missing,
            unit=unit,
            items=1,
        )


def _lacks(
    state: State, item: int, host: OpenHost, choice: Choice
) -> Iterator[tuple[int, int, int]]:
    """What a choice wants of a resource, which one, and how much more of it a node needs: the least
    that makes a place, found by trying with so much more."""
    kind = state.fleet.classes[state.fleet.class_of[item]]
    for node, left in enumerate(host.left):
        wanted = choice.on(min(choice.gpus, host.chassis.masks[node].bit_count()))
        short = [(w, n, w - f) for n, (w, f) in enumerate(zip(wanted, left, strict=True)) if w > f]
        if len(short) != 1:
            continue
        host.left[node] = tuple(map(max, wanted, left))  # type: ignore[assignment]
        fits = any(
            on_host(state, host, choice, pool)
            for pool in pools_of(choice, kind)
            if pool[0] == host.owner
        )
        host.left[node] = left
        if fits:
            yield short[0]
