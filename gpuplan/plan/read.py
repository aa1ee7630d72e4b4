"""Reading `plan.yaml` from a stack's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpuplan.diagnostics import error
from gpuplan.errors import Rejected

PLAN = "plan.yaml"


def _text(stack: Path) -> tuple[str, str]:
    path = stack / PLAN if stack.is_dir() else stack
    try:
        return path.read_text(encoding="utf-8"), str(path)
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "not UTF-8 text"
        raise Rejected([_no_plan(path, reason)]) from problem


def _no_plan(path: Path, reason: str) -> Any:
    return error(
        "GP009",
        f"cannot read {path}: {reason.lower()}",
        help="name a folder that `gpuplan compile` wrote",
    )


def read_tree(stack: Path) -> dict[str, Any]:
    """The plan of a stack as plain data. Raises `Rejected`."""
    from gpuplan.plan.tree import load_tree

    return load_tree(*_text(stack))
