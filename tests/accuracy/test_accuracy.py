"""Predictions against public measurements, where the points are at hand."""

from __future__ import annotations

import csv
import io
import json
from functools import cache
from pathlib import Path

import pytest

from gpuplan.accuracy.points.points import COLUMNS, LAYOUT, LOAD, read_points
from gpuplan.accuracy.predict import PREDICTORS, predict
from gpuplan.accuracy.show.score import Score, scores
from gpuplan.cli.main import main
from gpuplan.sizing.calibration.anchors import Anchors
from tests.support.require import require

ROOT = Path(__file__).parents[2]
POINTS = ROOT.parent / "shared/data/accuracy"
SERVED = {
    "model": "llama3.1-70b",
    "gpu": "H100-SXM-80GB",
    "engine": "vllm 0.24",
    "precision": "fp8",
    "metric": "tpot",
    "value": "21.5",
    "unit": "ms",
    "tp": "4",
    "input_len": "1024",
    "output_len": "256",
    "batch": "16",
}


def written(path: Path, *rows: dict[str, str]) -> Path:
    """A file of points; what a row leaves out is empty."""
    with path.open("w", newline="", encoding="utf-8") as file:
        more = ("id", "hf_id", "split_group", "source_repo", "source_path", "kv_cache_dtype")
        more += ("confidence", "locator")
        writer = csv.DictWriter(file, (*more, *COLUMNS), restval="")
        writer.writeheader()
        writer.writerows({"id": f"p{n}", **row} for n, row in enumerate(rows))
    return path


@cache
def public(file: str) -> dict[tuple[str, str], Score]:
    path = POINTS / file
    if not path.exists():
        require("points", f"{path.name} is not at ../shared/data/accuracy")
    points = [p for p in read_points([path]) if p.confidence != "C"]
    found = scores([(p, predict(p, Anchors())) for p in points])
    return {(s.metric, s.group): s for s in found if s.category in ("", "kind")}


@pytest.mark.parametrize(
    ("file", "metric", "kind", "most"),
    [
        ("inference_public.csv", "tpot", "", 0.04),
        ("inference_public.csv", "tpot", "dense", 0.03),
        ("inference_public.csv", "ttft", "", 0.11),
        ("training_public.csv", "tokens_per_s_per_gpu", "", 0.05),
        ("training_public.csv", "step_time", "", 0.06),
        ("memory_public.csv", "peak_gpu_memory_train", "", 0.08),
    ],
)
def test_the_median_error_stays_where_it_was(
    file: str, metric: str, kind: str, most: float
) -> None:
    found = public(file)[metric, kind]
    assert found.count > 20
    assert found.error < most


def test_intervals_hold_nine_of_ten_measurements() -> None:
    found = public("inference_public.csv")
    for metric in ("tpot", "ttft"):
        covered = found[metric, ""].covered
        assert covered is not None
        assert covered >= 0.9


def test_every_row_gets_an_answer_in_order(tmp_path: Path) -> None:
    rows = [
        SERVED,
        SERVED | {"model": "no-such-model"},
        SERVED | {"gpu": "H900"},
        SERVED | {"metric": "joy"},
        SERVED | {"engine": "tgi 3.0"},
        SERVED | {"tp": "four"},
        SERVED | {"metric": "ttft", "value": "90", "model": "x", "hf_id": "Qwen/Qwen3-32B"},
    ]
    out = tmp_path / "out.csv"
    points = written(tmp_path / "points.csv", *rows)
    assert main(["accuracy", str(points), "--predictions", str(out)]) == 0
    answers = list(csv.DictReader(io.StringIO(out.read_text("utf-8"))))
    assert [a["id"] for a in answers] == [f"p{n}" for n in range(len(rows))]
    first, *others, by_hub_name = answers
    assert float(first["low"]) < float(first["predicted"]) < float(first["high"])
    assert (first["basis"], first["reason"]) == ("calibrated", "")
    assert float(by_hub_name["predicted"]) > 0
    assert [a["predicted"] for a in others] == [""] * 5
    assert "no-such-model" in others[0]["reason"]
    assert "H900" in others[1]["reason"]
    assert "joy" in others[2]["reason"]
    assert "not one that is planned" in others[3]["reason"]
    assert others[4]["reason"] == "'tp' is no number"


def test_a_prediction_never_sees_the_measurement(tmp_path: Path) -> None:
    files = [written(tmp_path / f"{v}.csv", SERVED | {"value": v}) for v in ("1", "99999")]
    one, other = (predict(read_points([f])[0], Anchors()) for f in files)
    assert one == other


def test_what_cannot_be_read_is_named_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = written(
        tmp_path / "bad.csv", SERVED, SERVED | {"value": "fast"}, SERVED | {"value": "-1"}
    )
    (tmp_path / "short.csv").write_text("model,value\nx,1\n", "utf-8")
    assert main(["accuracy", str(bad), str(tmp_path / "short.csv")]) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert f"{bad}:3: 'value' must be a number above 0, up to 1e+15, not 'fast'" in shown
    assert f"{bad}:4:" in shown
    assert "short.csv has no columns gpu, engine" in shown


def test_scores_are_written_in_every_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points = str(written(tmp_path / "points.csv", SERVED, SERVED | {"metric": "a|b"}))
    files = {k: str(tmp_path / k) for k in ("markdown", "csv")}
    options = [f"--{name}={file}" for name, file in files.items()]
    assert main(["accuracy", points, "--json", *options]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert {s["metric"] for s in answer["scores"]} == {"tpot"}
    assert answer["not_predicted"] == [{"count": 1, "reason": "metric 'a|b' is not predicted"}]
    assert "a\\|b" in Path(files["markdown"]).read_text("utf-8")
    assert Path(files["csv"]).read_text("utf-8").startswith("metric,category,group,n,MdAPE")


@pytest.mark.parametrize("column", ["n_gpus", "tp", "seq_len", "global_batch"])
@pytest.mark.parametrize("value", ["inf", "nan", "-1", "0.5", "9" * 5000])
def test_a_count_that_counts_nothing_is_refused_at_its_line(
    column: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "points.csv", SERVED, SERVED | {column: value})
    assert main(["accuracy", str(path)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    wanted = f"points.csv:3: '{column}' must be a whole number from "
    assert wanted in said
    assert len(said) < 400


def test_a_mean_number_of_requests_may_be_a_fraction(tmp_path: Path) -> None:
    (point,) = read_points([written(tmp_path / "points.csv", SERVED | {"batch": "4.32"})])
    found = predict(point, Anchors())
    assert not isinstance(found, str)


@pytest.mark.parametrize("metric", sorted(PREDICTORS))
@pytest.mark.parametrize(
    "changed",
    [
        dict.fromkeys((*LAYOUT, *LOAD, "engine", "precision"), ""),
        dict.fromkeys(("ep", "dp", "seq_len", "batch"), "0"),
    ],
    ids=["nothing stated", "all zero"],
)
def test_the_documented_columns_are_enough_for_every_metric(
    metric: str, changed: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "points.csv", SERVED | changed | {"metric": metric})
    assert main(["accuracy", str(path)]) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"\xff\xfe", "byte 0xff in line 1 is not UTF-8"),
        (b"model\n\xe9\n", "byte 0xe9 in line 2 is not UTF-8"),
        (b"a" * 200_000, "line 1 is no row of CSV (field larger than field limit (131072))"),
    ],
)
def test_what_is_no_text_is_refused_by_line(
    content: bytes, fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "points.csv"
    path.write_bytes(content)
    assert main(["accuracy", str(path)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"cannot read {path}: {fault}" in said
