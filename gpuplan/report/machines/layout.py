"""What stands on which GPU, host by host; hosts with the same layout are folded into one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.fleet.problem import HostType, Placed, Problem, Result
from gpuplan.plan.partitions import placed
from gpuplan.units import format_ranges

FoldedLine = tuple[tuple[int, ...], str]
NAMES = 3  # of folded hosts that are shown


def layouts(problem: Problem, result: Result, *, folded: bool) -> Iterator[str]:
    """Lines of each host, or, `folded`, of each group of equal ones."""
    counts = {r.name: r.count for r in problem.requests}
    hosts: dict[tuple[str, int], list[Placed]] = {}
    for item in result.placed:
        hosts.setdefault((item.host_type, item.host), []).append(item)
    for kind in problem.hosts:
        groups: dict[tuple[FoldedLine, ...], list[int]] = {}
        for (name, number), items in sorted(hosts.items()):
            if name == kind.name:
                lines = tuple(_gpus(items, counts, numbered=not folded))
                key = lines if folded else (*lines, ((number,), ""))
                groups.setdefault(key, []).append(number)
        for lines, numbers in groups.items():
            known = any(n < len(kind.names) for n in numbers)
            yield f"{_names(kind, numbers)}{f'  {kind.name}' * known}"
            yield from (f"  GPU {format_ranges(gpus):<6} {text}" for gpus, text in lines if text)


def _names(kind: HostType, numbers: Sequence[int]) -> str:
    shown = [host_name(kind, n) for n in numbers[:NAMES]]
    more = len(numbers) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more like these" if more else "")


def host_name(kind: HostType, number: int) -> str:
    """As the inventory calls it; a host that is bought by its type and number."""
    return kind.names[number] if number < len(kind.names) else f"{kind.name} #{number}"


def _gpus(
    items: Sequence[Placed], counts: dict[str, int], *, numbered: bool
) -> Iterator[FoldedLine]:
    """The content of each GPU or set of GPUs; GPUs that hold the same are one line."""
    content: dict[tuple[int, ...], list[Placed]] = {}
    for item in items:
        content.setdefault(item.gpus, []).append(item)
    alike: dict[str, list[int]] = {}
    lines: list[FoldedLine] = []
    for gpus, held in content.items():
        text = ", ".join(_words(held, counts, numbered=numbered))
        if len(gpus) > 1:
            lines.append((gpus, text))
        else:
            alike.setdefault(text, []).append(gpus[0])
    lines += ((tuple(sorted(numbers)), text) for text, numbers in alike.items())
    yield from sorted(lines)


def _words(held: Sequence[Placed], counts: dict[str, int], *, numbered: bool) -> Iterator[str]:
    """`3g.40gb@4 fleet/rag #2`, `1g.10gb@0-3 fleet/small #4-7`, `3 × A40-8C fleet/desk`."""
    alike: dict[tuple[str, str, bool], list[Placed]] = {}
    for item in sorted(held, key=lambda p: (p.start or 0, p.request, p.number)):
        growth = item.number >= counts[item.request]
        alike.setdefault((item.part or "whole", item.request, growth), []).append(item)
    for (part, request, growth), items in alike.items():
        starts = tuple(i.start for i in items if i.start is not None)
        times = f"{len(items)} × " if len(items) > 1 and not starts else ""
        number = f" #{format_ranges(tuple(i.number for i in items))}" if numbered else ""
        yield f"{times}{placed(part, starts)} {request}{number}{' (growth)' if growth else ''}"


def place(problem: Problem, item: Placed) -> str:
    """`gpu-01 GPU 3 3g.40gb@4`."""
    kinds = {k.name: k for k in problem.hosts}
    name = host_name(kinds[item.host_type], item.host)
    return f"{name} GPU {format_ranges(item.gpus)} {part(item)}".rstrip()


def part(item: Placed) -> str:
    if item.part is None:
        return ""
    return placed(item.part, () if item.start is None else (item.start,))
