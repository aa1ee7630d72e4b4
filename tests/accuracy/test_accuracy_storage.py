"""Predictions of what emulated accelerators read."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuplan.accuracy.metrics.storage import read_rate
from gpuplan.accuracy.points.points import read_points
from gpuplan.accuracy.points.readings import DataReading
from gpuplan.accuracy.predict import predict
from gpuplan.accuracy.reckon import Reckoned
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Anchors
from tests.accuracy.test_accuracy import written

METRIC = "train_io_MiB_per_s_per_accelerator"
ROW = {"metric": METRIC, "model": "unet3d", "gpu": "H100 (emulated)", "n_gpus": "36", "value": "1"}


def predicted(tmp_path: Path, **changed: str) -> Estimate | str:
    (point,) = read_points([written(tmp_path / "points.csv", ROW | changed)])
    return predict(point, Anchors())


@pytest.mark.parametrize(
    ("workload", "accelerator", "median"),
    # MLPerf Storage v1.0, medians of its submissions in MiB/s.
    [
        ("unet3d", "H100 (emulated)", 2728),
        ("unet3d", "A100 (emulated)", 1385),
        ("cosmoflow", "h100", 549),
        ("cosmoflow", "NVIDIA A100", 346),
        ("resnet50", "H100-SXM-80GB", 176),
        ("resnet50", "A100", 91),
    ],
)
def test_a_workload_reads_as_in_the_published_rounds(
    tmp_path: Path, workload: str, accelerator: str, median: float
) -> None:
    found = predicted(tmp_path, model=workload, gpu=accelerator)
    assert isinstance(found, Estimate)
    assert found.value == pytest.approx(median, rel=0.05)
    assert found.low < median < found.high
    assert found.high < 1.3 * found.low


def test_no_accelerator_reads_more_than_it_computes_on() -> None:
    case = DataReading(metric=METRIC, workload="unet3d", accelerator="h100", accelerators=1, row={})
    found = read_rate(case)
    assert isinstance(found, Reckoned)
    # Seven samples of 146.6 MB in 0.323 s.
    assert found.best == pytest.approx(7 * 146.6e6 / 0.323 / 2**20, rel=1e-3)
    assert found.value < found.best


def test_another_workload_is_not_guessed(tmp_path: Path) -> None:
    assert predicted(tmp_path, model="bert") == "data loading of bert on h100 is not known"
    assert predicted(tmp_path, gpu="V100") == "data loading of unet3d on v100 is not known"
