"""A comparison of stacks in words. Money that is not known reads `unpriced`, never $0."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from gpuplan.diagnostics import Severity
from gpuplan.plan.changes.guests import GuestChange
from gpuplan.plan.diff import FieldChange, ItemDiff, PlanDiff, Status
from gpuplan.plan.figures import Figure, Number
from gpuplan.plan.outside.objects import ObjectChange, SettingChange
from gpuplan.plan.times import TIMES, in_words
from gpuplan.render.hostlist import hostlist
from gpuplan.render.text import shortened
from gpuplan.units import format_quantity, format_unit_usd, format_usd, plural, significant

NAMES = {
    "gpus": "GPUs",
    "gpus_used": "GPUs in use",
    "virtual_machines": "VMs",
    "usd_per_month": "cost/month",
    "usd_per_hour": "cost",
    "usd_per_request": "cost of a request",
    "usd_per_run": "cost of a run",
    "gpu_memory_bytes": "GPU memory",
    "host_memory_bytes": "host memory",
    "gpu_memory_used_bytes": "memory used on each GPU",
    "watts": "power",
}
_VALUE = 60  # characters of a setting's value that are shown
_SETTINGS = 8
_OBJECTS = 20
_GUESTS = 20
# What the figures, the risks and the sentence say, or what only follows from the settings.
_SAID = re.compile(
    r"^cost\b|\.memory\b|\.metrics\b.*\.(estimate|probability)\b"
    r"|\.(alternatives|balance|tradeoffs|cheaper_split)\b|\.parallelism\b|\.layouts\b|^(hosts|tenants)\b|^(workloads|node_pools)\[[^\]]+\]$"
    r"|\.(gpu|gpu_count|replicas|node_count|precision|usd_per_hour|watts|bound_by|count)$"
)
# How a field's name says its unit.
_UNITS = (
    ("_bytes_per_s", "B/s"),
    ("_bytes_per_s_per_gpu", "B/s"),
    ("_bytes", "B"),
    ("_seconds", "s"),
    ("usd_per_hour", "USD/h"),
    ("watts", "W"),
)


def amount(value: Number | None, unit: str, unpriced: Sequence[str] = ()) -> str:
    """A figure for people. Money that is not known, or only in part, says so."""
    if unit == "USD":
        known = "" if value is None else format_usd(float(value))
        return " + ".join(filter(None, (known, "unpriced" if unpriced or not known else "")))
    if unit == "USD each":
        return "unpriced" if value is None else format_unit_usd(value)
    if value is None:
        return "unpriced" if unit == "USD/h" else "unknown"
    if unit == "%" and float(value) < -100:
        return f"{significant(1 - float(value) / 100)} × the limit"
    return f"{float(value):.0f} %" if unit == "%" else format_quantity(float(value), unit or "1")


def figure_text(figure: Figure, status: Status = "changed") -> str:
    """`6 → 8 (+33 %)`; one value when no change is seen, or when only one side exists."""
    before = amount(figure.base, figure.unit, figure.base_unpriced)
    after = amount(figure.head, figure.unit, figure.head_unpriced)
    if status == "removed":
        return before
    if status == "added" or before == after:
        return after
    return f"{before} → {after}{_relative(figure)}"


def _relative(figure: Figure) -> str:
    """` (+38 %)`, where both sides are known and the first is not zero; what rounds to nothing says
    that it is little."""
    change = figure.change
    if not change or not figure.base or figure.unit == "%":
        return ""
    percent = round(change / float(figure.base) * 100)
    if percent == 0:
        return f" (under 1 % {'more' if change > 0 else 'less'})"
    return f" ({percent:+d} %)".replace("-", "−")


def figure_name(figure: Figure) -> str:
    words = in_words(figure.name.removesuffix("_headroom"))
    is_room = figure.name.endswith("_headroom")
    return f"room to {words}" if is_room else NAMES.get(figure.name, words)


def sentence(stack: PlanDiff) -> str:
    """What a manager wants to know, in one sentence."""
    if not stack.changed:
        return f"{stack.name}: no change."
    cost = next(f for f in stack.totals if f.name == "usd_per_month")
    lead = {"added": "a new stack", "removed": "removed"}.get(stack.status)
    parts = [lead] if lead else []
    blockers = [v for v in stack.findings.new if v.severity is Severity.ERROR]
    losses = [r for r in stack.risks if r.severity is Severity.ERROR]
    parts += [plural(len(blockers), "new blocker")] if blockers else []
    parts += [f"{plural(len(losses), 'stateful resource')} removed or replaced"] if losses else []
    parts += [_money(cost, stack.status), _gpus(stack.gpu_types)]
    return f"{stack.name}: {', '.join(parts)}."


def _money(figure: Figure, status: Status) -> str:
    change = figure.change
    if change is None:
        before = amount(figure.base, "USD", figure.base_unpriced)
        after = amount(figure.head, "USD", figure.head_unpriced)
        if status == "removed":
            return f"cost {before} a month until now"
        was = f" (before: {before})" if status != "added" and before != after else ""
        return f"cost {after} a month{was}"
    if change == 0:
        return f"no change in cost ({amount(figure.head, 'USD')} a month)"
    sign = "+" if change > 0 else "−"
    return f"{sign}{format_usd(abs(change))} a month{_relative(figure)}"


def _gpus(types: Sequence[Figure]) -> str:
    """`16 → 24 × h100-sxm-80gb`, for each type that changes; else what there is."""
    changed = [f for f in types if f.differs]
    if changed:
        return ", ".join(f"{f.base} → {f.head} × {f.name}" for f in changed)
    return ", ".join(f"{f.head} × {f.name}" for f in types) + " as before"


def item_words(item: ItemDiff) -> str:
    if item.status in ("added", "removed"):
        return f"{item.status}, {item.now or item.was}"
    return item.now if item.was == item.now else f"{item.was} → {item.now}"


def object_lines(objects: Sequence[ObjectChange], limit: int = _OBJECTS) -> list[str]:
    """`job tune: --nodes 1 → 2`: what the target's own tools will see change."""
    lines = [f"{o.kind} {o.name}: {_changed(o)}" for o in objects[:limit]]
    if (left := len(objects) - limit) > 0:
        lines.append(f"{left} more: --format json shows all")
    return lines


