"""Training points: how rows become runs, and how far predictions are from public measurements."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from gpuplan.accuracy.metrics import benchmarks
from gpuplan.accuracy.metrics.flops import flop_per_token
from gpuplan.accuracy.points.points import COLUMNS, Case, Point, read_points
from gpuplan.accuracy.points.settings import release, setting
from gpuplan.accuracy.predict import predict, reckon
from gpuplan.accuracy.reckon import Reckoned
from gpuplan.accuracy.show.score import scores
from gpuplan.models.model import Transformer
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Anchors
from tests.support.require import require

POINTS = Path(__file__).parents[3] / "shared/data/accuracy/training_public.csv"
BRIDGE = {
    "model": "llama3-70b",
    "gpu": "GB300",
    "engine": "Megatron-Bridge NeMo 26.04",
    "precision": "mxfp8",
    "metric": "tokens_per_s_per_gpu",
    "value": "4742",
    "n_gpus": "64",
    "tp": "1",
    "pp": "4",
    "cp": "1",
    "ep": "1",
    "seq_len": "8192",
    "batch": "1",
    "global_batch": "256",
    "sharding": "distributed-optimizer",
    "method": "pretrain",
    "notes": "VP=5",
}
MIXTURE = {**BRIDGE, "model": "qwen3-30b-a3b", "n_gpus": "8", "pp": "1", "ep": "8"}
MIXTURE |= {"seq_len": "4096", "batch": "8", "global_batch": "512", "notes": "VP=n/a"}
MLPERF = {
    "model": "llama3.1-405b",
    "gpu": "H100-SXM-80GB",
    "engine": "NVIDIA NeMo Framework Release 25.01",
    "precision": "fp8?",
    "metric": "samples_per_s_per_gpu",
    "value": "0.0408",
    "n_gpus": "512",
    "seq_len": "8192",
    "global_batch": "1152",
    "method": "pretrain",
    "notes": "MLPerf Training v5.0 closed/NVIDIA; nodes=64; grad_accum=288.0; config=x.sh",
    "source_repo": "mlcommons/training_results_v5.0",
    "source_path": "NVIDIA/results/eos-dfw_n64_ngc25.01_nemo/llama31_405b/",
}
SOURCED = ("id", "hf_id", "source_repo", "source_path", "locator", *COLUMNS)


def point(folder: Path, row: dict[str, str], **changes: str) -> Point:
    path = folder / "points.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, SOURCED, restval="")
        writer.writeheader()
        writer.writerow({"id": "p", **row, **changes})
    return read_points([path])[0]


def case(folder: Path, row: dict[str, str], **changes: str) -> Case:
    found = point(folder, row, **changes).case
    assert isinstance(found, Case), found
    return found


def formula(folder: Path, row: dict[str, str], **changes: str) -> float:
    found = reckon(point(folder, row, **changes))
    assert isinstance(found, Reckoned), found
    return found.value


def estimate(folder: Path, row: dict[str, str], **changes: str) -> Estimate:
    found = predict(point(folder, row, **changes), Anchors())
    assert isinstance(found, Estimate), found
    return found


def test_micro_batches_hide_a_pipelines_bubble_and_stages_in_turn_shorten_it(
    tmp_path: Path,
) -> None:
    many = formula(tmp_path, BRIDGE, global_batch="1024")
    assert many > formula(tmp_path, BRIDGE) > formula(tmp_path, BRIDGE, notes="VP=n/a")
    assert formula(tmp_path, BRIDGE, global_batch="32") < 0.8 * many


@pytest.mark.parametrize(
    ("changes", "slower"),
    [
        ({"tp": "4", "pp": "1", "notes": ""}, {"tp": "8", "pp": "1", "notes": ""}),
        ({"gpu": "GB300"}, {"gpu": "GB200"}),
        ({"precision": "nvfp4"}, {"precision": "mxfp8"}),
        ({"precision": "mxfp8"}, {"precision": "bf16"}),
        ({"seq_len": "4096"}, {"seq_len": "32768"}),
    ],
)
def test_what_makes_a_step_slower(
    tmp_path: Path, changes: dict[str, str], slower: dict[str, str]
) -> None:
    assert formula(tmp_path, BRIDGE, **changes) > formula(tmp_path, BRIDGE, **slower)


def test_experts_on_other_nodes_cost_their_network(tmp_path: Path) -> None:
    near = formula(tmp_path, MIXTURE, gpu="B200-SXM-180GB", n_gpus="64", ep="8")
    assert near > formula(tmp_path, MIXTURE, gpu="B200-SXM-180GB", n_gpus="64", ep="64")


def test_four_bits_bring_experts_nothing_until_somebody_measured_it(tmp_path: Path) -> None:
    known, unknown = (estimate(tmp_path, MIXTURE, precision=p) for p in ("mxfp8", "nvfp4"))
    assert formula(tmp_path, MIXTURE, precision="nvfp4") == formula(tmp_path, MIXTURE)
    assert unknown.basis == "extrapolated"
    assert known.basis == "calibrated"
    assert unknown.high / unknown.low > 1.1 * known.high / known.low


def test_a_step_and_its_rate_are_one_prediction(tmp_path: Path) -> None:
    rate = formula(tmp_path, MLPERF)
    seconds = formula(tmp_path, MLPERF, metric="train_step_time")
    logged = formula(tmp_path, MLPERF, metric="reported_throughput")
    assert seconds == pytest.approx(1152 / (512 * rate))
    assert logged == pytest.approx(512 * rate)


def test_logs_of_mlperf_tell_how_many_gpus_hold_a_replica(tmp_path: Path) -> None:
    found = setting(case(tmp_path, MLPERF))
    assert not isinstance(found, str)
    division = found.division
    assert (division.tensor, division.pipeline, division.context) == (8, 8, 2)
    assert (division.replicas, found.batch, found.micro) == (4, 1152, 1)


NEMO = {
    **BRIDGE,
    "model": "gpt3-175b",
    "gpu": "H100-SXM-80GB",
    "engine": "Megatron-Bridge NeMo 24.07",
    "precision": "fp8",
    "n_gpus": "512",
    "tp": "4",
    "pp": "8",
    "seq_len": "2048",
    "batch": "2",
    "global_batch": "2048",
    "notes": "VP=6",
}
TITAN = {
    **BRIDGE,
    "model": "llama3.1-8b",
    "gpu": "H100-SXM-80GB",
    "engine": "torchtitan 2024-12",
    "precision": "bf16",
    "n_gpus": "8",
    "pp": "1",
    "sharding": "FSDP",
    "recompute": "selective",
    "batch": "2",
    "global_batch": "16",
    "notes": "8 GPUs FSDP + compile",
}


def test_a_benchmarks_model_outside_the_benchmark_is_rated_for_each_gpu(tmp_path: Path) -> None:
    """NVIDIA published 782 tokens a second and GPU; half a million GPUs' worth is no answer."""
    found = estimate(tmp_path, NEMO)
    assert found.low < 782 < found.high
    assert formula(tmp_path, NEMO, metric="tokens_per_s") == pytest.approx(
        512 * formula(tmp_path, NEMO)
    )


