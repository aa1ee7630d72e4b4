"""Two plans compared: what a merge would change, as data.

Figures first (GPUs, nodes, money, memory, power, room to the objectives), then what is at risk,
then every field that differs. What is not known stays unknown: a missing price is never zero.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar

from gpuplan.findings import Report, Verdict
from gpuplan.plan.changes.guests import GuestChange, guest_changes
from gpuplan.plan.figures import (
    Figure,
    gpu_type_figures,
    plan_figures,
    pool_figures,
    workload_figures,
)
from gpuplan.plan.model import Named, NodePool, Plan, Workload, record
from gpuplan.plan.outside.objects import ObjectChange, Written, object_changes
from gpuplan.plan.outside.together import RegionsDiff
from gpuplan.plan.risks import Risk, risks
from gpuplan.plan.serialize import to_tree
from gpuplan.render.tree import FileTree
from gpuplan.units import plural

Status = Literal["added", "removed", "changed", "same"]
# Where the plan came from and how its numbers were derived; the numbers themselves are compared.
# What is said of all regions is compared once for all of their stacks.
NOT_COMPARED = ("evidence", "provenance", "origin", "regions")
# Files that follow from the plan's provenance, or that the comparison of plans covers.
DERIVED_FILES = ("plan.yaml", "evidence.yaml", "gpuplan.lock", "checksums.txt")

N = TypeVar("N", bound=Named)


@record
class FieldChange:
    """A field of the plan that differs, as JSON; None where one plan does not have it. A record
    that only one plan has is one change."""

    path: str
    base: str | None
    head: str | None


@record
class FileChange:
    path: str
    status: Status


@record
class ItemDiff:
    """A workload or a node pool. `now` says what it is after the change (before, when removed)."""

    name: str
    status: Status
    was: str
    now: str
    figures: tuple[Figure, ...]


@record
class FindingsDiff:
    """Verdicts by what became of them. `waived` were open before and have a waiver now."""

    new: tuple[Verdict, ...] = ()
    fixed: tuple[Verdict, ...] = ()
    remaining: tuple[Verdict, ...] = ()
    waived: tuple[Verdict, ...] = ()


@record
class PlanDiff:
    """One stack, before and after."""

    name: str
    status: Status
    totals: tuple[Figure, ...]
    gpu_types: tuple[Figure, ...]
    workloads: tuple[ItemDiff, ...]
    pools: tuple[ItemDiff, ...]
    risks: tuple[Risk, ...]
    findings: FindingsDiff
    fields: tuple[FieldChange, ...]
    files: tuple[FileChange, ...]
    objects: tuple[ObjectChange, ...] = ()
    guests: tuple[GuestChange, ...] = ()

    @property
    def changed(self) -> bool:
        findings = self.findings
        return self.status != "same" or bool(findings.new or findings.fixed or findings.waived)


@record
class StacksDiff:
    """Every stack of two folders, by name; `regions` are what several of them are together."""

    stacks: tuple[PlanDiff, ...]
    regions: tuple[RegionsDiff, ...] = ()

    @property
    def changed(self) -> bool:
        return any(r.changed for r in self.regions) or any(s.changed for s in self.stacks)


def diff(
    base: Plan | None,
    head: Plan | None,
    base_report: Report | None = None,
    head_report: Report | None = None,
    *,
    base_files: FileTree | None = None,
    head_files: FileTree | None = None,
    base_objects: Sequence[Written] = (),
    head_objects: Sequence[Written] = (),
) -> PlanDiff:
    """What changes from `base` to `head`; None is a stack that does not exist on that side. What
    their files make is compared where both have some."""
    existing = head or base
    if existing is None:
        raise ValueError("nothing to compare")
    fields = tuple(_fields(base, head))
    files = tuple(_files(base_files, head_files))
    pairs = workload_pairs(base, head)
    return PlanDiff(
        name=existing.name,
        status=_status(base, head, differs=bool(fields or files)),
        totals=plan_figures(base, head),
        gpu_types=gpu_type_figures(base, head),
        workloads=tuple(_workloads(pairs, _numbers(base), _numbers(head))),
        pools=tuple(_pools(base, head)),
        risks=risks(base, head, pairs),
        findings=_findings(base_report, head_report),
        fields=fields,
        files=files,
        objects=tuple(object_changes(base_objects, head_objects))
        if base_objects and head_objects
        else (),
        guests=guest_changes(base, head, base_files, head_files),
    )


def _numbers(plan: Plan | None) -> dict[str, float]:
    return {e.quantity: e.value for e in plan.evidence} if plan else {}


def _status(base: object, head: object, *, differs: bool) -> Status:
    if base is None:
        return "added"
    if head is None:
        return "removed"
    return "changed" if differs else "same"


def _pairs(
    base: Sequence[N], head: Sequence[N], renamed: dict[str, str]
) -> list[tuple[N | None, N | None]]:
    """Records of one name, or of a name and its former one; then those that are gone."""
    old = {r.name: r for r in base}
    pairs: list[tuple[N | None, N | None]] = [
        (old.pop(renamed.get(r.name, r.name), None), r) for r in head
    ]
    return pairs + [(r, None) for r in old.values()]


def workload_pairs(
    base: Plan | None, head: Plan | None
) -> list[tuple[Workload | None, Workload | None]]:
    """Workloads before and after, a renamed one with its former self."""
    before, after = base.workloads if base else (), head.workloads if head else ()
    names = {w.name for w in before}
    renamed = {
        w.name: former
        for w in after
        if w.name not in names
        for former in w.renamed_from
        if former in names and former not in {x.name for x in after}
    }
    return _pairs(before, after, renamed)


def _workloads(
    pairs: list[tuple[Workload | None, Workload | None]],
    before: Mapping[str, float],
    after: Mapping[str, float],
) -> Iterator[ItemDiff]:
    for old, new in pairs:
        yield ItemDiff(
            name=" → ".join(dict.fromkeys(w.name for w in (old, new) if w)),
            status=_status(old, new, differs=_tree(old) != _tree(new)),
            was=describe_workload(old),
            now=describe_workload(new),
            figures=workload_figures(old, new, before, after),
        )


def _pools(base: Plan | None, head: Plan | None) -> Iterator[ItemDiff]:
    before, after = base.node_pools if base else (), head.node_pools if head else ()
    for old, new in _pairs(before, after, {}):
        yield ItemDiff(
            name=next(p.name for p in (new, old) if p),
            status=_status(old, new, differs=_tree(old) != _tree(new)),
            was=describe_pool(old),
            now=describe_pool(new),
            figures=pool_figures(old, new),
        )


def describe_workload(work: Workload | None) -> str:
    """`6 × h100-sxm-80gb, fp8, TP 2, 3 replicas`; empty for None."""
    if work is None:
        return ""
    parts = [f"{work.gpu_count} × {work.gpu}"]
    parts += [f"as {work.partition}"] if work.partition else []
    parts += [work.precision] if work.precision else []
    sizes = (
        ("TP", work.parallelism.tensor_parallel_size),
        ("PP", work.parallelism.pipeline_parallel_size),
        ("DP", work.parallelism.data_parallel_size),
    )
    parts += [f"{name} {size}" for name, size in sizes if size > 1]
    parts.append(plural(work.replicas, "replica"))
    return ", ".join(parts)


def describe_pool(pool: NodePool | None) -> str:
    """Its shape; empty for None."""
    return "" if pool is None else pool.shape


def _tree(value: object) -> object:
    tree = to_tree(value) if value is not None else None
    return {k: v for k, v in tree.items() if k != "origin"} if isinstance(tree, dict) else tree


def _fields(base: Plan | None, head: Plan | None) -> Iterator[FieldChange]:
    if base is not None and head is not None:
        yield from _changes(to_tree(base), to_tree(head), "")


def _changes(old: Any, new: Any, path: str) -> Iterator[FieldChange]:
    """Where two trees differ, by names; entries of a list are matched by name, else by position."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys((*old, *new)):
            if key not in NOT_COMPARED:
                here = f"{path}.{key}" if path else key
                yield from _changes(old.get(key), new.get(key), here)
    elif isinstance(old, list) or isinstance(new, list):
        before, after = _by_name(old or []), _by_name(new or [])
        for key in dict.fromkeys((*before, *after)):
            yield from _changes(before.get(key), after.get(key), f"{path}[{key}]")
    elif old != new:
        yield FieldChange(path=path, base=_json(old), head=_json(new))


