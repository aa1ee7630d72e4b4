"""A comparison of stacks as one sticky comment: a sentence for whoever pays, what is at risk, the
changed workloads, folded details."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.diagnostics import Severity
from gpuplan.findings import counted
from gpuplan.plan.diff import FileChange, ItemDiff, PlanDiff, StacksDiff
from gpuplan.render.markdown import code, escape
from gpuplan.report.changes.diffwords import (
    figure_name,
    figure_text,
    guest_lines,
    item_words,
    object_lines,
    sentence,
    setting_lines,
)
from gpuplan.report.markdown import findings_table, fold, table, within_limit
from gpuplan.units import plural

MARKER = "<!-- gpuplan diff -->"  # by which a CI job finds the comment to update
_ROWS = 200
_SETTINGS = 20


def render_markdown(diff: StacksDiff) -> str:
    changed = [s for s in diff.stacks if s.changed]
    same = [s for s in diff.stacks if not s.changed]
    parts = [MARKER]
    if not changed:
        parts.append(f"**No change** to {plural(len(same), 'stack')}.")
    parts += [f"**{escape(r.sentence)}**" for r in diff.regions if r.changed]
    parts += [p for stack in changed for p in _stack_head(stack)]
    parts += [p for stack in changed for p in _stack_details(stack)]
    if changed and same:
        parts.append(f"No change to {', '.join(code(s.name) for s in same)}.")
    return within_limit(parts)


def _stack_head(stack: PlanDiff) -> Iterator[str]:
    """What fits a screen: the sentence, the risks, the table."""
    yield f"**{escape(sentence(stack))}**"
    if stack.risks:
        icons = {Severity.ERROR: "🛑", Severity.WARNING: "⚠️"}
        yield "\n".join(f"- {icons[r.severity]} {escape(r.message)}" for r in stack.risks[:_ROWS])
    if stack.findings.new:
        yield "New findings:\n\n" + findings_table(stack.findings.new)
    changed = [i for i in stack.workloads if i.status != "same"]
    if changed:
        yield table(
            ("workload", "what", "GPUs", "cost/month", "power", "room to objectives"),
            [_row(item) for item in changed[:_ROWS]],
        ) + _left_off(len(changed), "workload")


def _row(item: ItemDiff) -> tuple[str, ...]:
    figures = {f.name: f for f in item.figures}
    rooms = [
        f"{figure_name(f)} {figure_text(f, item.status)}"
        for f in item.figures
        if f.name.endswith("_headroom")
    ]
    cells = (
        item.name,
        item_words(item),
        figure_text(figures["gpus"], item.status),
        figure_text(figures["usd_per_month"], item.status),
        figure_text(figures["watts"], item.status),
        "; ".join(rooms),
    )
    return tuple(escape(c) for c in cells)


def _stack_details(stack: PlanDiff) -> Iterator[str]:
    yield fold(f"{stack.name}: totals and node pools", [_totals(stack), "", _pools(stack)])
    findings = stack.findings
    for title, verdicts in (
        ("fixed", findings.fixed),
        ("waived", findings.waived),
        ("as before", findings.remaining),
    ):
        if verdicts:
            yield fold(f"{stack.name}: {counted(verdicts)} {title}", [findings_table(verdicts)])
    if lines := guest_lines(stack.guests):
        yield fold(f"{stack.name}: guests", [f"- {escape(line)}" for line in lines])
    if lines := setting_lines(stack.fields, _SETTINGS):
        yield fold(f"{stack.name}: settings", [f"- {escape(line)}" for line in lines])
    if lines := object_lines(stack.objects):
        yield fold(f"{stack.name}: what it makes", [f"- {escape(line)}" for line in lines])
    if stack.files:
        yield fold(f"{stack.name}: {plural(len(stack.files), 'file')}", _file_lines(stack.files))


def _file_lines(files: Sequence[FileChange]) -> list[str]:
    lines = [f"- {f.status} {code(f.path)}" for f in files[:_ROWS]]
    return [*lines, _left_off(len(files), "file")]


def _left_off(number: int, noun: str) -> str:
    left = number - _ROWS
    return f"\n\n{plural(left, noun)} more: `gpuplan diff` shows all." if left > 0 else ""


def _totals(stack: PlanDiff) -> str:
    rows = [(figure_name(f), escape(figure_text(f, stack.status))) for f in stack.totals]
    return table(("", "before → after"), rows)


def _pools(stack: PlanDiff) -> str:
    rows = [
        (
            escape(item.name),
            escape(item_words(item)),
            *(escape(figure_text(f, item.status)) for f in item.figures),
        )
        for item in stack.pools
    ]
    return table(("pool", "what", "nodes", "GPUs", "cost", "host memory", "power"), rows)