def _changed(item: ObjectChange) -> str:
    if item.status == "removed":
        return "removed"
    words = [_setting_change(c, item.status) for c in item.changes]
    return ", ".join([*(["added"] if item.status == "added" else []), *words])


def _setting_change(change: SettingChange, status: str) -> str:
    if status == "added":
        return f"{change.name} {change.head}".rstrip()
    if change.base is None or change.head is None:
        verb = "added" if change.base is None else "removed"
        return " ".join(filter(None, (change.name, change.base or change.head, verb)))
    return f"{change.name} {change.base or '(empty)'} → {change.head or '(empty)'}"


def guests_tree(guests: Sequence[GuestChange]) -> list[dict[str, str]]:
    return [
        {"name": g.name, "host": g.host, "status": g.status, "interrupted": g.interrupted}
        for g in guests
    ]


def guest_lines(guests: Sequence[GuestChange], limit: int = _GUESTS) -> list[str]:
    """What becomes of each guest that changes or is interrupted; those that are neither are named
    together."""
    left_alone = [g for g in guests if g.status == "same" and g.interrupted == "none"]
    texts = [g.text for g in guests if g not in left_alone]
    lines = texts[:limit]
    if (left := len(texts) - limit) > 0:
        lines.append(f"{left} more: --format json shows all")
    if left_alone:
        names = hostlist(g.name for g in left_alone).replace(",", ", ")
        lines.append(f"{names} as before: not interrupted")
    return lines


def setting_lines(fields: Sequence[FieldChange], limit: int = _SETTINGS) -> list[str]:
    """The settings that differ, with units, and how many more fields do; figures, predictions and
    what only follows from others are left to those who read them as data."""
    settings = [f for f in fields if not _SAID.search(f.path)]
    lines = [_setting(f) for f in settings[:limit]]
    if (left := len(settings) - limit) > 0:
        lines.append(f"{plural(left, 'setting')} more: --format json shows all")
    return lines


def _limit_unit(path: str) -> str:
    """That of an objective's or of memory's limit."""
    limited = re.search(r"\.metrics\[(\w+)\]\.limit$", path)
    if limited is None:
        return ""
    if limited[1] in TIMES or limited[1] == "time_to_finish":
        return "s"
    return {"gpu_memory": "B"}.get(limited[1], "1/s" if limited[1].endswith("_per_second") else "")


def _setting(field: FieldChange) -> str:
    path = re.sub(r"^\w+\[([^\]]+)\]\.", r"\1 ", field.path)
    ends = ((suffix, unit) for suffix, unit in _UNITS if path.endswith(suffix))
    suffix, unit = next(ends, ("", _limit_unit(field.path)))
    if suffix.startswith("_"):
        path = path.removesuffix(suffix)
    words = path.replace(".", " ").replace("_", " ")
    base, head = (
        _shown(None if t is None else json.loads(t), unit) for t in (field.base, field.head)
    )
    return "{}: {} → {}".format(words, *_clipped(base, head))


def _clipped(base: str, head: str) -> tuple[str, ...]:
    """Both in at most `_VALUE` characters, from a few words before the first that differs."""
    pairs = enumerate(zip(base, head, strict=False))
    shared = next((at for at, (a, b) in pairs if a != b), min(len(base), len(head)))
    start = shared - _VALUE // 3 if max(len(base), len(head)) > _VALUE else 0
    start = 0 if start <= 0 else base.find(" ", start, shared) + 1 or start
    texts = ((f"…{text[start:]}" if start else text) for text in (base, head))
    return tuple(shortened(text, _VALUE) for text in texts)


def _shown(value: Any, unit: str) -> str:
    if isinstance(value, dict | list):
        name = value.get("name") if isinstance(value, dict) else None
        return str(name) if name else f"{len(value)} entries"
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int | float):
        number = f"{value:,}" if isinstance(value, int) else significant(value, 4)
        return format_quantity(value, unit) if unit else number
    return str(value)
