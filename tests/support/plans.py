"""The plan of a stack, as records."""

from __future__ import annotations

from pathlib import Path

from gpuplan.plan.model import Plan
from gpuplan.plan.serialize import load


def read_plan(stack: Path) -> Plan:
    return load((stack / "plan.yaml").read_text(encoding="utf-8"))
