"""A policy report in the forms of CI services: JUnit, GitHub annotations, GitLab code quality."""

from __future__ import annotations

from xml.sax.saxutils import quoteattr

from gpuplan.diagnostics import Severity
from gpuplan.findings import Report, Verdict
from gpuplan.render.xml import legal
from gpuplan.report.jsonreport import to_json

SHOWN = 10  # GitHub drops what a step annotates beyond ten errors and ten warnings
_COMMAND = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_GITLAB = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}


def _attribute(text: str) -> str:
    """`text` quoted as an XML attribute; characters that XML cannot hold become U+FFFD."""
    return quoteattr(legal(text), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def render_junit(report: Report) -> str:
    """A test case for each finding; only errors fail, waived ones are skipped."""
    failures = report.count(Severity.ERROR)
    sums = f'tests="{len(report.verdicts)}" failures="{failures}" skipped="{len(report.waived)}"'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<testsuite name="gpuplan" {sums}>']
    for verdict in report:
        name = _attribute(f"{verdict.rule} {verdict.resource} {verdict.path}")
        file = _attribute(verdict.file)
        head = f"  <testcase classname={_attribute(verdict.stack or 'waivers')} name={name}"
        lines.append(f"{head} file={file}>{_outcome(verdict)}</testcase>")
    return "\n".join([*lines, "</testsuite>"]) + "\n"


def _outcome(verdict: Verdict) -> str:
    message = _attribute(f"{verdict.place}: {verdict.message}; {verdict.help}")
    if verdict.suppression:
        return f"<skipped message={_attribute(verdict.suppression.reason)}/>"
    if verdict.severity is Severity.ERROR:
        return f"<failure type={_attribute(verdict.name)} message={message}/>"
    note = f"<property name={_attribute(verdict.severity.value)} value={message}/>"
    return f"<properties>{note}</properties>"


def render_github(report: Report) -> str:
    """Workflow commands, at most ten of each kind, and how many were left off."""
    lines: list[str] = []
    for severity, command in _COMMAND.items():
        verdicts = [v for v in report.active if v.severity is severity]
        lines += [_annotation(command, v) for v in verdicts[:SHOWN]]
        if len(verdicts) > SHOWN:
            lines.append(
                f"{len(verdicts) - SHOWN:,} more of severity {severity.value} are not annotated"
            )
    return "\n".join(lines) + "\n" if lines else ""


def _annotation(command: str, verdict: Verdict) -> str:
    line = f",line={verdict.line}" if verdict.line else ""
    title = _property(f"{verdict.rule} {verdict.name}")
    text = _data(f"{verdict.message}. {verdict.help}.")
    return f"::{command} file={_property(verdict.file)}{line},title={title}::{text}"


def _data(text: str) -> str:
    text = "".join(c if c.isprintable() or c in "\r\n" else "\ufffd" for c in text)
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def render_gitlab(report: Report) -> str:
    """GitLab's subset of the Code Climate format."""
    return to_json(
        [
            {
                "check_name": verdict.rule,
                "description": verdict.message,
                "severity": _GITLAB[verdict.severity],
                "fingerprint": verdict.fingerprint,
                "location": {"path": verdict.file, "lines": {"begin": verdict.line or 1}},
            }
            for verdict in report.active
        ]
    )