def test_releases_of_nemo_are_counted_in_steps_of_two_months() -> None:
    steps = [release(f"NeMo {r}") for r in ("24.07", "25.04", "25.07", "25.09", "25.11", "26.02")]
    assert steps == [-7.0, -2.5, -1.0, 0.0, 1.0, 2.0]
    assert release("NeMo 26.12") == release("NeMo 27.12") == 5.0, "later than anybody measured"


def test_old_releases_counted_attention_twice_and_none_in_fine_tuning(tmp_path: Path) -> None:
    """As both columns of NeMo's table of 24.07 tell: 776 TFLOP/s and 16,847 tokens/s."""
    row = NEMO | {"model": "llama2-7b", "seq_len": "4096", "tp": "1", "pp": "1", "n_gpus": "8"}
    row |= {"batch": "1", "global_batch": "128", "notes": ""}
    for method, counted in (("pretrain", 776e3 / 16_847), ("sft", 682e3 / 17_120)):
        rate, flop = (
            formula(tmp_path, row, method=method, metric=m)
            for m in ("tokens_per_s_per_gpu", "model_tflops_per_gpu")
        )
        assert 1e3 * flop / rate == pytest.approx(counted, rel=0.01)


def test_stages_that_a_table_leaves_out_are_those_of_its_scripts(tmp_path: Path) -> None:
    """NeMo's fine-tuning of 24.07, whose table has no column for virtual stages."""
    row = NEMO | {"model": "llama2-13b", "seq_len": "4096", "tp": "1", "pp": "4", "n_gpus": "8"}
    row |= {"method": "sft", "batch": "1", "global_batch": "32", "locator": "llama2-13b sft"}
    said = formula(tmp_path, row, notes="VP=1")
    assert said < formula(tmp_path, row, notes="VP=1", source_repo="NVIDIA/NeMo")
    assert formula(tmp_path, row, notes="VP=10") == pytest.approx(
        formula(tmp_path, row, notes="VP=1", source_repo="NVIDIA/NeMo")
    )


