"""Where a finding about a plan stands in the manifest that the plan was made from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gpuplan.diagnostics import Diagnostic
from gpuplan.findings import Report, Verdict
from gpuplan.plan.model import Plan
from gpuplan.policy.api import PLAN_FILE, Finding
from gpuplan.source import Origin, SourceDocument, Sources


def origin_of(plan: Plan, finding: Finding) -> Origin | None:
    """The manifest's node that a finding about the plan is of; None for one about a file."""
    if finding.origin is not None or finding.file != PLAN_FILE:
        return finding.origin
    manifest = next((w.origin.document for w in plan.workloads if w.origin), None)
    if manifest is None:
        return None
    return Origin(manifest, ("platform", "budget") if finding.path.startswith("cost") else ())


def manifests(plans: Mapping[str, Plan], given: Sequence[Path] = ()) -> Sources:
    """The manifests of stacks: among the files `given`, below the working folder, or beside the
    folder of stacks. `plans` are by the stack's place. What cannot be read, or is of another stack,
    is no manifest of it."""
    sources = Sources()
    for place, plan in plans.items():
        names = {w.origin.document.partition("#")[0] for w in plan.workloads if w.origin}
        for name in sorted(names):
            candidates = (*given, *_candidates(Path(place), name))
            for document in _documents(candidates, name):
                if _is_of(plan, document):
                    sources.add(document)
                    break
    return sources


def _candidates(stack: Path, name: str) -> Iterator[Path]:
    near = (Path(), stack.parent, stack.parent.parent)
    yield from (folder / name for folder in near)
    for folder in (Path(), stack.parent.parent):
        if folder.is_dir():
            inner = (f for f in sorted(folder.iterdir()) if f.is_dir())
            yield from (f / name for f in inner if not f.name.startswith("."))


def _documents(paths: Iterable[Path], name: str) -> Iterator[SourceDocument]:
    from gpuplan.manifest.load import read_text
    from gpuplan.manifest.text import read_yaml

    for path in dict.fromkeys(paths):
        text = read_text(path) if path.is_file() else None
        if isinstance(text, str):
            yield from (d for d, problems in read_yaml(name, text, str(path)) if not problems)


def _is_of(plan: Plan, document: SourceDocument) -> bool:
    """Whether the document is a manifest of the plan whose workloads stand where the plan says."""
    data = document.data
    if not isinstance(data, dict) or data.get("name") != plan.name:
        return False
    works = data.get("workloads")
    names = [w.get("name") for w in works if isinstance(w, dict)] if isinstance(works, list) else []
    own = [w for w in plan.workloads if w.origin and w.origin.document == document.name]
    return bool(own) and [w.name for w in own] == names


def located(report: Report, sources: Sources) -> Report:
    """`report` with the findings that stand in a manifest at its lines."""
    return replace(report, verdicts=tuple(_located(v, sources) for v in report.verdicts))


def _located(verdict: Verdict, sources: Sources) -> Verdict:
    place = sources.locate(verdict.origin)
    if place is None:
        return verdict
    document, span = place
    return replace(verdict, file=document.path, line=span.line)


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
