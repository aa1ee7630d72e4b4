"""One's own measurements: scored, left out, and learned from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from gpuplan.accuracy.fit.validate import fields, without
from gpuplan.accuracy.points.points import read_points
from gpuplan.accuracy.predict import predict
from gpuplan.accuracy.show.document import page, plots
from gpuplan.cli.main import main
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Anchors
from tests.accuracy.test_accuracy import SERVED, written

SLOWER = 1.3
OWN = SERVED | {"model": "llama3.1-8b", "gpu": "L4", "engine": "vllm", "tp": "1"}
MANIFEST = """\
apiVersion: gpuplan.dev/v1
name: own
platform: {target: kubernetes, gpus: [l4]%s}
workloads:
  - name: chat
    task: inference
    model: meta-llama/Llama-3.1-8B-Instruct
    precision: fp8
    load: {requests_per_second: 1, input_tokens: 1000, output_tokens: 250}
"""


def own_points(path: Path) -> Path:
    """Times that are all longer than predicted, of a GPU that nobody measured."""
    rows = [
        OWN | {"batch": str(batch), "input_len": str(length), "split_group": f"{batch}-{length}"}
        for batch in (1, 2, 4, 8, 16)
        for length in (500, 1000, 2000)
    ]
    points = read_points([written(path, *rows)])
    found = [predict(point, Anchors()) for point in points]
    values = [SLOWER * e.value for e in found if isinstance(e, Estimate)]
    assert len(values) == len(rows)
    return written(path, *(r | {"value": repr(v)} for r, v in zip(rows, values, strict=True)))


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with points.csv and the anchors that it gives alone."""
    folder = tmp_path_factory.mktemp("own")
    points = own_points(folder / "points.csv")
    assert main(["accuracy", str(points), "--alone", "--calibrate", str(folder / "anchors")]) == 0
    return folder


def errors(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, float]:
    capsys.readouterr()
    assert main(["accuracy", *options, "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    return {s["metric"]: s["bias"] for s in scores if not s["category"]}


def test_anchors_of_ones_own_take_the_bias_away(
    calibrated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points = str(calibrated / "points.csv")
    assert errors(capsys, points)["tpot"] == pytest.approx(1 / SLOWER - 1, abs=0.01)
    assert abs(errors(capsys, points, "--anchors", str(calibrated / "anchors"))["tpot"]) < 0.05
    assert abs(errors(capsys, points, "--leave-out", "group")["tpot"]) < 0.08


def test_points_that_correct_predictions_are_told(
    calibrated: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    anchors = str(calibrated / "anchors")
    assert main(["accuracy", str(calibrated / "points.csv"), "--anchors", anchors]) == 0
    assert "15 of these points correct the predictions themselves" in capsys.readouterr().out


def test_a_manifest_names_them(
    calibrated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(calibrated / "anchors", tmp_path / "anchors")
    found = {}
    for name, more in (("plain", ""), ("own", ", calibration: anchors")):
        manifest = tmp_path / f"{name}.yaml"
        manifest.write_text(MANIFEST % more, "utf-8")
        assert main(["compile", str(manifest), "-o", str(tmp_path / name)]) == 0
        capsys.readouterr()
        stack = tmp_path / name / "own"
        assert main(["explain", str(stack), "chat.token_correction", "--json"]) == 0
        (entry, *_) = json.loads(capsys.readouterr().out)
        found[name] = entry
        lock = (stack / "gpuplan.lock").read_text("utf-8")
        assert ("anchors/time_per_output_token.json" in lock) is (name == "own")
    assert found["own"]["value"] > 1.15 * found["plain"]["value"]
    assert "15 measured points" in found["own"]["source"]


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "nowhere has no anchors"), ("{}", "time_per_output_token.json holds no anchors")],
)
def test_a_folder_without_anchors_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "nowhere").mkdir()
        (tmp_path / "nowhere/time_per_output_token.json").write_text(content, "utf-8")
    manifest = tmp_path / "m.yaml"
    manifest.write_text(MANIFEST % ", calibration: nowhere", "utf-8")
    assert main(["compile", str(manifest), "-o", str(tmp_path / "out")]) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert "m.yaml:3:" in shown
    assert "--calibrate" in shown


def test_the_page_says_what_was_measured_and_what_was_not(calibrated: Path) -> None:
    points = read_points([calibrated / "points.csv"])
    anchored = fields(points, alone=True)
    by_way = {way: without(points, way, anchored) for way in ("group", "model", "gpu")}
    text = page(points, by_way, "")
    assert (
        "| [tpot](accuracy/tpot.svg) | `sizing.physics.serving.replica.Replica.times` | 15 |"
        in text
    )
    (drawn,) = plots(by_way["group"]).values()
    assert drawn.count("h0") == len(points)
    assert "ms</text>" in drawn
