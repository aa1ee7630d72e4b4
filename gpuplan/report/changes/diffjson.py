"""A comparison of stacks as JSON. The form is stable: fields are added, never renamed or
removed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpuplan.plan.diff import ItemDiff, PlanDiff, StacksDiff
from gpuplan.plan.figures import Figure
from gpuplan.plan.outside.together import RegionsDiff
from gpuplan.plan.serialize import to_json as to_tree
from gpuplan.report.changes.diffwords import guests_tree, sentence
from gpuplan.report.jsonreport import to_json, verdict_tree


def render_json(diff: StacksDiff) -> str:
    return to_json(diff_tree(diff))


def diff_tree(diff: StacksDiff) -> dict[str, Any]:
    """`{"version": 1, "changed": …, "stacks": […], "regions": […]}`."""
    return {
        "version": 1,
        "changed": diff.changed,
        "stacks": [_stack_tree(s) for s in diff.stacks],
        "regions": [_regions_tree(r) for r in diff.regions],
    }


def _regions_tree(regions: RegionsDiff) -> dict[str, Any]:
    sides = {"base": regions.base, "head": regions.head}
    return {
        "name": regions.name,
        "changed": regions.changed,
        "summary": regions.sentence,
        **{side: None if one is None else to_tree(one) for side, one in sides.items()},
    }


def _stack_tree(stack: PlanDiff) -> dict[str, Any]:
    findings = stack.findings
    return {
        "name": stack.name,
        "status": stack.status,
        "changed": stack.changed,
        "summary": sentence(stack),
        "totals": _figures_tree(stack.totals),
        "gpu_types": _figures_tree(stack.gpu_types),
        "workloads": [_item_tree(i) for i in stack.workloads],
        "node_pools": [_item_tree(i) for i in stack.pools],
        "risks": [
            {"severity": r.severity.value, "resource": r.resource, "message": r.message}
            for r in stack.risks
        ],
        "findings": {
            "new": [verdict_tree(v) for v in findings.new],
            "fixed": [verdict_tree(v) for v in findings.fixed],
            "remaining": [verdict_tree(v) for v in findings.remaining],
            "waived": [verdict_tree(v) for v in findings.waived],
        },
        "fields": [{"path": f.path, "base": f.base, "head": f.head} for f in stack.fields],
        "objects": [
            {
                "kind": o.kind,
                "name": o.name,
                "status": o.status,
                "settings": [{"name": c.name, "base": c.base, "head": c.head} for c in o.changes],
            }
            for o in stack.objects
        ],
        "guests": guests_tree(stack.guests),
        "files": [{"path": f.path, "status": f.status} for f in stack.files],
    }


def _item_tree(item: ItemDiff) -> dict[str, Any]:
    return {
        "name": item.name,
        "status": item.status,
        "base": item.was,
        "head": item.now,
        "figures": _figures_tree(item.figures),
    }


def _figures_tree(figures: Iterable[Figure]) -> dict[str, Any]:
    """By name; null is unknown. A cost with unpriced parts names them beside the known sum."""
    return {
        f.name: {
            "unit": f.unit,
            "base": None if f.base is None else float(f.base),
            "head": None if f.head is None else float(f.head),
            "change": f.change,
            **({"base_unpriced": list(f.base_unpriced)} if f.base_unpriced else {}),
            **({"head_unpriced": list(f.head_unpriced)} if f.head_unpriced else {}),
        }
        for f in figures
    }
