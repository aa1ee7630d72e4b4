"""What servers print of their memory at their start, against what plans of them expect."""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from gpuplan.accuracy.points.points import Case, Point, read_points
from gpuplan.accuracy.predict import reckon
from gpuplan.plan.model import Estimate

LOGS = Path(__file__).parents[2] / "bench/points/memory_served_public.csv"
PRINTED = [p for p in read_points([LOGS]) if isinstance(p.case, Case)]
POINTS = [p for p in PRINTED if p.confidence != "C"]  # of C a form was read off, or too little told
METRICS = ("kv_cache_tokens", "kv_cache_memory", "weights_gpu_memory", "activation_memory")
FITTED = "llm-d-incubation/llm-d-planner"  # what the formulas' numbers were read off


def expected(point: Point, **changed: str) -> Estimate:
    """The prediction, with other settings than the log's."""
    assert isinstance(point.case, Case)
    case = replace(point.case, row={**point.case.row, **changed})
    answer = reckon(replace(point, case=case))
    assert isinstance(answer, Estimate), answer
    return answer


def log(metric: str, model: str, engine: str, **columns: str) -> Point:
    found = [
        p
        for p in PRINTED
        if p.metric == metric
        and isinstance(p.case, Case)
        and p.case.row["model"] == model
        and p.case.row["engine"] == engine
        and all(p.case.row[name] == value for name, value in columns.items())
    ]
    return found[0]


def within(point: Point) -> bool:
    told = expected(point)
    return told.low <= point.value <= told.high


@pytest.mark.parametrize("metric", METRICS)
def test_printed_intervals_hold_nine_in_ten_of_what_servers_print(metric: str) -> None:
    points = [p for p in POINTS if p.metric == metric]
    assert len(points) > 40
    assert sum(map(within, points)) / len(points) >= 0.86


@pytest.mark.parametrize("metric", ["kv_cache_tokens", "kv_cache_memory", "weights_gpu_memory"])
def test_intervals_hold_nine_in_ten_of_servers_that_nothing_was_read_off(metric: str) -> None:
    """A plan's interval is that of servers over more links than these have, and with releases
    before the sampler of today."""
    points = [p for p in POINTS if p.metric == metric and p.repository != FITTED]
    assert len({p.repository for p in points}) >= 4
    assert 0.86 <= sum(map(within, points)) / len(points) <= 0.95


def test_the_room_of_logs_that_no_number_was_read_off_is_known_to_a_few_percent() -> None:
    """Of releases whose sampler and graphs are those of today, on GPUs whose memory is known."""
    errors = defaultdict(list)
    for point in POINTS:
        release = point.case.row["engine"].partition(" ")[2] if isinstance(point.case, Case) else ""
        told = point.metric == "kv_cache_memory" and point.repository != FITTED
        if told and release in ("0.19.0", "0.24.0"):
            errors[point.repository].append(abs(expected(point).value / point.value - 1))
    assert len(errors) == 2
    assert max(median(of) for of in errors.values()) < 0.02


def test_a_larger_share_is_all_the_caches() -> None:
    point = log("kv_cache_memory", "llama-3.1-8b-instruct", "vllm 0.19.0", tp="1", precision="bf16")
    notes = point.case.row["notes"]  # type: ignore[union-attr]
    less = expected(point, notes=notes.replace("utilization 0.95", "utilization 0.75"))
    gib = 79.19 * (0.95 - 0.75)
    assert expected(point).value - less.value == pytest.approx(gib, rel=0.01)


@pytest.mark.parametrize(("tp", "most"), [("1", 0.21), ("2", 0.53)])
def test_the_room_beside_an_encoder_of_images_is_what_servers_print(tp: str, most: float) -> None:
    """Gemma 3 on GPUs of 16 and 32 GB, in GiB: without what its encoder takes, 1.3 to 2.8 more of
    cache were promised than there is. Two GPUs have half a GiB more than is said, as with models
    of text."""
    errors = []
    for point in PRINTED:
        row = point.case.row  # type: ignore[union-attr]
        told = point.metric == "kv_cache_memory" and "gemma-3" in row["hf_id"]
        if told and row["tp"] == tp:
            assert within(point), row
            errors.append(expected(point).value - point.value)
    assert len(errors) >= 5
    assert -most < min(errors)
    assert max(errors) < 0


