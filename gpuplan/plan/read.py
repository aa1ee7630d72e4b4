"""Reading `plan.yaml` and `evidence.yaml` from a stack's folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuplan.diagnostics import Diagnostic, error
from gpuplan.errors import Rejected

if TYPE_CHECKING:
    from gpuplan.plan.model import Plan

PLAN = "plan.yaml"
EVIDENCE = "evidence.yaml"


def read_tree(stack: Path) -> dict[str, Any]:
    """The plan of a stack (its folder or its `plan.yaml`) as plain data, with its evidence where
    that lies beside it. Raises `Rejected`."""
    from gpuplan.plan.tree import load_evidence, load_tree

    path = stack / PLAN if stack.is_dir() else stack
    plan, evidence = load_tree(_text(path), str(path)), path.with_name(EVIDENCE)
    if evidence.is_file():
        plan["evidence"] = load_evidence(_text(evidence), str(evidence))
    return plan


def read_plan(stack: Path) -> Plan:
    """The plan of a stack's folder as records, without its evidence. Raises `Rejected`."""
    from gpuplan.plan.serialize import load

    return load(_text(stack / PLAN), str(stack / PLAN))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "not UTF-8 text"
        raise Rejected([_no_plan(path, reason)]) from problem


def _no_plan(path: Path, reason: str) -> Diagnostic:
    return error(
        "GP009",
        f"cannot read {path}: {reason.lower()}",
        help="name a folder that `gpuplan compile` wrote",
    )
