"""A policy report as SARIF 2.1.0 (OASIS), for code scanning services.

Waived findings are results with a suppression. GitHub shows 5,000 results and refuses 25,000, so
the gravest 5,000 are written, and a notification says how many were left off.
"""

from __future__ import annotations

from string import ascii_letters, digits
from typing import Any

from gpuplan import __version__
from gpuplan.diagnostics import Severity
from gpuplan.findings import Report, RuleInfo, Verdict
from gpuplan.report.jsonreport import to_json

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LIMIT = 5000
_URI = frozenset(ascii_letters + digits + "-._~/")
_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def render_sarif(report: Report) -> str:
    numbers = {rule.identifier: n for n, rule in enumerate(report.rules)}
    left_off = len(report.verdicts) - LIMIT
    invocation: dict[str, Any] = {"executionSuccessful": True}
    if left_off > 0:
        text = f"{left_off:,} less grave results were left off; `gpuplan check` shows all."
        notification = {"level": "warning", "message": {"text": text}}
        invocation["toolExecutionNotifications"] = [notification]
    run = {
        "tool": {
            "driver": {
                "name": "gpuplan",
                "version": __version__,
                "rules": [_rule(rule) for rule in report.rules],
            }
        },
        "invocations": [invocation],
        "columnKind": "unicodeCodePoints",
        "results": [_result(v, numbers[v.rule]) for v in report.verdicts[:LIMIT]],
    }
    return to_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(rule: RuleInfo) -> dict[str, Any]:
    return {
        "id": rule.identifier,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "help": {"text": rule.page, "markdown": rule.page},
        "defaultConfiguration": {"level": _LEVEL[rule.severity]},
    }


def _result(verdict: Verdict, number: int) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(verdict.file)}}
    if verdict.line:
        place["region"] = {"startLine": verdict.line}
    name = "/".join(p for p in (verdict.stack, verdict.resource) if p)
    result: dict[str, Any] = {
        "ruleId": verdict.rule,
        "ruleIndex": number,
        "level": _LEVEL[verdict.severity],
        "message": {"text": f"{verdict.message}. Help: {verdict.help}."},
        "locations": [
            {"physicalLocation": place, "logicalLocations": [{"fullyQualifiedName": name}]}
        ],
        "partialFingerprints": {"gpuplan/v1": verdict.fingerprint},
    }
    if verdict.suppression:
        waiver = verdict.suppression
        result["suppressions"] = [
            {
                "kind": "inSource" if waiver.inline else "external",
                "justification": waiver.reason,
                "properties": {"owner": waiver.owner, "expires": waiver.expires.isoformat()},
            }
        ]
    return result


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())


def _uri(file: str) -> str:
    """A relative URI reference, or a file URI for an absolute path."""
    path = "".join(c if c in _URI else _percent(c) for c in file)
    return f"file://{path}" if path.startswith("/") else path