def test_a_smaller_step_tries_fewer_images() -> None:
    """Gemma 3 12B on 16 GB: with 8,192 tokens a step, 32 images take most of what is free."""
    nvfp4 = {"hf_id": "holtmann/gemma-3-12b-it-NVFP4", "tp": "1", "gpu": "RTX 5070 Ti 16GB"}
    point = log("kv_cache_memory", "gemma-3-12b", "vllm 0.12.0", **nvfp4)
    notes = point.case.row["notes"]  # type: ignore[union-attr]
    less = expected(point, notes=notes.replace("batched_tokens 8192", "batched_tokens 2048"))
    assert expected(point).value == pytest.approx(point.value, rel=0.1)
    assert less.value > expected(point).value + 2


@pytest.mark.parametrize(
    ("model", "engine", "columns"),
    [
        ("gemma-3-4b-it", "vllm 0.10.0", {"tp": "1"}),
        ("gemma-3-12b", "vllm 0.12.0", {"tp": "2", "precision": "int4"}),
        ("gemma-3-27b-it", "vllm 0.19.0", {"tp": "1"}),
        ("llama-4-scout-17b-16e-instruct", "vllm 0.19.0", {"tp": "4"}),
    ],
)
def test_tables_of_positions_are_among_the_weights(
    model: str, engine: str, columns: dict[str, str]
) -> None:
    """Gemma 3 has positions of eight times its context, Llama 4 Scout ten million."""
    point = log("weights_gpu_memory", model, engine, **columns)
    assert expected(point).value == pytest.approx(point.value, rel=0.005)


def test_the_checkpoint_with_attention_in_eight_bits_leaves_room_beside_its_encoder() -> None:
    """Qwen3.6 35B on an RTX 5090: one image of 16,384 tokens is tried, more than a step has."""
    point = log("kv_cache_memory", "qwen3.6-35b-a3b", "vllm 0.24.0")
    assert expected(point).value == pytest.approx(point.value, rel=0.03)


def test_places_cost_memory_that_a_release_before_0_17_sorted_logits_in() -> None:
    """Qwen3-14B on an H100, 1024 places: 3.4 GiB more for the cache from 0.16 to 0.17."""
    before, after = (log("kv_cache_memory", "qwen3-14b", f"vllm 0.{n}.0") for n in (16, 17))
    printed = after.value - before.value
    assert expected(after).value - expected(before).value == pytest.approx(printed, rel=0.03)
    notes = after.case.row["notes"]  # type: ignore[union-attr]
    few = expected(after, notes=notes.replace("max_num_seqs 1024", "max_num_seqs 64"))
    assert few.value - expected(after).value > 1


def test_graphs_stand_within_the_share_from_0_21_on() -> None:
    point = log("kv_cache_memory", "llama-3.1-8b-instruct", "vllm 0.19.0", tp="1", precision="bf16")
    graphs = expected(point).value - expected(point, engine="vllm 0.27.1").value
    assert 0.5 < graphs < 1.9  # GiB that these logs print of graphs


def test_layers_with_a_window_count_as_a_request_of_the_longest_length_fills_them() -> None:
    """Gemma 3 27B: ten layers see every token, and 52 with a window take the place of sixty."""
    tokens = log("kv_cache_tokens", "gemma-3-27b-it", "vllm 0.19.0")
    memory = log("kv_cache_memory", "gemma-3-27b-it", "vllm 0.19.0")
    a_token = expected(memory).value * 2**30 / expected(tokens).value
    assert a_token == pytest.approx(memory.value * 2**30 / tokens.value, rel=0.002)
    notes = tokens.case.row["notes"]  # type: ignore[union-attr]
    longer = expected(tokens, notes=notes.replace("max_model_len 8192", "max_model_len 131072"))
    assert longer.value > 2 * expected(tokens).value


@pytest.mark.parametrize(("tp", "printed"), [("1", 13.64), ("2", 7.01)])
def test_four_bit_experts_take_whole_blocks(tp: str, printed: float) -> None:
    """gpt-oss has experts of 2880 x 2880, which its kernels fill up."""
    point = log("weights_gpu_memory", "gpt-oss-20b", "vllm 0.19.0", tp=tp)
    assert point.value == printed
    assert expected(point).value == pytest.approx(printed, rel=0.03)
    plain = expected(point, engine="sglang 0.5.16")
    assert plain.value < expected(point).value / 1.04


def test_every_log_says_where_and_how_it_was_started() -> None:
    with LOGS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len({row["source_repo"] for row in rows}) > 10
    for row in rows:
        assert row["source_path"]
        assert row["locator"]
        assert row["licence"]
        of_a_pool = row["metric"] in ("kv_cache_tokens", "kv_cache_memory")
        if of_a_pool and row["confidence"] != "C":
            assert "utilization" in row["notes"] or "fraction" in row["notes"], row["id"]
            assert row["engine"].count(" ") == 1, row["id"]
    assert len({row["id"] for row in rows}) == len(rows)
