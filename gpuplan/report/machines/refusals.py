"""Who found no place: what is short, what would be enough, and who could make room."""

from __future__ import annotations

from collections.abc import Container, Iterator

from gpuplan.fleet.problem import PRIORITIES, Addition, Problem, Refused, Result
from gpuplan.report.machines.layout import host_name, place
from gpuplan.units import MICROS, format_quantity, format_usd, plural

NEEDS = {"gpus": "GPU", "cpu_cores": "CPU core", "virtual_functions": "virtual function"}


def refusals(
    problem: Problem, result: Result, growing: Container[tuple[str, int]]
) -> Iterator[str]:
    """What each lacks, and what would take it."""
    for item in result.refused:
        enough = " or ".join(_enough(problem, item, each) for each in item.enough)
        would = f"; enough: {enough}" if enough else ""
        yield _refused(item, growing) + would


def _enough(problem: Problem, item: Refused, more: Addition) -> str:
    """`1 more gpu-node ($16.00/h)`, `2 more CPU cores on gpu-01, for one`."""
    if more.resource == "hosts":
        return (
            f"{more.amount:,.0f} more {more.host_type} ({format_usd((more.cost or 0) / MICROS)}/h)"
        )
    if more.resource == "host_memory":
        amount = f"{format_quantity(more.amount, 'B')} more of host memory"
    else:
        amount = plural(int(more.amount), f"more {NEEDS[more.resource]}")
    kind = next(k for k in problem.hosts if k.name == more.host_type)
    on = f"{amount} on {host_name(kind, more.host or 0)}"
    return f"{on}, for one" if len(item.numbers) > 1 else on


def preempted(problem: Problem, result: Result) -> Iterator[str]:
    """Who would make room for whom: a proposal for who decides, since what stands stays."""
    priority = {r.name: PRIORITIES[r.priority] for r in problem.requests}
    for each in result.preemptions:
        item = each.placed
        stopped = [
            f"{p.request} #{p.number} ({priority[p.request]}) on {place(problem, p)}"
            for p in each.stopped
        ]
        moved = [
            f"{m.before.request} #{m.before.number} moved: {place(problem, m.before)} → "
            f"{place(problem, m.after)}"
            for m in each.moved
        ]
        who = f"{item.request} #{item.number} ({priority[item.request]})"
        yield f"for {who} on {place(problem, item)}: {'; '.join([*stopped, *moved])}"


def _refused(item: Refused, growing: Container[tuple[str, int]]) -> str:
    later = all((item.request, n) in growing for n in item.numbers)
    items = f"{len(item.numbers):,} × {item.request}{' (growth)' * later}"
    count = len(item.numbers)
    in_all = item.resource == "gpus" and count > 1
    total = f"; {plural(count * int(item.requested), 'GPU')} in all" if in_all else ""
    return f"{items}: {_short(item)}{total}"


def _short(item: Refused) -> str:
    """What it needs, and what there is of it on the host type that came nearest."""
    kind = item.host_type or "any host"
    if item.resource == "gpu_partitions":
        return f"no GPU of {kind} has room for its part"
    if item.resource == "hosts" and not item.available:
        return f"no further {kind} can be had"
    if item.resource == "hosts":
        hosts = plural(int(item.requested), "host")
        return f"needs {hosts} without others of its group: {item.available:,.0f} of {kind}"
    if item.resource == "host_memory":
        needed, free = (format_quantity(v, "B") for v in (item.requested, item.available))
        return f"needs {needed} of host memory: {free} free at most on {kind}"
    needed = plural(int(item.requested), NEEDS[item.resource])
    free = f"{item.available:,.0f} free at most" if item.available else "none free"
    return f"needs {needed}: {free} on {kind}"
