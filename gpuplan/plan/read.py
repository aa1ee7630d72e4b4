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
LOCK = "gpuplan.lock"


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


def read_evidenced(stack: Path) -> Plan:
    """The plan of a stack (its folder or its `plan.yaml`) as records, with its evidence where that
    lies beside it. Raises `Rejected`."""
    from gpuplan.plan.serialize import load

    path = stack / PLAN if stack.is_dir() else stack
    evidence = path.with_name(EVIDENCE)
    return load(_text(path), str(path), _text(evidence) if evidence.is_file() else None)


def read_pins(stack: Path) -> dict[tuple[str, str], str]:
    """What the lock of a stack's folder knows, by kind and name; nothing where there is none.
    Raises `Rejected` for one that cannot be read."""
    from gpuplan.plan.outside.pins import of_lock
    from gpuplan.render import yaml

    path = stack / LOCK
    if not path.is_file():
        return {}
    try:
        return of_lock(yaml.loads(_text(path)))
    except yaml.NotCanonical as problem:
        raise Rejected([_no_plan(path, "not as gpuplan wrote it")]) from problem


def check(stack: Path) -> None:
    """Raises `Rejected` where the plan of a stack, or its evidence, is not one."""
    read_evidenced(stack)


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
