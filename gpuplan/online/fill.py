"""The pins that a plan lacks, asked for one by one: what fails takes nothing from the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gpuplan.diagnostics import Diagnostic
from gpuplan.errors import Rejected
from gpuplan.online.charts import chart_digest
from gpuplan.online.hub import HUB, commit
from gpuplan.online.registry import image_digest
from gpuplan.plan.outside.pins import Pin

Values = dict[tuple[str, str], str]


def ask(
    pins: Iterable[Pin], hub: str = HUB, progress: Callable[[str], None] = lambda _: None
) -> tuple[Values, tuple[Diagnostic, ...]]:
    """What was found of those without a value, and one message for each that was not."""
    asked: dict[str, Callable[[str], str]] = {
        "chart": lambda name: chart_digest(*name.split(" ")),
        "image": image_digest,
        "model": lambda name: commit(name, hub),
    }
    values: Values = {}
    problems: list[Diagnostic] = []
    for pin in (p for p in pins if p.value is None):
        progress(f"asking for {pin.name}")
        try:
            values[pin.kind, pin.name] = asked[pin.kind](pin.name)
        except Rejected as rejected:
            problems += rejected.diagnostics
    return values, tuple(dict.fromkeys(problems))
