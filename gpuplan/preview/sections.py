"""What stands beside the tree of a preview: details, differences, outputs, notes, counts."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gpuplan.preview import urn as urns
from gpuplan.preview.comparing.compare import Comparison, Operation, Step
from gpuplan.preview.comparing.diff import Change
from gpuplan.preview.registered import Registered
from gpuplan.preview.values import displayed, leaves, route_text
from gpuplan.render.text import printable, width
from gpuplan.units import plural

MARKS: dict[Operation, str] = {
    "same": "  ",
    "create": "+ ",
    "import": "= ",
    "update": "~ ",
    "replace": "+-",
    "delete": "- ",
}
STYLES: dict[Operation, str] = {
    "same": "",
    "create": "green",
    "import": "green",
    "update": "yellow",
    "replace": "bold yellow",
    "delete": "red",
}
KIND_MARKS = {"add": "+", "delete": "-", "update": "~"}
_COUNTED: tuple[Operation, ...] = ("create", "import", "update", "delete", "replace")
INDENT = " " * 9
LONGEST_VALUE = 400

Paint = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class View:
    """What to show beside the tree. `paint` wraps text in a style, for terminals."""

    columns: int = 80
    urns: bool = False
    details: bool = False
    diff: bool = False
    same: bool = False
    paint: Paint = lambda _style, text: text


def below(step: Step, view: View) -> Iterator[str]:
    resource = step.resource
    if view.urns or view.details:
        yield view.paint("dim", f"{INDENT}{printable(resource.urn)}")
    if view.details:
        yield from (view.paint("dim", INDENT + line) for line in _details(step))
    if view.diff:
        yield from _difference(step, view)


def _details(step: Step) -> Iterator[str]:
    resource = step.resource
    if resource.position:
        yield f"at {printable(resource.position)}"
    if resource.provider:
        yield f"provider {printable(str(resource.provider))}"
    elif resource.is_provider and resource.version:
        yield f"version {resource.version}"
    for label, related in (
        ("depends on", resource.dependencies),
        ("was known as", _earlier_names(resource)),
        ("replaced with", resource.replace_with),
    ):
        yield from (f"{label} {printable(urns.short(u))}" for u in related)
    if resource.ignore_changes:
        yield f"ignores changes of {printable(', '.join(resource.ignore_changes))}"
    if resource.retain_on_delete:
        yield "kept when deleted"
    if step.delete_before_replace or resource.delete_before_replace:
        yield "deleted before it is replaced"


def _earlier_names(resource: Registered) -> list[str]:
    """Aliases but those that the SDK adds for other API versions of the same kind."""
    kind, name = resource.type.rpartition(":")[2], resource.name
    return [
        alias
        for alias in resource.aliases
        if (urns.type_of(alias).rpartition(":")[2], urns.name_of(alias)) != (kind, name)
    ]


# --- differences ---------------------------------------------------------------------------------


def _difference(step: Step, view: View) -> Iterator[str]:
    if step.operation in ("create", "import"):
        for route, value in leaves(step.resource.inputs):
            if route:
                yield from _change_lines(Change(route=route, kind="add", new=value), view)
    for change in step.changes:
        yield from _change_lines(change, view)


def _change_lines(change: Change, view: View) -> Iterator[str]:
    mark = KIND_MARKS[change.kind]
    style = {"+": "green", "-": "red", "~": "yellow"}[mark]
    name = printable(route_text(change.route))
    forced = "  (replaces)" if change.replaces else ""
    head = view.paint(style, f"{INDENT}{mark} {name}:")
    lines = list(_text_difference(change, view))
    if lines:
        yield from (head + forced, *lines)
        return
    shown = [_value(v) for v in _sides(change)]
    line = " => ".join(shown)
    if width(INDENT) + 4 + width(name) + width(line) + len(forced) <= view.columns:
        yield f"{head} {line}{forced}"
        return
    yield head + forced
    yield from (f"{INDENT}    {lead}{v}" for lead, v in zip(("", "=> "), shown, strict=False))


def _sides(change: Change) -> tuple[Any, ...]:
    sides = {"add": (change.new,), "delete": (change.old,), "update": (change.old, change.new)}
    return sides[change.kind]


def _text_difference(change: Change, view: View) -> Iterator[str]:
    """The lines that differ between two texts of several lines; nothing for other values."""
    old, new = change.old, change.new
    if not (isinstance(old, str) and isinstance(new, str) and "\n" in old and "\n" in new):
        return
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), n=1, lineterm="")
    for line in list(lines)[2:]:
        style = {"+": "green", "-": "red"}.get(line[:1], "dim")
        yield view.paint(style, f"{INDENT}    {printable(line)}")


def _value(value: Any) -> str:
    text = printable(json.dumps(displayed(value), ensure_ascii=False))
    for plain in ("[secret]", "[unknown]"):
        text = text.replace(f'"{plain}"', plain)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}… ({len(text):,} chars)"


def outputs(comparison: Comparison, view: View) -> Iterator[str]:
    if not comparison.outputs:
        return
    yield view.paint("bold", "Outputs:")
    wide = max(width(printable(route_text(c.route))) for c in comparison.outputs)
    for change in comparison.outputs:
        mark = " " if comparison.fresh else KIND_MARKS[change.kind]
        text = " => ".join(_value(v) for v in _sides(change))
        name = printable(route_text(change.route))
        yield f"  {mark} {name}{' ' * (wide - width(name))}: {text}"


def messages(comparison: Comparison, view: View) -> Iterator[str]:
    if comparison.messages:
        yield view.paint("bold", "Diagnostics:")
    for message in comparison.messages:
        about = f"{printable(urns.short(message.urn))}: " if message.urn else ""
        style = {"error": "red", "warning": "yellow"}.get(message.severity, "")
        label = "" if message.severity == "info" else f"{message.severity}: "
        first, *more = message.text.splitlines() or [""]
        yield f"  {view.paint(style, label)}{about}{printable(first)}"
        yield from (f"    {printable(line)}" for line in more)


def notes(comparison: Comparison, view: View) -> Iterator[str]:
    label = view.paint("bold blue", "note:")
    if comparison.placeholders:
        names = printable(", ".join(comparison.placeholders))
        yield f"{label} no value here, so a placeholder stands in: {names}"
    if comparison.unjudged:
        names = printable(", ".join(comparison.unjudged))
        yield f"{label} whether an update of {names} needs a replacement is not known here"
    blocked = sum(s.blocked for s in comparison.steps)
    refused = sum(bool(s.refused) for s in comparison.steps)
    for number, reason in (
        (blocked, "protected resources are not deleted"),
        (refused, "the API server refuses such a change"),
    ):
        if number:
            text = f"{plural(number, 'step')} would fail: {reason}"
            yield f"{view.paint('bold red', 'error:')} {text}"


def counts(comparison: Comparison, view: View) -> Iterator[str]:
    """Counts as `pulumi preview` prints them."""
    yield view.paint("bold", "Resources:")
    numbers = {o: comparison.count(o) for o in _COUNTED}
    for operation, number in numbers.items():
        if number:
            text = f"{MARKS[operation]}{number} to {operation}"
            yield f"    {view.paint(STYLES[operation], text)}"
    parts = []
    if sum(n > 0 for n in numbers.values()) > 1:
        parts.append(plural(sum(numbers.values()), "change"))
    if comparison.count("same"):
        parts.append(f"{comparison.count('same')} unchanged")
    if parts:
        yield f"    {'. '.join(parts)}"
