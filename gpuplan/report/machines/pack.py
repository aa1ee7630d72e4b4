"""A packed fleet: the answer first, what is proven about it, what stands where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from gpuplan.fleet.problem import HostType, Merged, Moved, Placed, Problem, Result
from gpuplan.plan.serialize import to_tree
from gpuplan.render.text import COLUMNS, wrapped
from gpuplan.report.machines.layout import layouts, place
from gpuplan.report.machines.refusals import preempted, refusals
from gpuplan.units import MICROS, format_usd, plural, significant

LABEL = 16
LISTED = 12  # moves and refusals that are shown without --all
LINES = 48  # of the layout
CENT = 10_000  # micro-USD
USES = {
    "whole": "whole",
    "mig": "as MIG instances",
    "vgpu": "as equal vGPUs",
    "vgpu-mixed": "as vGPUs of mixed sizes",
    "time-slice": "in time slices",
}


def text(problem: Problem, result: Result, *, all_hosts: bool = False) -> str:
    lines = [*_head(problem, result)]
    if result.placed:
        lines += _proven(result)
        lines += _row("hosts", " · ".join(_hosts(problem, result)))
        lines += _row("GPUs", " · ".join(_gpus(problem, result)))
    growing = {(r.name, n) for r in problem.requests for n in range(r.count, r.count + r.growth)}
    few, many = (None, None) if all_hosts else (LISTED, LINES)
    lines += _section("no place for", list(refusals(problem, result, growing)), few)
    lines += _section("could be stopped", list(preempted(problem, result)), few)
    lines += _section("moves", [_moved(problem, m) for m in result.moved], few)
    lines += _section("layout", list(layouts(problem, result, folded=not all_hosts)), many)
    if result.merged:
        lines += _row("merged", _merged(result.merged))
    for name in result.cut_short:
        lines += _row("cut short", f"{name} ran into its safety limit: more may be possible")
    return "\n".join(lines) + "\n"


def _head(problem: Problem, result: Result) -> Iterator[str]:
    counts = {r.name: r.count for r in problem.requests}
    growth = sum(p.number >= counts[p.request] for p in result.placed)
    placed, wanted = len(result.placed) - growth, sum(counts.values())
    room = f" and room for {growth:,} more" if growth else ""
    hosts = plural(sum(n for _, n in result.hosts), "host")
    gpus = plural(len(used_gpus(result)), "GPU")
    placing = f"{placed:,} of {plural(wanted, 'item')}{room} on {gpus} of {hosts}"
    if result.placed:
        yield f"{placing}, {_usd(result.cost)}/h{_left_out(counts, result)}"
    else:
        yield f"0 of {plural(wanted, 'item')} fit"


def _left_out(counts: dict[str, int], result: Result) -> str:
    """`; no place for 3 items and room for 1 more`."""
    left = [n < counts[r.request] for r in result.refused for n in r.numbers]
    items, growth = left.count(True), left.count(False)
    parts = [plural(items, "item")] if items else []
    parts += [f"room for {growth:,} more"] if growth else []
    return f"; no place for {' and '.join(parts)}" if parts else ""


def _proven(result: Result) -> Iterator[str]:
    """The lower bound, and what a better packing could save at most."""
    over, least = result.cost - result.bound, plural(result.bound_hosts, "host")
    if over < CENT:
        saved = "nothing costs less" if over <= 0 else "nothing costs a cent less"
        these = " for what stands" if result.refused else ""
        text = f"{_usd(result.bound)}/h{these}: {saved}; {least} at least"
    else:
        hosts = f"as {significant(gap_hosts(result))} hosts cost on average"
        saved = f"{significant(100 * gap(result))} % ({_usd(over)}/h, {hosts})"
        text = f"{_usd(result.bound)}/h, {least}: a better packing saves at most {saved}"
    yield from _row("proven least", text)


def _merged(merged: Merged) -> str:
    """`276 kinds of items were packed as 60: …`."""
    rounded, cost = significant(100 * merged.rounded), significant(100 * merged.cost)
    return (
        f"{merged.before:,} kinds of items were packed as {merged.after:,}: cores, memory and "
        f"functions of those that differ little count as the most of any, up to {rounded} % of an "
        f"item's share of its host more; in the linear model all of it costs {cost} %, which is in "
        "what a better packing saves at most"
    )


def gap(result: Result) -> float:
    """Cost over the lower bound, as a part of it."""
    return result.cost / result.bound - 1 if result.bound else 0.0


def gap_hosts(result: Result) -> float:
    """The same in hosts, at what one of those in use costs on average."""
    hosts = sum(n for _, n in result.hosts)
    return (result.cost - result.bound) * hosts / result.cost if result.cost else 0.0


def _usd(micro: int) -> str:
    return format_usd(micro / MICROS)


def _hosts(problem: Problem, result: Result) -> Iterator[str]:
    used = dict(result.hosts)
    for kind in problem.hosts:
        limit = "" if kind.available is None else f" of {kind.available:,}"
        if count := used.get(kind.name, 0):
            yield f"{count:,}{limit} {kind.name} ({_usd(count * kind.cost)}/h)"
    idle = [
        f"{k.available:,} {k.name}" for k in problem.hosts if k.available and k.name not in used
    ]
    if idle:
        yield f"idle: {', '.join(idle)}"


def used_gpus(result: Result) -> dict[tuple[str, int, int], str]:
    """The GPUs with an item, and how each is used: whole or in a mode."""
    return {(p.host_type, p.host, g): p.mode or "whole" for p in result.placed for g in p.gpus}


def _gpus(problem: Problem, result: Result) -> Iterator[str]:
    model = {k.name: k.gpu for k in problem.hosts}
    counts = Counter((model[t], how) for (t, _, _), how in used_gpus(result).items())
    for name in sorted(set(model.values())):
        ways = [f"{n:,} {USES[how]}" for (gpu, how), n in sorted(counts.items()) if gpu == name]
        if ways:
            yield f"{name}: {', '.join(ways)}"


def _row(label: str, value: str) -> Iterator[str]:
    lead = " " * (LABEL + 2)
    lines = list(wrapped(value, COLUMNS - LABEL - 2)) or [""]
    yield f"  {label:<{LABEL}}{lines[0]}".rstrip()
    yield from (lead + line for line in lines[1:])


def _section(title: str, lines: list[str], limit: int | None) -> Iterator[str]:
    if not lines:
        return
    yield f"  {title}"
    for line in lines[:limit]:
        lead = len(line) - len(line.lstrip())
        more = "    " + " " * (lead + 11 if lead else 4)
        first, *rest = wrapped(f"    {line}", COLUMNS)
        yield first
        if rest:
            yield from (more + part for part in wrapped(" ".join(rest), COLUMNS - len(more)))
    if limit is not None and len(lines) > limit:
        yield f"    … {len(lines) - limit:,} more lines, by --all"


def _moved(problem: Problem, item: Moved) -> str:
    replica = f"{item.after.request} #{item.after.number}"
    before, after = (place(problem, p) for p in (item.before, item.after))
    return f"{replica}: {before} → {after}: {item.why}"


def tree(problem: Problem, result: Result) -> dict[str, Any]:
    """The same as plain data; `placed` is what --keep reads."""
    used, kinds = dict(result.hosts), {k.name: k for k in problem.hosts}
    counts = {r.name: r.count for r in problem.requests}
    growth = sum(p.number >= counts[p.request] for p in result.placed)
    hosts = sum(used.values())
    return {
        "items": sum(counts.values()),
        "placed_items": len(result.placed) - growth,
        "growth_items": growth,
        "gpus_used": len(used_gpus(result)),
        "hosts_used": hosts,
        "usd_per_hour": result.cost / MICROS,
        "bound_usd_per_hour": result.bound / MICROS,
        "bound_hosts": result.bound_hosts,
        "gap": round(gap(result), 6),
        "gap_usd_per_hour": (result.cost - result.bound) / MICROS,
        "gap_hosts": round(gap_hosts(result), 3),
        "hosts": [
            {
                "type": k.name,
                "gpu": k.gpu,
                "used": used.get(k.name, 0),
                "available": k.available,
                "usd_per_hour": k.cost / MICROS,
                "rented": None if k.place is None else ", ".join(k.place),
            }
            for k in problem.hosts
        ],
        "placed": [_placed(kinds[p.host_type], p) for p in result.placed],
        "refused": [to_tree(r) for r in result.refused],
        "preemptions": [
            {
                "placed": _placed(kinds[p.placed.host_type], p.placed),
                "stopped": [_placed(kinds[s.host_type], s) for s in p.stopped],
                "moved": [_moved_tree(kinds, m) for m in p.moved],
            }
            for p in result.preemptions
        ],
        "moved": [_moved_tree(kinds, m) for m in result.moved],
        "merged": to_tree(result.merged) if result.merged else None,
        "cut_short": list(result.cut_short),
    }


def _moved_tree(kinds: dict[str, HostType], item: Moved) -> dict[str, Any]:
    before, after = (_placed(kinds[p.host_type], p) for p in (item.before, item.after))
    return {"before": before, "after": after, "why": item.why}


def _placed(kind: HostType, item: Placed) -> dict[str, Any]:
    named = item.host < len(kind.names)
    return {**to_tree(item), **({"host_name": kind.names[item.host]} if named else {})}
