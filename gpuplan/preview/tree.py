"""A preview as text, laid out like `pulumi preview`: a tree, the changes, a count."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gpuplan.preview import sections
from gpuplan.preview import urn as urns
from gpuplan.preview.comparing.compare import Comparison, Step
from gpuplan.preview.comparing.diff import Change
from gpuplan.preview.sections import INDENT, KIND_MARKS, MARKS, STYLES, View
from gpuplan.render.text import printable, width

LOCK = "🔒"
LEAST = 24  # columns for a type, beside names of any length


@dataclass(frozen=True, slots=True)
class _Row:
    step: Step
    lead: str
    info: tuple[str, ...]

    def label(self, columns: int) -> str:
        """The type and the lines that lead to it; without its first parts, where it is too wide."""
        kind = printable(self.step.resource.type)
        room = columns - width(self.lead)
        ends = (kind[at.end() :] for at in re.finditer(r"[:/.]", kind))
        if width(kind) > room:
            kind = next((f"…{end}" for end in ends if width(end) < room), kind)
        return f"{self.lead}{kind}"


def render(comparison: Comparison, view: View | None = None) -> str:
    """The whole answer; ends with a newline."""
    view = view or View()
    rows = [_Row(s, lead, tuple(_info(s))) for s, lead in _tree(comparison, view)]
    below = (sections.outputs, sections.messages, sections.notes, sections.counts)
    blocks = [list(_table(rows, view)), *(list(section(comparison, view)) for section in below)]
    return "\n\n".join("\n".join(b) for b in blocks if b) + "\n"


# --- the tree ------------------------------------------------------------------------------------


def _tree(comparison: Comparison, view: View) -> Iterator[tuple[Step, str]]:
    """Steps to show with the lines that lead to them: what changes, and what that stands under."""
    steps = {s.urn: s for s in comparison.steps}
    shown = set()
    for step in comparison.steps:
        if view.same or step.operation != "same" or step.renamed_from or step.notes:
            urn: str | None = step.urn
            while urn in steps and urn not in shown:
                shown.add(urn)
                urn = steps[urn].resource.parent
    children: dict[str | None, list[Step]] = {}
    for step in comparison.steps:
        if step.urn in shown:
            parent = step.resource.parent
            children.setdefault(parent if parent in shown else None, []).append(step)
    yield from _branches(children, None, "")


def _branches(
    children: dict[str | None, list[Step]], parent: str | None, lead: str
) -> Iterator[tuple[Step, str]]:
    below = children.get(parent, [])
    for step in below:
        last = step is below[-1]
        corner = "" if parent is None else "└─ " if last else "├─ "
        yield step, lead + corner
        deeper = "" if parent is None else "   " if last else "│  "
        yield from _branches(children, step.urn, lead + deeper)


def _info(step: Step) -> Iterator[str]:
    """What stands behind a row, most important first."""
    if step.blocked:
        yield f"{LOCK} protected: this would fail"
    elif step.resource.protect:
        yield LOCK
    if step.refused:
        yield f"cannot change: {', '.join(map(printable, step.refused))}: this would fail"
    if step.stateful and not step.blocked:
        yield "holds state that would be lost"
    if step.retained and not step.blocked:
        yield "the object itself is kept"
    yield from _causes(step)
    if step.resource.remote:
        yield "its provider adds resources that are not shown"
    yield from step.notes


def _causes(step: Step) -> Iterator[str]:
    if step.renamed_from:
        yield f"was {printable(urns.name_of(step.renamed_from))}"
    if step.reasons:
        yield f"[replaces: {', '.join(map(printable, step.reasons))}]"
    if step.changes:
        yield f"[diff: {','.join(_changed_properties(step.changes))}]"


def _changed_properties(changes: Iterable[Change]) -> list[str]:
    """`~spec`, `+data`: the top-level properties, each once."""
    kinds: dict[str, set[str]] = {}
    for change in changes:
        kind = change.kind if len(change.route) == 1 else "update"
        kinds.setdefault(str(change.route[0]), set()).add(kind)
    marks = {p: KIND_MARKS[k.pop()] if len(k) == 1 else "~" for p, k in kinds.items()}
    return [f"{mark}{printable(prop)}" for prop, mark in marks.items()]


def _table(rows: Sequence[_Row], view: View) -> Iterator[str]:
    if not rows:
        return
    names = [printable(r.step.resource.name) for r in rows]
    plans = [r.step.operation if r.step.operation != "same" else "" for r in rows]
    name_width = max([4, *map(width, names)])
    plan_width = max([4, *map(len, plans)])
    lock = 2 + width(LOCK) if any(row.info[:1] == (LOCK,) for row in rows) else 0
    room = max(LEAST, view.columns - 5 - 2 - name_width - 2 - plan_width - lock)
    labels = [row.label(room) for row in rows]
    type_width = max([4, *map(width, labels)])
    yield view.paint("bold", f"     {_cell('Type', type_width)}{_cell('Name', name_width)}Plan")
    for row, label, name, plan in zip(rows, labels, names, plans, strict=True):
        style = STYLES[row.step.operation]
        mark = view.paint(style, f" {MARKS[row.step.operation]}")
        body = _cell(f"{_cell(label, type_width)}{name}", type_width + 2 + name_width)
        planned = view.paint(style, plan)
        padding = " " * (plan_width - len(plan))
        head = f"{mark}  {body}{planned}"
        used = 5 + width(body) + len(plan)
        yield from _with_info(head, padding, used, row.info, view)
        yield from sections.below(row.step, view)


def _cell(text: str, wide: int) -> str:
    return text + " " * (wide - width(text) + 2 if width(text) <= wide else 2)


def _with_info(
    head: str, padding: str, used: int, info: Sequence[str], view: View
) -> Iterator[str]:
    """The row, with as much of `info` behind it as fits; the rest on lines of its own."""
    waiting = list(info)
    start = used + len(padding) + 2
    if waiting and start + width(waiting[0]) <= view.columns:
        line = waiting.pop(0)
        while waiting and start + width(line) + 2 + width(waiting[0]) <= view.columns:
            line += f"  {waiting.pop(0)}"
        yield f"{head}{padding}  {line}"
    else:
        yield head.rstrip()
    for text in waiting:
        yield INDENT + text
