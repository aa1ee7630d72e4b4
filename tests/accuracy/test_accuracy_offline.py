"""Offline throughput, MLPerf and single requests: what predictions of measured points promise."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from gpuplan.accuracy.data.offline import CONSTANTS
from gpuplan.accuracy.metrics.mlperf import ENGINE, LARGEST_BATCH, tokens
from gpuplan.accuracy.metrics.offline import requests
from gpuplan.accuracy.points.formats import quantized
from gpuplan.accuracy.points.points import Case, read_points
from gpuplan.accuracy.predict import predict, reckon
from gpuplan.accuracy.protocols.ranks import runner
from gpuplan.accuracy.protocols.throughput import Pace, queued
from gpuplan.accuracy.reckon import Reckoned
from gpuplan.accuracy.show.score import score
from gpuplan.catalog.load import load_catalog
from gpuplan.models.load import bundled
from gpuplan.models.model import Transformer
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Anchors
from gpuplan.sizing.physics.serving.service import Division
from tests.accuracy.test_accuracy import POINTS, written
from tests.support.require import require

QUEUED = {
    "model": "llama3.3-70b",
    "gpu": "H200-SXM-141GB",
    "engine": "trtllm 1.0",
    "precision": "fp8",
    "metric": "max_output_tokens_per_s_per_gpu",
    "value": "2000",
    "tp": "2",
    "n_gpus": "2",
    "input_len": "1000",
    "output_len": "1000",
    "batch": "max",
}
STATIC = QUEUED | {"metric": "output_tokens_per_s_per_gpu", "engine": "trtllm 0.9.0", "batch": "64"}
FIRST = QUEUED | {
    "metric": "ttft",
    "engine": "trtllm 0.9.0",
    "batch": "1",
    "output_len": "1",
    "notes": "batch-1 first-token latency, no scheduler/HTTP overhead",
}
MLPERF = {
    "model": "llama2-70b",
    "gpu": "H200-SXM-141GB",
    "engine": "TensorRT 10.11, CUDA 12.9",
    "precision": "fp8",
    "metric": "mlperf_offline_tokens_per_s",
    "value": "30000",
    "n_gpus": "8",
    "notes": "MLPerf Inference v5.1 closed NVIDIA scenario=Offline",
}
ALONE = {
    "model": "qwen2.5-7b",
    "gpu": "A100-SXM-80GB",
    "engine": "vllm 0.6.3",
    "precision": "bf16",
    "metric": "speed_in_plus_out_tokens_per_s_bs1",
    "value": "80",
    "n_gpus": "1",
    "input_len": "6144",
    "output_len": "2048",
    "batch": "1",
}


def reckoned(tmp_path: Path, *rows: dict[str, str]) -> list[Reckoned]:
    answers = [reckon(point) for point in read_points([written(tmp_path / "m.csv", *rows)])]
    assert all(isinstance(answer, Reckoned) for answer in answers), answers
    return [answer for answer in answers if isinstance(answer, Reckoned)]


def estimates(tmp_path: Path, *rows: dict[str, str]) -> list[Estimate]:
    points = read_points([written(tmp_path / "m.csv", *rows)])
    answers = [predict(point, Anchors()) for point in points]
    assert all(isinstance(answer, Estimate) for answer in answers), answers
    return [answer for answer in answers if isinstance(answer, Estimate)]


def reason(tmp_path: Path, row: dict[str, str]) -> str:
    (point,) = read_points([written(tmp_path / "m.csv", row)])
    answer = predict(point, Anchors())
    assert isinstance(answer, str)
    return answer


@pytest.mark.parametrize("row", [QUEUED, STATIC, MLPERF, ALONE])
def test_no_rate_beats_the_roofline(tmp_path: Path, row: dict[str, str]) -> None:
    (found,) = reckoned(tmp_path, row)
    assert found.best is not None
    assert 0.02 * found.best < found.value < found.best


def test_longer_sequences_leave_room_for_fewer_and_slow_the_maximum(tmp_path: Path) -> None:
    short, long = reckoned(tmp_path, QUEUED, QUEUED | {"input_len": "20000"})
    assert long.value < short.value / 4


def test_more_gpus_for_a_replica_never_bring_more_of_each(tmp_path: Path) -> None:
    rows = [QUEUED | {"tp": n, "n_gpus": n} for n in ("1", "2", "4", "8")]
    values = [found.value for found in reckoned(tmp_path, *rows)]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 0.8 * values[0]


def test_a_run_that_ends_before_the_gpus_are_full_is_slower() -> None:
    """1,500 requests of 4,096 tokens never fill what 30,000 would."""
    assert requests(128, 128) == 30_000
    assert requests(128, 4096) == requests(1024, 2048) == 1500
    assert requests(60_000, 1000) == 1000


def test_mixtures_attend_in_parallel_since_release_1(tmp_path: Path) -> None:
    row = QUEUED | {"model": "qwen3-235b-a22b", "tp": "8", "n_gpus": "8"}
    tensor = row | {"engine": "trtllm 0.20"}
    data = row | {"engine": "trtllm 0.20", "tp": "1", "dp": "8"}
    found, own, apart = reckoned(tmp_path, row, tensor, data)
    assert found.value == apart.value
    assert found.value > own.value


def test_a_gpu_that_the_weights_do_not_fit_has_no_maximum(tmp_path: Path) -> None:
    row = QUEUED | {"model": "llama3.1-405b", "tp": "1", "n_gpus": "1"}
    assert "does not fit" in reason(tmp_path, row)


def test_ranks_of_attention_share_the_experts(tmp_path: Path) -> None:
    """671 GB of weights in fp8 fit eight ranks of 141 GB, not one."""
    row = QUEUED | {"model": "deepseek-r1", "tp": "1", "dp": "8", "ep": "8", "n_gpus": "8"}
    (found,) = reckoned(tmp_path, row)
    assert found.value > 100
    assert "does not fit" in reason(tmp_path, row | {"dp": "1", "ep": "1"})


def test_a_static_batch_is_slower_to_the_first_token_on_a_slower_gpu(tmp_path: Path) -> None:
    old = {"gpu": "A100-SXM-80GB", "precision": "fp16"}
    fast, slow, first, late = reckoned(tmp_path, STATIC, STATIC | old, FIRST, FIRST | old)
    assert slow.value < fast.value
    assert late.value > first.value


def test_another_engine_was_not_measured_so(tmp_path: Path) -> None:
    assert "vllm" in reason(tmp_path, STATIC | {"engine": "vllm 0.9"})


@pytest.mark.parametrize("model", ["llama2-70b", "llama3.1-8b", "llama3.1-405b"])
def test_limits_of_latency_cost_throughput(tmp_path: Path, model: str) -> None:
    base = MLPERF | {"model": model}
    rows = [base | {"metric": f"mlperf_{s}_tokens_per_s"} for s in ("offline", "server")]
    rows.append(base | {"metric": "mlperf_interactive_tokens_per_s"})
    offline, server, interactive = reckoned(tmp_path, *rows)
    assert interactive.value < server.value < offline.value


def test_tokens_come_within_the_limit_of_the_scenario(tmp_path: Path) -> None:
    at = {"server": 200, "interactive": 40}
    rows = [
        MLPERF
        | {"metric": "mlperf_server_tpot_mean", "notes": f"Inference v5.1 scenario={s.title()}"}
        for s in at
    ]
    for found, limit in zip(estimates(tmp_path, *rows), at.values(), strict=True):
        assert 0.3 * limit < found.value < limit


def test_an_8_bit_label_hides_4_bits_where_the_gpu_has_them(tmp_path: Path) -> None:
    amd = MLPERF | {"gpu": "MI355X-288GB"}
    named, hidden = reckoned(tmp_path, amd | {"precision": "fp4"}, amd)
    assert named.value == hidden.value


def test_systems_of_several_kinds_of_gpu_are_not_predicted(tmp_path: Path) -> None:
    (point,) = read_points([written(tmp_path / "m.csv", MLPERF)])
    assert isinstance(point.case, Case)
    system = "closed/x/results/8xMI300X_2xEPYC_9534_8xMI355X/llama2-70b"
    mixed = replace(point.case, row={**point.case.row, "source_path": system})
    assert tokens(mixed) == "a system of several kinds of GPU"
    alone = {"source_path": "closed/x/results/8xMI355X_2xEPYC_9965/llama2-70b"}
    assert isinstance(tokens(replace(mixed, row={**mixed.row, **alone})), Reckoned)


def test_each_round_writes_faster_and_an_unknown_one_is_said(tmp_path: Path) -> None:
    """The same system with the software of half a year later."""
    notes = "MLPerf Inference v{} closed NVIDIA scenario=Offline"
    rounds = ("4.0", "4.1", "5.0", "5.1", "6.0")
    rates = [
        r.value for r in reckoned(tmp_path, *(MLPERF | {"notes": notes.format(r)} for r in rounds))
    ]
    assert [b / a for a, b in pairwise(rates)] == pytest.approx([rates[1] / rates[0]] * 4)
    assert rates[1] > rates[0]
    for unknown in (notes.format("3.1"), "scenario=Offline"):
        assert "no round of MLPerf Inference" in reason(tmp_path, MLPERF | {"notes": unknown})


def test_gpt_oss_has_the_lengths_of_its_reference(tmp_path: Path) -> None:
    offline, server = reckoned(
        tmp_path,
        MLPERF | {"model": "gpt-oss-120b", "precision": "fp4"},
        MLPERF | {"model": "gpt-oss-120b", "metric": "mlperf_server_tokens_per_s"},
    )
    assert server.value < offline.value


def test_a_16_bit_label_of_nvidia_hides_fp8(tmp_path: Path) -> None:
    named, hidden = reckoned(tmp_path, MLPERF, MLPERF | {"precision": "fp16"})
    assert named.value == hidden.value


def test_systems_scale_with_their_gpus(tmp_path: Path) -> None:
    one, rack = reckoned(tmp_path, MLPERF, MLPERF | {"n_gpus": "72"})
    assert rack.value == pytest.approx(9 * one.value)


def test_gptj_generates_four_beams(tmp_path: Path) -> None:
    """Beams cost: fewer prompts than the generated tokens of one beam alone would allow."""
    row = MLPERF | {"model": "gptj-6b", "metric": "mlperf_offline_samples_per_s"}
    (found,) = estimates(tmp_path, row)
    assert 100 < found.value < 600


def test_another_benchmark_needs_its_lengths(tmp_path: Path) -> None:
    row = MLPERF | {"model": "qwen2.5-7b"}
    assert "qwen2.5-7b" in reason(tmp_path, row)
    told = row | {"input_len": "300", "output_len": "300"}
    known, new = estimates(tmp_path, MLPERF, told)
    assert new.value > known.value
    assert new.high / new.low > known.high / known.low


def test_qwen3_counts_the_prompt_too(tmp_path: Path) -> None:
    """A prompt is read much faster than an answer is written."""
    older, newer = reckoned(
        tmp_path, ALONE, ALONE | {"model": "qwen3-8b", "engine": "sglang 0.4.6", "gpu": "H20-96GB"}
    )
    assert newer.value > 2.5 * older.value


def test_python_launches_are_slower_than_graphs(tmp_path: Path) -> None:
    graphs, eager, long, old = reckoned(
        tmp_path,
        ALONE,
        ALONE | {"engine": "transformers 4.46"},
        ALONE | {"engine": "vllm 0.4.2", "input_len": "14336"},
        ALONE | {"engine": "vllm 0.4.2", "input_len": "1"},
    )
    assert eager.value < graphs.value / 1.5
    assert long.value < old.value


def test_fewer_bits_are_faster_alone(tmp_path: Path) -> None:
    whole, packed = reckoned(tmp_path, ALONE, ALONE | {"precision": "gptq-int4"})
    assert packed.value > whole.value


def test_a_model_never_measured_gets_a_wider_interval(tmp_path: Path) -> None:
    known, new = estimates(tmp_path, QUEUED, QUEUED | {"model": "qwen2-72b"})
    assert new.high / new.low > known.high / known.low
    assert known.basis == "calibrated"
    assert new.basis == "extrapolated"


@pytest.mark.parametrize(
    ("metric", "most"),
    [
        ("max_output_tokens_per_s_per_gpu", 0.06),
        ("output_tokens_per_s_per_gpu", 0.05),
        ("mlperf_offline_tokens_per_s", 0.08),
        ("mlperf_server_tokens_per_s", 0.12),
        ("speed_in_plus_out_tokens_per_s_bs1", 0.06),
    ],
)
def test_public_points_are_met(metric: str, most: float) -> None:
    path = POINTS / "inference_public.csv"
    if not path.exists():
        require("points", f"{path.name} is not at ../shared/data/accuracy")
    points = [p for p in read_points([path]) if p.metric == metric and isinstance(p.case, Case)]
    pairs = [(p, e) for p in points if isinstance(e := predict(p, Anchors()), Estimate)]
    assert len(pairs) > 0.97 * len(points)
    found = score(pairs, metric, planned=False)
    assert found.error < most
    assert found.covered is not None
    assert found.covered > 0.85


def test_long_prompts_that_come_at_random_leave_less_room_the_sooner_a_first_token_must_come() -> (
    None
):
    """Llama 3.1 405B in MLPerf has 4.5 s to its first token in the interactive scenario, 6 s in
    the other, and prompts of 9,400 tokens: they bind before the time between tokens does."""
    model, gpu = bundled("meta-llama/Llama-3.1-405B"), load_catalog().gpu("b200-sxm-180gb")
    assert isinstance(model, Transformer)
    assert gpu is not None
    on = runner(
        model, gpu, ENGINE, quantized(model, gpu, "nvfp4"), Division(tensor_parallel_size=4)
    )

    def paced(first: float | None) -> Pace:
        found = queued(
            on,
            CONSTANTS["mlperf"],
            prompt=9428,
            output=685,
            most=LARGEST_BATCH,
            limit=0.08,
            first=first,
        )
        assert found is not None
        return found

    rates = [paced(first).rate for first in (3.0, 4.5, 6.0, 1000.0)]
    assert rates == sorted(rates)
    assert rates[0] < 0.9 * rates[-1]
    assert paced(1000.0).rate == paced(None).rate
    assert paced(4.5).token_seconds < 0.08
