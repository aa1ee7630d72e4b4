"""Where a finding about a plan stands in the manifest that the plan was made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gpuplan.diagnostics import Diagnostic
from gpuplan.findings import Report, Verdict
from gpuplan.plan.model import Plan
from gpuplan.policy.api import PLAN_FILE, Finding
from gpuplan.source import Origin, Sources


def origin_of(plan: Plan, finding: Finding) -> Origin | None:
    """The manifest's node that a finding about the plan is of; None for one about a file."""
    if finding.origin is not None or finding.file != PLAN_FILE:
        return finding.origin
    manifest = next((w.origin.document for w in plan.workloads if w.origin), None)
    if manifest is None:
        return None
    return Origin(manifest, ("platform", "budget") if finding.path.startswith("cost") else ())


def located(report: Report, written: Mapping[str, Sources], sources: Sources) -> Report:
    """`report` with the findings that stand in a document of its stack, of those `written`, at its
    lines; those documents are added to `sources` by their paths, which tell namesakes apart."""

    def found(verdict: Verdict) -> Verdict:
        place = written.get(verdict.stack, sources).locate(verdict.origin)
        if place is None or verdict.origin is None:
            return verdict
        document, span = place
        sources.documents[document.path] = document
        origin = replace(verdict.origin, document=document.path)
        return replace(verdict, file=document.path, line=span.line, origin=origin)

    return replace(report, verdicts=tuple(found(v) for v in report.verdicts))


def diagnostics(report: Report) -> tuple[Diagnostic, ...]:
    """The findings that are not waived, as problems at their places."""
    return tuple(
        Diagnostic(
            rule=v.rule,
            severity=v.severity,
            message=v.message,
            origin=v.origin or Origin(v.place),
            help=v.help,
        )
        for v in report.active
    )
