"""What the page of accuracy says that plans rest on is what `compile` runs."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuplan.accuracy.metrics.offline import ONE_REQUEST
from gpuplan.accuracy.points.points import COLUMNS, Point, read_points
from gpuplan.accuracy.predict import PLANNED, PREDICTORS, function, predict, rests
from gpuplan.accuracy.show.score import scores
from gpuplan.accuracy.show.write import table
from gpuplan.cli.main import main
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Anchors

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
SERVED = {
    "model": "llama3.1-70b",
    "gpu": "H100-SXM-80GB",
    "engine": "vllm 0.24",
    "precision": "fp8",
    "tp": "4",
    "input_len": "1024",
    "output_len": "256",
    "batch": "16",
}
TRAINED = {
    "model": "llama3.1-8b",
    "gpu": "H100-SXM-80GB",
    "engine": "HF Trainer",
    "precision": "bf16",
    "n_gpus": "8",
    "seq_len": "2048",
    "batch": "1",
    "method": "lora",
}
SDXL = {
    "model": "stable-diffusion-xl",
    "gpu": "H100-SXM-80GB",
    "engine": "TensorRT 10.2",
    "precision": "fp8",
    "n_gpus": "8",
}
FLUX = {
    "model": "FLUX.1-dev",
    "gpu": "H100-SXM-80GB",
    "engine": "xDiT",
    "precision": "bf16",
    "input_len": "1024x1024",
    "output_len": "28 steps",
}
READ = {
    "model": "bge-large-en-v1.5",
    "hf_id": "BAAI/bge-large-en-v1.5",
    "gpu": "L4",
    "engine": "tei 0.6",
    "precision": "fp16",
    "n_gpus": "1",
    "input_len": "449",
    "batch": "256",
}
LOOKED = {
    "kind": "inference",
    "model": "vit_base_patch16_224",
    "gpu": "RTX-4090-24GB",
    "precision": "amp fp16",
    "input_len": "224px",
    "batch": "256",
    "engine": "timm pt2.4",
    "unit": "images/s",
}
ROWS = {
    "input_tokens_per_s": READ,
    "images_per_s": LOOKED,
    **dict.fromkeys(("tpot", "ttft"), SERVED),
    **dict.fromkeys(
        ("kv_cache_tokens", "kv_cache_memory", "weights_gpu_memory", "activation_memory"),
        SERVED | {"unit": "GB per GPU"},
    ),
    **dict.fromkeys(
        (
            "step_time",
            "train_step_time",
            "tokens_per_s_per_gpu",
            "tokens_per_s",
            "model_tflops_per_gpu",
            "samples_per_s_per_gpu",
            "reported_throughput",
        ),
        TRAINED,
    ),
    "peak_gpu_memory_train": TRAINED | {"unit": "GiB"},
    **dict.fromkeys(("image_latency", "video_latency"), FLUX),
    **dict.fromkeys(("mlperf_offline_samples_per_s", "mlperf_server_samples_per_s"), SDXL),
}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each function of `PLANNED` is called."""
    counted: Counter[str] = Counter()
    for planner in set(PLANNED.values()):
        owner, name = planner.__qualname__.split(".")
        spied = _spied(planner, counted)
        monkeypatch.setattr(_class(planner, owner), name, spied)
    return counted


def _class(planner: Callable[..., object], owner: str) -> Any:
    return planner.__globals__[owner]


def _spied(planner: Callable[..., object], counted: Counter[str]) -> Callable[..., object]:
    def spy(*arguments: object, **named: object) -> object:
        counted[planner.__qualname__] += 1
        return planner(*arguments, **named)

    return spy


def point(folder: Path, metric: str, **changed: str) -> Point:
    path = folder / "points.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ("id", "hf_id", "kind", *COLUMNS), restval="")
        writer.writeheader()
        writer.writerow({"id": "p", "metric": metric, "value": "1"} | ROWS[metric] | changed)
    [read] = read_points([path])
    return read


def test_compile_calls_every_function_that_the_page_names(
    calls: Counter[str], tmp_path: Path
) -> None:
    assert main(["compile", *map(str, EXAMPLES), "-o", str(tmp_path)]) == 0
    assert set(calls) == {planner.__qualname__ for planner in PLANNED.values()}


@pytest.mark.parametrize("metric", sorted(PLANNED))
def test_a_metric_of_plans_is_predicted_by_the_function_that_the_page_names(
    metric: str, calls: Counter[str], tmp_path: Path
) -> None:
    measured = point(tmp_path, metric)
    assert rests(measured)
    calls.clear()
    assert isinstance(predict(measured, Anchors()), Estimate)
    assert calls[PLANNED[metric].__qualname__] > 0
    assert function(metric, planned=True).endswith(PLANNED[metric].__qualname__)


@pytest.mark.parametrize(
    ("metric", "changed"),
    [
        ("image_latency", {"n_gpus": "4"}),
        ("peak_gpu_memory_train", {"engine": "torchtune"}),
        ("ttft", {"engine": "transformers", "notes": ONE_REQUEST, "precision": "bf16"}),
    ],
)
def test_no_plan_rests_on_settings_that_no_plan_has(
    metric: str, changed: dict[str, str], tmp_path: Path
) -> None:
    """Images on several GPUs, frameworks that are not emitted, engines without a server."""
    assert not rests(point(tmp_path, metric, **changed))


def test_other_metrics_rest_on_nothing_that_plans_call() -> None:
    for metric in PREDICTORS.keys() - PLANNED.keys():
        assert function(metric, planned=False).startswith("accuracy.metrics.")


def test_the_table_tells_apart_what_plans_rest_on(tmp_path: Path) -> None:
    several = point(tmp_path, "image_latency", n_gpus="4")
    pairs = [(p, predict(p, Anchors())) for p in (several, point(tmp_path, "tpot"))]
    planned, only = table(scores(pairs), ()).split("\n\n")
    assert planned.startswith("what plans rest on")
    assert only.startswith("only predicted")
    assert "tpot" in planned
    assert "image_latency" in only
