"""The plan of a stack, as records."""

from __future__ import annotations

from pathlib import Path

from gpuplan.plan.model import Plan
from gpuplan.plan.serialize import load


def read_plan(stack: Path) -> Plan:
    plan, evidence = ((stack / f"{n}.yaml").read_text("utf-8") for n in ("plan", "evidence"))
    return load(plan, evidence=evidence)
