"""A comparison of stacks in every format, by name, and as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.diagnostics import Severity
from gpuplan.findings import counted
from gpuplan.plan.diff import PlanDiff, StacksDiff
from gpuplan.render.text import printable
from gpuplan.report.changes.diffwords import (
    figure_name,
    figure_text,
    guest_lines,
    item_words,
    object_lines,
    sentence,
    setting_lines,
)
from gpuplan.report.paint import Paint
from gpuplan.units import plural

FORMATS = ("text", "json", "markdown")
_FILES = 6


def render_diff(diff: StacksDiff, form: str, paint: Paint | None = None) -> str:
    """`diff` in one of `FORMATS`; ends with a newline. `paint` colours the text."""
    if form == "json":
        from gpuplan.report.changes.diffjson import render_json

        return render_json(diff)
    if form == "markdown":
        from gpuplan.report.changes.diffmarkdown import render_markdown

        return render_markdown(diff)
    return render_text(diff, paint or Paint())


def render_text(diff: StacksDiff, paint: Paint) -> str:
    blocks = [paint("bold", printable(r.sentence)) for r in diff.regions]
    blocks += ["\n".join(_text(stack, paint)) for stack in diff.stacks]
    return "\n\n".join(blocks) + "\n"


def _text(stack: PlanDiff, paint: Paint) -> Iterator[str]:
    yield paint("bold", printable(sentence(stack)))
    if stack.changed:
        for risk in stack.risks:
            style = "red" if risk.severity is Severity.ERROR else "yellow"
            yield f"  {paint(style, 'risk')}  {printable(risk.message)}"
        yield from (f"  guest {printable(line)}" for line in guest_lines(stack.guests))
        yield from _text_figures(stack)
        yield from _text_findings(stack, paint)
        yield from (f"  {printable(line)}" for line in setting_lines(stack.fields))
        yield from (f"  {printable(line)}" for line in object_lines(stack.objects))
        if stack.files:
            paths = ", ".join(printable(f.path) for f in stack.files[:_FILES])
            more = f" and {len(stack.files) - _FILES} more" if len(stack.files) > _FILES else ""
            verb = "differs" if len(stack.files) == 1 else "differ"
            yield f"  {plural(len(stack.files), 'file')} {verb}: {paths}{more}"


def _text_figures(stack: PlanDiff) -> Iterator[str]:
    for figure in stack.totals:
        if figure.differs:
            yield f"  {figure_name(figure):14} {figure_text(figure, stack.status)}"
    for kind, items in (("workload", stack.workloads), ("pool", stack.pools)):
        for item in items:
            if item.status != "same":
                yield f"  {kind} {printable(item.name)}: {printable(item_words(item))}"
                differing = (f for f in item.figures if f.differs)
                for figure in differing:
                    yield f"    {figure_name(figure)}: {figure_text(figure, item.status)}"


def _text_findings(stack: PlanDiff, paint: Paint) -> Iterator[str]:
    findings = stack.findings
    groups = (
        ("new", "red", findings.new),
        ("fixed", "green", findings.fixed),
        ("waived", "dim", findings.waived),
    )
    for word, style, verdicts in groups:
        for verdict in verdicts:
            code_ = f"{verdict.severity.value}[{verdict.rule}]"
            yield f"  {paint(style, word)} {code_} {printable(verdict.message)}"
    if findings.remaining:
        yield f"  as before: {counted(findings.remaining)}"
