"""A policy report as Markdown: a sentence, a table, folded details."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from gpuplan.findings import Report, Verdict, counted
from gpuplan.render.markdown import code, escape
from gpuplan.render.text import spaced
from gpuplan.units import HOURS_PER_MONTH, format_usd, plural

LIMIT = 65_536  # characters of a GitHub comment; GitLab allows more
_ROWS = 100


def render_markdown(report: Report) -> str:
    stacks = ", ".join(code(s) for s in report.stacks[:5])
    more = f" and {len(report.stacks) - 5} more" if len(report.stacks) > 5 else ""
    waived = f"; {len(report.waived)} waived" if report.waived else ""
    parts = [f"**{counted(report.active)}** in {stacks}{more}{waived}."]
    if report.active:
        parts.append(findings_table(report.active))
    if report.waived:
        rows = [
            f"- {code(v.rule)} {escape(v.message)} — {escape(str(v.suppression))}"
            for v in report.waived
        ]
        parts.append(fold(plural(len(rows), "waived finding"), rows))
    return within_limit(parts)


def findings_table(verdicts: Sequence[Verdict]) -> str:
    """A row for each finding, the gravest first, at most a hundred."""
    rows = [
        (
            f"{v.severity.value} {code(v.rule)}",
            escape(v.message),
            code(v.place),
            _saving(v),
            escape(v.help),
        )
        for v in verdicts[:_ROWS]
    ]
    text = table(("", "finding", "where", "saves", "fix"), rows)
    left_off = len(verdicts) - _ROWS
    return text + (
        f"\n\n{plural(left_off, 'finding')} more: `gpuplan check`." if left_off > 0 else ""
    )


def _saving(verdict: Verdict) -> str:
    if not verdict.usd_per_hour:
        return ""
    return escape(f"{format_usd(verdict.usd_per_hour * HOURS_PER_MONTH)}/month")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def fold(title: str, lines: Iterable[str]) -> str:
    """A folded block of lines that are Markdown already; the title is plain text."""
    body = "\n".join(lines)
    title = html.escape(spaced(title))
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def within_limit(parts: Sequence[str], limit: int = LIMIT) -> str:
    """As many parts as fit, in order; what was left off is said, not hidden."""
    for kept in range(len(parts), 0, -1):
        note = f"{plural(len(parts) - kept, 'part')} left off: too long for a comment."
        text = "\n\n".join([*parts[:kept], *([] if kept == len(parts) else [note])]) + "\n"
        if len(text) <= limit:
            return text
    cut = parts[0][: limit - 100].rpartition("\n")[0]
    return f"{cut}\n\nThe rest is left off: too long for a comment.\n"
