"""One's own measurements: scored, left out, and learned from."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from gpuplan.accuracy.fit.calibrate import usable
from gpuplan.accuracy.fit.validate import fields, reckoned, without
from gpuplan.accuracy.points.aside import ASIDE, DRAFTED, TABLE, UNPLANNED
from gpuplan.accuracy.points.points import read_points
from gpuplan.accuracy.points.runs import by_run
from gpuplan.accuracy.predict import PRIORS, predict, reckon
from gpuplan.accuracy.reckon import Reckoned
from gpuplan.accuracy.show.document import _OVERVIEW, AGAIN, WAYS, page, plots, set_aside
from gpuplan.cli.main import main
from gpuplan.plan.model import Estimate
from gpuplan.report.measuring import spared
from gpuplan.resolve.calibration import folder_anchors
from gpuplan.sizing.calibration.anchors import Anchors
from tests.accuracy.test_accuracy import SERVED, written

SLOWER = 1.3
QWEN_DRAFTED = {"model": "qwen3.5-397b-a17b", "engine": "sglang 0.5.9", "tp": "4", "ep": "1"}
APART = "How far two sources are apart where they measured the same"
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


def test_explain_says_which_run_would_narrow_the_interval_and_what_that_saves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = tmp_path / "plain.yaml"
    manifest.write_text((MANIFEST % "").replace("second: 1,", "second: 40,"), "utf-8")
    assert main(["compile", str(manifest), "-o", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["explain", str(tmp_path / "own")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    before, _, after = said.partition("measuring one replica on 1 × l4, ")
    found = re.search(r"(\d+) replicas instead of (\d+) are enough: \$([\d.]+)/h less", after)
    assert found is not None
    fewer, count, saved = int(found[1]), int(found[2]), float(found[3])
    assert f"{count} × l4, {count} replicas" in before
    assert 0 < fewer < count
    assert saved > 0
    assert "narrows the time per output token there from" in after
    asked = re.search(
        r"(\d+) requests at once, prompts of ([\d,]+) tokens, answers of (\d+), .* where it is"
        r" ([\d.]+) ms as predicted, .* whose row has kv_cache_dtype (\w+)",
        after,
    )
    assert asked is not None
    batch, prompt, answer, milliseconds, cache = asked.groups()
    row = OWN | {"batch": batch, "input_len": prompt.replace(",", ""), "output_len": answer}
    (point,) = read_points([written(tmp_path / "own.csv", row | {"kv_cache_dtype": cache})])
    likely = predict(point, Anchors())
    assert isinstance(likely, Estimate)
    assert likely.value == pytest.approx(float(milliseconds), rel=0.03), "of the row that is meant"


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
    by_way = {way: without(points, way, anchored) for way in WAYS}
    text = page(points, by_way, {})
    row = "| [tpot](accuracy/tpot.svg) | `sizing.physics.serving.replica.Replica.times` | 15 |"
    (line,) = [line for line in text.splitlines() if line.startswith(row)]
    assert len(line.split("|")) == len(_OVERVIEW[0].split("|"))
    assert line.endswith(" – | 0 |")  # one source has all points: nothing would be left
    described = [c for c in ("own run", *WAYS[1:]) if f"| {c.replace('gpu', 'GPU')} | " in text]
    assert len(described) == len(WAYS)  # what each column means is said
    assert "fitted on all these points" in text
    later = page(points, by_way, {AGAIN: "| a table |", APART: "| another |"})
    assert "constants fitted again" in later
    assert f"## {APART}\n\n| another |" in later
    (drawn,) = plots(by_way["group"]).values()
    assert drawn.count("h0") == len(points)
    assert "ms</text>" in drawn


def test_what_a_site_measures_moves_its_other_models_too(calibrated: Path) -> None:
    """Everything ran slower there: so will a model and a GPU that it did not measure."""
    own, _ = folder_anchors(calibrated / "anchors")
    elsewhere = SERVED | {"source_repo": "another/place"}
    for row, moved in ((SERVED, True), (elsewhere, False)):
        effects = {}
        point = read_points([written(calibrated / "other.csv", row)])[0]
        found = reckon(point)
        assert isinstance(found, Reckoned)
        for effect in own("time_per_output_token").effects(found.features):
            effects[effect.name] = effect.value
        assert ("source" in effects) is moved
        assert effects.get("source", 1) > 0.02


@pytest.mark.parametrize(
    ("changed", "kept"),
    [
        ({}, False),
        ({"engine": "trtllm 1.2.0rc6.post2"}, True),
        ({"source_path": "another/table.csv"}, True),
        ({"model": "deepseek-v3"}, True),
        (QWEN_DRAFTED, False),
        (QWEN_DRAFTED | {"ep": "4"}, True),
        (QWEN_DRAFTED | {"gpu": "H200-SXM-141GB"}, True),
    ],
)
def test_runs_that_drafted_tokens_are_set_aside(
    tmp_path: Path, changed: dict[str, str], kept: bool
) -> None:
    """Where their source says so, and their neighbours stay."""
    row = {
        "model": "deepseek-r1",
        "gpu": "B200-SXM-180GB",
        "engine": "trtllm 1.2.0rc6.post3",
        "precision": "fp8",
        "tp": "8",
        "ep": "8",
        "batch": "4",
        "confidence": "A",
        "source_path": TABLE,
    }
    path = written(tmp_path / "points.csv", SERVED | row | changed)
    assert [p.confidence for p in read_points([path])] == ["A" if kept else "C"]
    anchored = fields(read_points([path]), alone=True)["time_per_output_token"]
    assert len(anchored.anchors) == kept, "and correct nothing"


@pytest.mark.parametrize(
    ("changed", "kept"),
    [
        ({}, False),
        ({"engine": "vllm 0.17.0"}, True),
        ({"engine": "sglang 0.5.10"}, True),
        ({"precision": "int4"}, True),
        ({"source_repo": "another/place"}, True),
    ],
)
def test_runs_with_a_setting_that_no_plan_writes_are_set_aside(
    tmp_path: Path, changed: dict[str, str], kept: bool
) -> None:
    row = {
        "model": "kimi-k2.5",
        "gpu": "B200-SXM-180GB",
        "engine": "sglang 0.5.9",
        "precision": "nvfp4",
        "confidence": "B",
        "source_repo": "cloudrift-ai/deplodock",
    }
    (point,) = read_points([written(tmp_path / "points.csv", SERVED | row | changed)])
    assert point.confidence == ("B" if kept else "C")


def test_the_page_says_which_points_are_set_aside_and_why() -> None:
    text = " ".join(set_aside().split())
    for reason in (*ASIDE.values(), *(why for _, why in (*DRAFTED, *UNPLANNED))):
        assert " ".join(reason.split()) in text
    assert "trtllm 1.1.0rc2.post2 deepseek-r1 fp8 H200-SXM-141GB TP8 EP8:" in text
    assert "cloudrift-ai/deplodock sglang 0.5.9 kimi-k2.5 nvfp4: `--quantization modelopt`" in text
    assert max(map(len, set_aside().splitlines())) <= 100


@pytest.mark.parametrize("quantity", ["time_per_output_token", "time_to_first_token"])
def test_of_a_gpu_that_nobody_measured_no_interval_is_narrower(quantity: str) -> None:
    """In standard deviations, of all that one's own measurements say nothing of."""
    *_, of_gpu, nothing = Anchors()(quantity).reaches
    for kind, low, high in nothing.kinds:
        assert low <= of_gpu.ends({nothing.by: kind})[0]
        assert high >= of_gpu.ends({nothing.by: kind})[1]


