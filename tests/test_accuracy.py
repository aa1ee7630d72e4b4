"""Predictions against public measurements, where the points are at hand."""

from __future__ import annotations

import importlib.util
import math
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.require import require

ROOT = Path(__file__).parents[1]
POINTS = ROOT.parent / "shared/data/accuracy"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """bench/accuracy.py as a module."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    spec = importlib.util.spec_from_file_location("accuracy", ROOT / "bench/accuracy.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "accuracy", module)
    spec.loader.exec_module(module)
    yield module
    for name in ("points", "models", "runs"):
        sys.modules.pop(name, None)


def errors(bench: ModuleType, file: str, metric: str, kind: str | None = None) -> list[float]:
    path = POINTS / file
    if not path.exists():
        require("points", f"{path.name} is not at ../shared/data/accuracy")
    scores, _ = bench.scores_of(path)
    found = [s.error for s in scores if s.metric == metric and kind in (None, bench.kind(s))]
    assert len(found) > 20
    return found


@pytest.mark.parametrize(
    ("file", "metric", "kind", "most"),
    [
        ("inference_public.csv", "TPOT", None, 0.09),
        ("inference_public.csv", "TPOT", "dense", 0.07),
        ("inference_public.csv", "TTFT under 3 s", None, 0.22),
        ("inference_public.csv", "output tokens/s", None, 0.09),
        ("training_public.csv", "training tokens/s/GPU", None, 0.05),
        ("training_public.csv", "step time", None, 0.06),
        ("memory_public.csv", "training memory", None, 0.08),
    ],
)
def test_the_median_error_stays_where_it_was(
    bench: ModuleType, file: str, metric: str, kind: str | None, most: float
) -> None:
    sizes = [abs(math.expm1(e)) for e in errors(bench, file, metric, kind)]
    assert statistics.median(sizes) < most


def test_intervals_hold_nine_of_ten_measurements(bench: ModuleType) -> None:
    path = POINTS / "inference_public.csv"
    if not path.exists():
        require("points", f"{path.name} is not at ../shared/data/accuracy")
    scores, _ = bench.scores_of(path)
    for metric in ("TPOT", "TTFT under 3 s"):
        covered = [s.covered for s in scores if s.metric == metric]
        assert sum(covered) / len(covered) >= 0.9
