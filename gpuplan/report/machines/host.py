"""A host as boxes of characters: NUMA nodes, switches, devices and what stands on them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gpuplan.plan.drawing import DeviceBox, GroupBox, HostDrawing, NodeBox
from gpuplan.render.text import COLUMNS, printable, shortened, width

LABEL = 11
_PIECES = re.compile(r"[^\s,]*(?:,+|\s+|$)")
_ASCII = str.maketrans("╭╮╰╯│─├┤┌┐└┘·–…×", "++++|-+++++++-.x")
LEGEND = {
    "PIX": "one PCIe switch",
    "PXB": "several PCIe switches",
    "PHB": "the processor",
    "NODE": "the processor's own interconnect",
    "SYS": "the link between processors",
}


def text(host: HostDrawing, *, ascii_only: bool = False) -> str:
    """At most 80 columns; `ascii_only` draws with + - |."""
    lines = [*_head(host)]
    for node in host.nodes:
        lines += _node(node)
    lines += _links(host)
    drawn = "\n".join(line.rstrip() for line in lines) + "\n"
    return drawn.translate(_ASCII) if ascii_only else drawn


def _head(host: HostDrawing) -> Iterator[str]:
    yield from _wrapped(printable(host.title), COLUMNS)
    yield from _facts(host.facts, COLUMNS - 2, "  ")


def _facts(facts: Sequence[tuple[str, str]], columns: int, pad: str = "") -> Iterator[str]:
    before = ""
    for label, value in facts:
        shown = "" if label == before else label
        before = label
        for number, line in enumerate(_wrapped(printable(value), columns - LABEL - 1)):
            yield f"{pad}{shown if number == 0 else '':<{LABEL}} {line}"


def _node(node: NodeBox) -> Iterator[str]:
    yield _edge("╭", "╮", node.title, COLUMNS)
    inside = COLUMNS - 4
    lines = [*_facts(node.facts, inside)]
    columns = _columns(node.groups)
    for group in node.groups:
        lines += _group(group, inside, columns)
    yield from (f"│ {_fit(line, inside)} │" for line in lines)
    yield _edge("╰", "╯", "", COLUMNS)


def _group(group: GroupBox, columns: int, widths: tuple[int, ...]) -> Iterator[str]:
    if not group.switch:
        for device in group.devices:
            yield from (f"  {line}" for line in _device(device, columns - 4, widths))
        return
    yield _edge("┌", "┐", f"PCIe switch {group.switch}", columns)
    for device in group.devices:
        for line in _device(device, columns - 4, widths):
            yield f"│ {_fit(line, columns - 4)} │"
    yield _edge("└", "┘", "", columns)


def _columns(groups: Sequence[GroupBox]) -> tuple[int, ...]:
    """Widths of name, product, address and size, the same in all boxes of a node."""
    rows = [(d.name, *d.words) for g in groups for d in g.devices]
    limits = (6, 26, 14, 24)
    return tuple(
        min(limit, max((width(printable(row[i])) for row in rows), default=0))
        for i, limit in enumerate(limits)
    )


def _device(device: DeviceBox, columns: int, widths: tuple[int, ...]) -> Iterator[str]:
    """One line; more where several share it."""
    words = (device.name, *device.words)
    row = "  ".join(_fit(printable(w), n) for w, n in zip(words, widths, strict=True) if n)
    shares = [printable(f"{s.part} {s.owner}".strip()) for s in device.shares]
    if not shares:
        yield row
        return
    room = columns - width(row) - 2
    yield f"{row}  {_fit(shares[0], room)}" if room > 16 else row
    for share in shares[1:] if room > 16 else shares:
        yield f"{'':<{min(width(row), columns // 2)}}  {share}"


def _links(host: HostDrawing) -> Iterator[str]:
    if not host.links:
        return
    yield "links"
    yield from _facts(host.links, COLUMNS - 2, "  ")
    yield from (f"  {line}" for line in _wrapped(legend(host.links), COLUMNS - 2))


def legend(links: Sequence[tuple[str, str]]) -> str:
    """What the kinds of links are; `NV18` is 18 NVLinks."""
    kinds = dict.fromkeys(kind for kind, _ in links)
    return " · ".join(f"{k}: {LEGEND.get(k, f'{k[2:]} NVLinks')}" for k in kinds)


def _edge(left: str, right: str, title: str, columns: int) -> str:
    shown = f" {printable(title)} " if title else ""
    shown = shortened(shown, columns - 4)
    return f"{left}─{shown}{'─' * (columns - 3 - width(shown))}{right}"


def _fit(text_: str, columns: int) -> str:
    """Exactly `columns` wide."""
    shown = shortened(text_, columns)
    return shown + " " * (columns - width(shown))


def _wrapped(words: str, columns: int) -> list[str]:
    """Lines broken at blanks and after commas; a longer word is cut into pieces."""
    lines, line = [], ""
    for piece in _PIECES.findall(words) or [""]:
        if line and width(line) + width(piece.rstrip()) > columns:
            lines.append(line.rstrip())
            line = ""
        rest = piece
        while width(rest.rstrip()) > columns:
            lines.append(rest[: columns // 2])
            rest = rest[columns // 2 :]
        line += rest
    return [*lines, line.rstrip()] if line.strip() or not lines else lines
