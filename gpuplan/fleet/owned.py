"""Hosts that are there before equal ones that would be bought: both cost the packer the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from gpuplan.fleet.problem import Addition, HostType, Placed, Preemption, Problem, Result

HostNumber = tuple[str, int]


def own_first(problem: Problem, result: Result) -> Result:
    """The same packing. Hosts that something stands on already are left as they are."""
    standing = {(p.host_type, p.host) for p in problem.kept}
    used = {(p.host_type, p.host) for p in result.placed}
    to = dict(_exchanged(problem, used, standing))
    if not to:
        return result
    counts = Counter(dict(result.hosts))
    for old, new in to.items():
        counts[old[0]] -= 1
        counts[new[0]] += 1
    return replace(
        result,
        placed=tuple(_on(p, to) for p in result.placed),
        moved=tuple(replace(m, after=_on(m.after, to)) for m in result.moved),
        refused=tuple(
            replace(r, enough=tuple(_added(a, to) for a in r.enough)) for r in result.refused
        ),
        preemptions=tuple(_preempting(p, to) for p in result.preemptions),
        hosts=tuple((k.name, counts[k.name]) for k in problem.hosts if counts[k.name]),
    )


def _exchanged(
    problem: Problem, used: set[HostNumber], standing: set[HostNumber]
) -> Iterator[tuple[HostNumber, HostNumber]]:
    """Bought hosts, the last ones first, each with a host that is there and not used."""
    for bought in (k for k in problem.hosts if k.available is None):
        free = [
            (kind.name, n)
            for kind in problem.hosts
            if kind.available is not None and _plain(kind) == _plain(bought)
            for n in range(kind.available)
            if (kind.name, n) not in used | standing
        ]
        taken = sorted((h for h in used - standing if h[0] == bought.name), reverse=True)
        yield from zip(taken, free, strict=False)


def _plain(kind: HostType) -> HostType:
    return replace(kind, name="", available=None, names=(), place=None)


def _added(item: Addition, to: dict[HostNumber, HostNumber]) -> Addition:
    if item.host is None:
        return item
    kind, host = to.get((item.host_type, item.host), (item.host_type, item.host))
    return replace(item, host_type=kind, host=host)


def _preempting(item: Preemption, to: dict[HostNumber, HostNumber]) -> Preemption:
    return replace(
        item,
        placed=_on(item.placed, to),
        stopped=tuple(_on(p, to) for p in item.stopped),
        moved=tuple(
            replace(m, before=_on(m.before, to), after=_on(m.after, to)) for m in item.moved
        ),
    )


def _on(item: Placed, to: dict[HostNumber, HostNumber]) -> Placed:
    kind, host = to.get((item.host_type, item.host), (item.host_type, item.host))
    return replace(item, host_type=kind, host=host)
