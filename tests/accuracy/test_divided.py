"""Runs whose table has the division of their GPUs wrong are taken for what they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuplan.accuracy.points.aside import TABLE
from gpuplan.accuracy.points.points import Case, read_points
from gpuplan.accuracy.predict import predict
from gpuplan.sizing.calibration.anchors import Anchors
from tests.accuracy.test_accuracy import SERVED, written

COLUMNS = ("n_gpus", "tp", "ep", "dp")
VLLM = {"model": "minimax-m2.5", "engine": "vllm 0.19.0", "gpu": "B200-SXM-180GB"}
TRTLLM = {"model": "deepseek-r1", "engine": "trtllm 1.2.0rc6.post2", "gpu": "B200-SXM-180GB"}
KIMI = {"model": "kimi-k2.5", "engine": "vllm 0.17.0", "precision": "fp4"}


@pytest.mark.parametrize(
    ("run", "locator", "dumped", "was"),
    [
        (VLLM, "2026_04_06_minimax_c32_tp4_ep4_1322", "16 4 16 4", "4 4 4 1"),
        (VLLM, "minimaxm2_5_b200_vllm_fp8_c32_cfg690", "4 2 4 2", "2 2 2 1"),
        (VLLM, "minimaxm2_5_b300_vllm_fp8_c1024_cfg827", "4 2 4 2", "2 1 2 2"),
        (VLLM, "minimaxm2_5_b300_vllm_fp8_c4_cfg733", "4 4 1 1", "4 4 1 1"),
        (VLLM, "2026_03_25_minimax_c4_tp4_0_ep4_0_215", "4 4 4 1", "4 4 4 1"),
        (TRTLLM, "2026_04_06_deepseek_r1_c64_tp8_ep8_945", "64 1 8 64", "8 1 8 8"),
        (TRTLLM, "2026_04_06_deepseek_r1_c32_tp4_ep4_976", "16 16 4 1", "4 4 4 1"),
        (TRTLLM, "2026_04_06_gpt_oss_120b_c32_tp4_ep1_296", "4 1 1 4", "4 1 1 4"),
        (TRTLLM, "qwen_qwen3_235b_h100_sxm_trtllm_agg_c4_tp4_epnone_2", "4 4 2 1", "4 4 2 1"),
        (KIMI, "2026_03_25_kimi_k2_5_b200_c8_tp4_0_ep4_0_566", "4 4 4 1", "4 4 1 1"),
        (KIMI, "kimik2_5_b200_vllm_fp4_c32_cfg635", "16 4 16 4", "4 4 1 1"),
    ],
)
def test_a_run_has_the_division_that_its_lines_say(
    tmp_path: Path, run: dict[str, str], locator: str, dumped: str, was: str
) -> None:
    row = SERVED | run | {"source_path": TABLE, "locator": locator, "batch": "8"}
    told = row | dict(zip(COLUMNS, dumped.split(), strict=True))
    (point,) = read_points([written(tmp_path / "dumped.csv", told)])
    assert isinstance(point.case, Case)
    assert " ".join(point.case.row[column] for column in COLUMNS) == was
    honest = row | dict(zip(COLUMNS, was.split(), strict=True)) | {"locator": ""}
    (expected,) = read_points([written(tmp_path / "honest.csv", honest)])
    assert predict(point, Anchors()) == predict(expected, Anchors())


def test_other_tables_are_taken_at_their_word(tmp_path: Path) -> None:
    row = SERVED | VLLM | {"locator": "runs_cfg690", "source_path": "another/table.csv"}
    told = row | dict(zip(COLUMNS, ("16", "4", "16", "4"), strict=True))
    (point,) = read_points([written(tmp_path / "points.csv", told)])
    assert isinstance(point.case, Case)
    assert [point.case.row[column] for column in COLUMNS] == ["16", "4", "16", "4"]
