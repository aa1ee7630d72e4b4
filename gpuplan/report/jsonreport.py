"""A policy report as JSON. The form is stable: fields are added, never renamed or removed.

{"version": 1, "as_of": "2026-11-01", "stacks": ["chat"],
 "summary": {"error": 1, "warning": 0, "info": 0, "waived": 0},
 "findings": [{"rule", "name", "severity", "stack", "resource", "path", "file", "line", "message",
               "help", "requested", "capacity", "unit", "usd_per_hour", "fingerprint",
               "waived": null | {"reason", "owner", "expires", "place", "inline"}}]}
"""

from __future__ import annotations

import json
from typing import Any

from gpuplan.diagnostics import Severity
from gpuplan.findings import Report, Verdict

FIELDS = (
    "rule",
    "name",
    "stack",
    "resource",
    "path",
    "file",
    "line",
    "message",
    "help",
    "requested",
    "capacity",
    "unit",
    "usd_per_hour",
    "fingerprint",
)


def render_json(report: Report) -> str:
    tree = {
        "version": 1,
        "as_of": report.as_of.isoformat(),
        "stacks": list(report.stacks),
        "summary": {s.value: report.count(s) for s in Severity} | {"waived": len(report.waived)},
        "findings": [verdict_tree(v) for v in report],
    }
    return to_json(tree)


def to_json(tree: object) -> str:
    """JSON that every parser takes: ASCII only, so that no byte of a name can be invalid."""
    return json.dumps(tree, indent=2, allow_nan=False) + "\n"


def verdict_tree(verdict: Verdict) -> dict[str, Any]:
    tree: dict[str, Any] = {name: getattr(verdict, name) for name in FIELDS}
    waiver = verdict.suppression
    return {
        **tree,
        "severity": verdict.severity.value,
        "waived": None
        if waiver is None
        else {
            "reason": waiver.reason,
            "owner": waiver.owner,
            "expires": waiver.expires.isoformat(),
            "place": waiver.place,
            "inline": waiver.inline,
        },
    }