@pytest.mark.parametrize(
    "slower",
    [
        {"notes": "8 GPUs FSDP"},
        {"notes": "at 500 W; 8 GPUs FSDP + compile"},
        {"recompute": "full"},
        {"recompute": "selective", "engine": "torchtitan", "precision": "bf16", "cp": "2"},
    ],
)
def test_what_slows_torchtitan(tmp_path: Path, slower: dict[str, str]) -> None:
    fast = {"recompute": "none"} if "recompute" in slower else {}
    assert formula(tmp_path, TITAN, **fast) > formula(tmp_path, TITAN, **slower)


def test_grouped_kernels_speed_up_the_precision_that_they_were_measured_in(tmp_path: Path) -> None:
    def gain(precision: str) -> float:
        old, new = (
            formula(tmp_path, MIXTURE, engine=f"Megatron-Bridge NeMo {r}", precision=precision)
            for r in ("26.04", "26.06")
        )
        return new / old

    assert gain("mxfp8") > 1.2
    assert gain("bf16") < 1.1
    assert gain("nvfp4") < 1.1


def test_large_batches_of_bert_need_more_samples_as_measured(tmp_path: Path) -> None:
    """64 GPUs at 4,608 sequences took 0.89 minutes in round 4.0, eight at 768 took 5.3."""
    row = MLPERF | {"model": "bert-large", "metric": "time_to_train", "unit": "min", "seq_len": ""}
    row |= {"notes": "MLPerf Training v4.0 closed/Supermicro", "source_path": "bert/"}
    few, many = (
        formula(tmp_path, row, n_gpus=n, global_batch=b) for n, b in (("8", "768"), ("64", "4608"))
    )
    assert few == pytest.approx(5.3, rel=0.1)
    assert many == pytest.approx(0.89, rel=0.35)


def test_published_flop_per_second_are_those_of_the_published_tokens(tmp_path: Path) -> None:
    for row, published in ((BRIDGE, 449.2), (MIXTURE, 23.0)):
        of = case(tmp_path, row)
        told = setting(of)
        assert not isinstance(told, str)
        assert isinstance(of.model, Transformer)
        counted = flop_per_token(of.model, told) / 1e9
        assert counted == pytest.approx(published, rel=0.01)


def test_large_batches_need_more_samples_and_more_gpus_less_time(tmp_path: Path) -> None:
    row = {**MLPERF, "metric": "time_to_train", "model": "bert-large", "n_gpus": "8"}
    row |= {"global_batch": "768", "seq_len": "", "gpu": "H100-SXM-80GB"}
    minutes = formula(tmp_path, row)
    assert formula(tmp_path, row, n_gpus="64") < minutes / 4
    needed = [
        benchmarks.CONVERGENCE(benchmarks.needed(of, load) | {"samples_per_second": 1.0})[
            "samples_needed"
        ]
        for of in (case(tmp_path, row, global_batch=b) for b in ("768", "8192"))
        if not isinstance(load := benchmarks.load(of), str)
    ]
    assert needed[1] > needed[0]


@pytest.mark.parametrize("row", [BRIDGE, MIXTURE, MLPERF])
def test_no_interval_passes_what_the_products_allow(tmp_path: Path, row: dict[str, str]) -> None:
    found = reckon(point(tmp_path, row))
    assert isinstance(found, Reckoned)
    assert found.best is not None
    assert estimate(tmp_path, row).high <= found.best


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    for row, changes, reason in (
        (BRIDGE, {"seq_len": ""}, "the sequence length is not given"),
        (BRIDGE, {"n_gpus": "2"}, "the parallelism does not divide the GPUs"),
        (MLPERF, {"global_batch": ""}, "the global batch is not given"),
    ):
        assert predict(point(tmp_path, row, **changes), Anchors()) == reason


@pytest.mark.parametrize(
    ("metric", "kind", "most", "ninety"),
    [
        ("tokens_per_s_per_gpu", "", 0.03, 0.10),
        ("tokens_per_s_per_gpu", "mixture", 0.05, 0.15),
        ("model_tflops_per_gpu", "", 0.04, 0.12),
        ("step_time", "", 0.05, 0.15),
        ("train_step_time", "", 0.03, 0.10),
        ("samples_per_s_per_gpu", "", 0.03, 0.10),
        ("reported_throughput", "", 0.03, 0.10),
        ("time_to_train", "", 0.05, 0.12),
    ],
)
def test_public_points_are_met(metric: str, kind: str, most: float, ninety: float) -> None:
    """In the sample; `gpuplan accuracy --leave-out` scores without a point's own group."""
    if not POINTS.exists():
        require("points", f"{POINTS.name} is not at ../shared/data/accuracy")
    points = [p for p in read_points([POINTS]) if p.metric == metric and p.confidence != "C"]
    found = scores([(p, predict(p, Anchors())) for p in points])
    score = next(s for s in found if s.group == kind and s.category == ("kind" if kind else ""))
    assert score.error < most
    assert score.ninety < ninety