def _by_name(entries: list[Any]) -> dict[Any, Any]:
    """Entries by their `name`; by position where they have none or share one."""
    names = [e.get("name") if isinstance(e, dict) else None for e in entries]
    if None in names or len(set(names)) < len(names):
        return dict(enumerate(entries))
    return dict(zip(names, entries, strict=True))


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, default=float)


def _files(base: FileTree | None, head: FileTree | None) -> Iterator[FileChange]:
    """Generated files that differ, where both sides have files."""
    old, new = _generated(base), _generated(head)
    for path in sorted({*old, *new}) if old and new else ():
        if old.get(path) != new.get(path):
            status = _status(old.get(path), new.get(path), differs=True)
            yield FileChange(path=path, status=status)


def _generated(tree: FileTree | None) -> dict[str, str]:
    return {f.path: f.text for f in tree or () if not f.seed and f.path not in DERIVED_FILES}


def _findings(base: Report | None, head: Report | None) -> FindingsDiff:
    """By rule, resource and path. Findings about waivers concern no stack and are left out."""
    old = _by_identity(base.active) if base else {}
    new = _by_identity(head.active) if head else {}
    waived = _by_identity(head.waived) if head else {}
    worse = {k for k, v in new.items() if k in old and old[k].severity.rank > v.severity.rank}
    return FindingsDiff(
        new=tuple(v for k, v in new.items() if k not in old or k in worse),
        fixed=tuple(v for k, v in old.items() if k not in new and k not in waived),
        remaining=tuple(v for k, v in new.items() if k in old and k not in worse),
        waived=tuple(v for k, v in waived.items() if k in old),
    )


def _by_identity(verdicts: Iterable[Verdict]) -> dict[tuple[str, str, str], Verdict]:
    return {(v.rule, v.resource, v.path): v for v in verdicts if v.stack}
