"""The plan of a stack, as records, and what its README says to run."""

from __future__ import annotations

from pathlib import Path

from gpuplan.plan.model import Plan
from gpuplan.plan.serialize import load


def read_plan(stack: Path) -> Plan:
    plan, evidence = ((stack / f"{n}.yaml").read_text("utf-8") for n in ("plan", "evidence"))
    return load(plan, evidence=evidence)


def commands(stack: Path, heading: str, block: int) -> list[str]:
    """The commands of a block below a heading of the stack's README."""
    page = (stack / "README.md").read_text("utf-8")
    section = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = section.split("```")[1::2][block].splitlines()[1:]
    return [line for line in lines if not line.startswith("#")]
