"""Submissions of MLPerf Training: rows run as their submitters published, or are refused."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from gpuplan.accuracy.points.settings import Setting, setting
from gpuplan.accuracy.points.submissions import Submission, submission
from gpuplan.accuracy.predict import predict
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Anchors
from tests.accuracy.test_accuracy_training import MLPERF, case, point

RESULTS = "mlcommons/training_results_v"
ROWS = json.loads((files("gpuplan.accuracy") / "data" / "submissions.json").read_text("utf-8"))
LORA = {"model": "llama2-70b", "n_gpus": "8", "global_batch": "8", "method": "lora"}


def run(
    folder: Path, version: str, results: str, steps: int, row: dict[str, str], **changes: str
) -> Setting:
    notes = f"MLPerf Training v{version} closed/X; grad_accum={steps}"
    source = {"source_repo": f"{RESULTS}{version}", "source_path": f"{results}/", "notes": notes}
    found = setting(case(folder, MLPERF, **row, **source, **changes))
    assert isinstance(found, Setting), found
    return found


def test_systems_that_look_alike_run_as_each_published(tmp_path: Path) -> None:
    """The same GPUs, batch and steps, in the same round."""
    asus = run(tmp_path, "4.1", "ASUSTeK/results/ESC_N8_E11/llama2_70b_lora", 2, LORA)
    nvidia = run(tmp_path, "4.1", "NVIDIA/results/h200_ngc24.09_nemo/llama2_70b_lora", 2, LORA)
    assert (asus.division.tensor, asus.division.context) == (2, 1)
    assert (nvidia.division.tensor, nvidia.division.context) == (1, 2)
    assert asus.micro == nvidia.micro == 1


def test_the_number_format_is_the_published_one(tmp_path: Path) -> None:
    row = {"model": "llama3.1-8b", "n_gpus": "8", "global_batch": "16", "precision": "fp4"}
    florida = "University-of-Florida/results/hpg.dgxb200x8.n1/llama31_8b"
    nvidia = "NVIDIA/results/tyche_ngpu8_ngc25.09_nemo/llama31_8b"
    eight, four = (run(tmp_path, "5.1", results, 1, row) for results in (florida, nvidia))
    assert (eight.method.precision, eight.micro) == ("fp8", 2)
    assert (four.method.precision, four.micro) == ("nvfp4", 2)
    nebius = "Nebius/results/nebius_b200_n1/llama2_70b_lora"
    assert run(tmp_path, "5.1", nebius, 1, LORA | {"precision": "fp8?"}).method.precision == "nvfp4"


def test_stages_of_a_pipeline_are_the_published_ones(tmp_path: Path) -> None:
    results = "NVIDIA/results/theia_ngpu512_ngc25.09_nemo/llama31_405b"
    found = run(tmp_path, "5.1", results, 72, {}, gpu="GB300", n_gpus="512")
    division = found.division
    assert (division.tensor, division.pipeline, division.virtual) == (2, 8, 8)
    assert (division.context, division.replicas, found.method.precision) == (2, 16, "nvfp4")


def test_what_nobody_published_is_refused(tmp_path: Path) -> None:
    results = "QCT/results/D74H-7U/llama2_70b_lora"
    source = {"source_repo": f"{RESULTS}5.0", "source_path": f"{results}/"}
    reason = predict(point(tmp_path, MLPERF, **LORA, **source), Anchors())
    assert reason == f"nobody published how {results} divides a replica"


def test_a_row_of_ones_own_says_its_parallelism(tmp_path: Path) -> None:
    unknown = {"source_repo": "example/results", "source_path": "mine"}
    reason = predict(point(tmp_path, MLPERF, **unknown), Anchors())
    assert reason == "neither the row nor a published configuration tells the parallelism"
    divided = {"tp": "8", "pp": "8", "cp": "2", "precision": "bf16"}
    of = submission(case(tmp_path, MLPERF, **unknown, **divided))
    assert isinstance(of, Submission)
    assert (of.replica, of.precision) == (128, "bf16")
    assert isinstance(predict(point(tmp_path, MLPERF, **unknown, **divided), Anchors()), Estimate)


@pytest.mark.parametrize("row", ROWS["rows"], ids=lambda row: f"{row[0]} {row[1]}")
def test_every_row_names_what_it_is_of(row: list[str | int]) -> None:
    assert row[0] in ROWS["sources"]
    assert "/results/" in str(row[1])
    if len(row) == 2:
        return
    *sizes, precision, config, _ = row[2:]
    assert all(isinstance(size, int) and size >= 1 for size in sizes)
    assert precision in ("bf16", "fp8", "nvfp4")
    assert str(config).endswith(".sh")