def test_one_value_under_two_names_is_one_run(tmp_path: Path) -> None:
    """A table shows a model under an alias: neither row may predict the other."""
    rows = (
        SERVED | {"split_group": "a", "value": "21.53"},
        SERVED | {"split_group": "b", "value": "21.53", "model": "llama3.3-70b"},
        SERVED | {"split_group": "c", "value": "21.53", "batch": "32"},
        SERVED | {"split_group": "d", "value": "22"},
        SERVED | {"split_group": "e", "value": "22", "tp": "8"},
    )
    points = by_run(read_points([written(tmp_path / "points.csv", *rows)]))
    assert [p.group for p in points] == ["a", "a", "c", "d", "e"]


def test_a_mean_that_has_a_server_s_start_in_it_corrects_nothing(tmp_path: Path) -> None:
    """Its time falls to less than a half where the load doubles; one that grows is used."""
    first = SERVED | {"metric": "ttft"}
    rows = (
        first | {"split_group": "start", "batch": "4", "value": "900"},
        first | {"split_group": "start", "batch": "16", "value": "300"},
        first | {"split_group": "grows", "batch": "4", "value": "150"},
        first | {"split_group": "grows", "batch": "16", "value": "300"},
        first | {"split_group": "lengths", "batch": "4", "value": "900", "input_len": "8192"},
        first | {"split_group": "lengths", "batch": "16", "value": "300"},
    )
    pairs = reckoned(read_points([written(tmp_path / "points.csv", *rows)]))["time_to_first_token"]
    kept = usable(pairs, PRIORS["time_to_first_token"])
    assert [point.group for point, _ in kept] == ["grows", "grows", "lengths", "lengths"]


