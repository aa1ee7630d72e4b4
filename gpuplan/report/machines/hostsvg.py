"""Hosts as one SVG: every coordinate is made here, the template prints rectangles and texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gpuplan.frozen import record
from gpuplan.plan.drawing import DeviceBox, GroupBox, HostDrawing, NodeBox
from gpuplan.render.environments import render
from gpuplan.render.text import printable, shortened
from gpuplan.render.xml import legal
from gpuplan.report.chart import Label
from gpuplan.report.machines.host import legend

WIDTH, GAP, PAD, LINE = 980, 12, 8, 16
CHARACTER = 6.7  # pixels of a monospace character at 11 px: 0.602 em, and a little more
COLUMN = (WIDTH - 3 * GAP) // 2
BASELINE = 12  # from a line's top


@record
class Rectangle:
    x: int
    y: int
    width: int
    height: int
    style: str


@dataclass(slots=True)
class Canvas:
    """Rectangles in drawing order, texts above them."""

    boxes: list[Rectangle] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)

    def box(self, x: int, y: int, size: tuple[int, int], style: str) -> int:
        """Reserve a place in the order for a rectangle; its number."""
        self.boxes.append(Rectangle(x=x, y=y, width=size[0], height=size[1], style=style))
        return len(self.boxes) - 1

    def close(self, number: int, bottom: int) -> None:
        """Let rectangle `number` reach down to `bottom`."""
        box = self.boxes[number]
        height = bottom - box.y
        self.boxes[number] = Rectangle(
            x=box.x, y=box.y, width=box.width, height=height, style=box.style
        )

    def label(self, x: int, y: int, text: str, columns: int, style: str = "") -> None:
        """A line whose top is `y`, cut to `columns` pixels."""
        shown = shortened(legal(printable(text)), int(columns / CHARACTER))
        self.labels.append(Label(x=x, y=y + BASELINE, text=shown, style=style))


def svg(hosts: Sequence[HostDrawing]) -> str:
    canvas, bottom = Canvas(), GAP
    for host in hosts:
        bottom = _host(canvas, host, bottom) + GAP
    return render(
        "xml",
        "inventory/host.svg.j2",
        width=WIDTH,
        height=bottom,
        title=legal(printable(", ".join(h.title for h in hosts))),
        description=legal(printable("; ".join(map(described, hosts)))),
        boxes=canvas.boxes,
        labels=canvas.labels,
    )


def described(host: HostDrawing) -> str:
    """What a person hears who does not see the drawing."""
    kinds = {"gpu": "GPUs", "nic": "network cards", "nvme": "drives"}
    devices = [d for n in host.nodes for g in n.groups for d in g.devices]
    counts = [(sum(d.kind == k for d in devices), noun) for k, noun in kinds.items()]
    words = [f"{len(host.nodes)} groups of NUMA nodes", *(f"{n} {k}" for n, k in counts if n)]
    taken = [
        f"{d.name}: {', '.join(s.owner or s.part for s in d.shares)}" for d in devices if d.shares
    ]
    return f"{host.title} has {', '.join(words)}" + (f"; {'; '.join(taken)}" if taken else "")


def _host(canvas: Canvas, host: HostDrawing, top: int) -> int:
    canvas.label(GAP, top, host.title, (WIDTH - 2 * GAP) * 11 // 15, "title")
    top += LINE + 6
    top = _facts(canvas, host.facts, (GAP, top), WIDTH - 2 * GAP)
    for first in range(0, len(host.nodes), 2):
        pair = host.nodes[first : first + 2]
        wide = COLUMN if len(pair) == 2 or first else WIDTH - 2 * GAP
        ends = [
            _node(canvas, node, (GAP + place * (COLUMN + GAP), top + PAD), wide)
            for place, node in enumerate(pair)
        ]
        top = max(ends)
    if host.links:
        top = _facts(canvas, host.links, (GAP, top + PAD), WIDTH - 2 * GAP)
        canvas.label(GAP, top, legend(host.links), WIDTH - 2 * GAP, "quiet")
        top += LINE
    return top


def _facts(canvas: Canvas, facts: Sequence[tuple[str, str]], at: tuple[int, int], wide: int) -> int:
    """Label and text in each line; the line below them."""
    x, y = at
    for name, value in facts:
        canvas.label(x, y, name, 76, "quiet")
        canvas.label(x + 80, y, value, wide - 80)
        y += LINE
    return y


def _node(canvas: Canvas, node: NodeBox, at: tuple[int, int], wide: int) -> int:
    x, y = at
    number = canvas.box(x, y, (wide, 0), "node")
    canvas.label(x + PAD, y + PAD, node.title, wide - 2 * PAD, "head")
    bottom = _facts(canvas, node.facts, (x + PAD, y + PAD + LINE), wide - 2 * PAD)
    for group in node.groups:
        bottom = _group(canvas, group, (x + PAD, bottom + PAD), wide - 2 * PAD)
    canvas.close(number, bottom + PAD)
    return bottom + PAD


def _group(canvas: Canvas, group: GroupBox, at: tuple[int, int], wide: int) -> int:
    x, y = at
    if not group.switch:
        for device in group.devices:
            y = _device(canvas, device, (x, y), wide) + 4
        return y - 4
    number = canvas.box(x, y, (wide, 0), "switch")
    canvas.label(x + PAD, y + 4, f"PCIe switch {group.switch}", wide - 2 * PAD, "quiet")
    y += LINE + 6
    for device in group.devices:
        y = _device(canvas, device, (x + PAD, y), wide - 2 * PAD) + 4
    canvas.close(number, y + 4)
    return y + 4


def _device(canvas: Canvas, device: DeviceBox, at: tuple[int, int], wide: int) -> int:
    x, y = at
    number = canvas.box(x, y, (wide, 0), device.kind)
    words = "  ".join(w for w in (device.name, *device.words) if w)
    canvas.label(x + 6, y + 3, words, wide - 12)
    y += LINE + 4
    for share in device.shares:
        canvas.box(x + 6, y, (wide - 12, LINE), "share")
        text = f"{share.part}  {share.owner}".strip()
        canvas.label(x + 12, y + 1, text, wide - 24)
        y += LINE + 3
    bottom = y + 2 if device.shares else y + 1
    canvas.close(number, bottom)
    return bottom
