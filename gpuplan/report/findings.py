"""A policy report in every format, by name. Waived findings stay visible in all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gpuplan.findings import Report, Verdict, counted
from gpuplan.render.text import fitted, printable
from gpuplan.report.paint import STYLES, Paint, tag
from gpuplan.report.terminal import excerpt
from gpuplan.source import Sources
from gpuplan.units import HOURS_PER_MONTH, format_usd, plural

FORMATS = ("full", "concise", "json", "sarif", "junit", "github", "gitlab", "markdown")


def render(
    report: Report, form: str, paint: Paint | None = None, sources: Sources | None = None
) -> str:
    """`report` in one of `FORMATS`; ends with a newline. `paint` colours the text formats, and the
    full one shows the lines of `sources`."""
    if form == "full":
        return render_full(report, paint or Paint(), sources or Sources())
    if form == "concise":
        return render_concise(report, paint or Paint())
    return _renderer(form)(report)


def _renderer(form: str) -> Callable[[Report], str]:
    if form == "json":
        from gpuplan.report.jsonreport import render_json as renderer
    elif form == "sarif":
        from gpuplan.report.sarif import render_sarif as renderer
    elif form == "markdown":
        from gpuplan.report.markdown import render_markdown as renderer
    else:
        from gpuplan.report import ci

        return {
            "junit": ci.render_junit,
            "github": ci.render_github,
            "gitlab": ci.render_gitlab,
        }[form]
    return renderer


def render_full(report: Report, paint: Paint, sources: Sources) -> str:
    """A block for each finding, as `compile` prints problems, and a line that counts them."""
    return "\n".join([*(_block(v, paint, sources) for v in report), summary(report, paint)]) + "\n"


def _block(verdict: Verdict, paint: Paint, sources: Sources) -> str:
    head = tag(paint, verdict.severity, verdict.rule)
    arrow, mark = paint("blue", "-->"), paint("blue", "=")
    lines = [f"{head}: {paint('bold', printable(verdict.message))}"]
    if place := sources.locate(verdict.origin):
        style = partial(paint, STYLES[verdict.severity])
        gutter = len(str(place[1].line))
        lines += excerpt(place, "", gutter, partial(paint, "blue"), style)
    else:
        lines.append(f" {arrow} {printable(verdict.place)}")
    if verdict.suppression:
        lines.append(f"  {mark} waived {printable(str(verdict.suppression))}")
    if verdict.usd_per_hour:
        lines.append(f"  {mark} saves {format_usd(verdict.usd_per_hour * HOURS_PER_MONTH)} a month")
    lines.append(f"  {mark} help: {printable(verdict.help)}")
    return fitted("\n".join(lines)) + "\n"


def render_concise(report: Report, paint: Paint) -> str:
    """A line for each finding: `FILE:LINE: severity[RULE] message`."""
    lines = []
    for verdict in report:
        head = tag(paint, verdict.severity, verdict.rule)
        waived = f" (waived {verdict.suppression})" if verdict.suppression else ""
        lines.append(f"{printable(verdict.place)}: {head} {printable(verdict.message + waived)}")
    return "\n".join([*lines, summary(report, paint)]) + "\n"


def summary(report: Report, paint: Paint) -> str:
    """`2 errors, 1 warning, 1 waived in chat`."""
    waived = f", {len(report.waived):,} waived" if report.waived else ""
    if len(report.stacks) > 5:
        where = plural(len(report.stacks), "stack")
    else:
        where = ", ".join(map(printable, report.stacks))
    rules = f" ({plural(len(report.rules), 'rule')})" if not report.active else ""
    return paint("bold", f"{counted(report.active)}{waived} in {where}{rules}")