BUNDLED = Path(__file__).parents[2] / "gpuplan/sizing/data/anchors/training_memory.json"
FAULTS = {
    "cut": lambda text: text[: len(text) // 2],
    "no text": lambda text: "",
    "brackets": lambda text: "[" * 5_000,
    "a number of many digits": lambda text: text.replace('"noise":', '"noise":' + "9" * 5_000),
    "not a number": lambda text: json.dumps(json.loads(text) | {"noise": float("nan")}),
    "no noise": lambda text: json.dumps(json.loads(text) | {"noise": 0}),
    "a word that is not there": lambda text: json.dumps(json.loads(text) | {"words": []}),
    "no reach": lambda text: json.dumps(json.loads(text) | {"reaches": []}),
    "another setting": lambda text: json.dumps(json.loads(text) | {"texts": ["colour"]}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_anchors_that_are_none_are_refused_by_file_and_fault(
    fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points = written(tmp_path / "points.csv", SERVED)
    folder = tmp_path / "anchors"
    folder.mkdir()
    text = BUNDLED.read_text(encoding="utf-8")
    path = folder / BUNDLED.name
    path.write_text(text, encoding="utf-8")
    assert main(["accuracy", str(points), "--anchors", str(folder)]) == 0
    capsys.readouterr()
    path.write_text(FAULTS[fault](text), encoding="utf-8")
    assert main(["accuracy", str(points), "--anchors", str(folder)]) == 2
    assert "training_memory.json holds no anchors: " in " ".join(capsys.readouterr().err.split())


def test_fewer_replicas_save_whole_nodes_alone() -> None:
    """A node is paid for until it is empty."""
    work = {"replicas": 3, "gpu_count": 6}
    alone = {"gpus_per_node": 2, "idle_gpus": 0, "usd_per_hour": 5.0}
    assert spared(work, 1, alone) == "1 replica instead of 3 is enough: $10.00/h less"
    large = {"gpus_per_node": 8, "idle_gpus": 2, "usd_per_hour": 40.0}
    spare = "2 replicas instead of 3 are enough: 2 GPUs of paid nodes to spare"
    assert spared(work, 2, large) == spare
    assert spared(work, 2, large | {"idle_gpus": 6}).endswith(": $40.00/h less")
    assert spared(work, 2, alone | {"usd_per_hour": None}).endswith(": 1 node less")
    assert spared(work, 3, alone) == ""


def test_the_answer_says_what_a_measurement_would_save(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = tmp_path / "plain.yaml"
    manifest.write_text((MANIFEST % "").replace("second: 1,", "second: 40,"), "utf-8")
    assert main(["compile", str(manifest), "-o", str(tmp_path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    found = re.search(r"uncertain (\d+) replicas instead of (\d+) are enough, \$([\d.]+)/h", said)
    assert found is not None
    assert int(found[1]) < int(found[2])
