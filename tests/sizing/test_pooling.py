"""Embedding models and rerankers: beside simulated queues, and refused where nothing does them."""

from __future__ import annotations

import bisect
import itertools
import random
from pathlib import Path
from typing import Any

import pytest

from gpuplan.catalog.load import load_catalog
from gpuplan.pipeline import compile_files
from gpuplan.plan.model import Workload
from gpuplan.sizing.data.pooling import TEI_IMAGE
from gpuplan.sizing.decide.messages import describe
from gpuplan.sizing.kinds.pooling.search import no_program
from gpuplan.sizing.physics.batching import latency

HEAD = """\
apiVersion: gpuplan.dev/v1
name: search
platform: {target: kubernetes, provider: aws, gpus: [l4, l40s, h100-sxm-80gb]}
workloads:
- name: reader
  task: inference
"""
LOAD = "  load: {requests_per_second: {mean: 20, peak: 60}, input_tokens: {mean: 200, p95: 500}}\n"


def compiled(folder: Path, text: str) -> Any:
    path = folder / "search.yaml"
    path.write_text(HEAD + text, encoding="utf-8")
    return compile_files([path], plan_only=True)


def workload(folder: Path, text: str) -> Workload:
    result = compiled(folder, text)
    (stack,) = result.stacks
    one: Workload = stack.plan.workloads[0]
    return one


def problems(folder: Path, text: str) -> str:
    found = compiled(folder, text)
    assert not found.stacks
    return "\n".join(d.message for d in found.problems)


def simulated(added: float, fixed: float, load: float, sizes: float) -> list[float]:
    """Latencies of a server that takes all that wait into its next step; `sizes` is the square of
    the coefficient of variation of what a request adds."""
    chance, now, arrivals = random.Random(7), 0.0, []
    for _ in range(60_000):
        now += chance.expovariate(load / added)
        arrivals.append(now)
    shape = 1 / sizes if sizes else 0.0
    works = [added * (chance.gammavariate(shape, 1 / shape) if sizes else 1.0) for _ in arrivals]
    before = [0.0, *itertools.accumulate(works)]
    ended: list[float] = []
    now, place = 0.0, 0
    while place < len(arrivals):
        now = max(now, arrivals[place])
        after = bisect.bisect_right(arrivals, now, place)
        now += fixed + before[after] - before[place]
        ended += [now - arrival for arrival in arrivals[place:after]]
        place = after
    return sorted(ended[5_000:])


def steps(fixed: float, load: float, sizes: float) -> dict[str, float]:
    """The formulas' latencies of the same server, where a request adds a second."""
    return latency(("request_latency_p95",))(
        {
            "sized_rate": load,
            "replicas": 1.0,
            "service_seconds": 1.0,
            "added_seconds": 1.0,
            "fixed_seconds": fixed,
            "host_seconds": 0.0,
            "size_variation": sizes,
        }
    )


@pytest.mark.parametrize("sizes", [0.0, 1.0])
@pytest.mark.parametrize("load", [0.1, 0.4, 0.7, 0.9])
@pytest.mark.parametrize("fixed", [0.1, 1.0, 5.0, 30.0])
def test_latencies_are_those_of_a_simulated_queue(fixed: float, load: float, sizes: float) -> None:
    seconds = simulated(1.0, fixed, load, sizes)
    values = steps(fixed, load, sizes)
    assert values["request_latency"] == pytest.approx(sum(seconds) / len(seconds), rel=0.2)
    p95 = seconds[int(0.95 * len(seconds))]
    assert values["request_latency_p95"] == pytest.approx(p95, rel=0.25)


@pytest.mark.parametrize("load", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("fixed", [0.1, 1.0])
def test_the_mean_of_a_light_load_is_nearly_exact(fixed: float, load: float) -> None:
    seconds = simulated(1.0, fixed, load, 0.0)
    assert steps(fixed, load, 0.0)["request_latency"] == pytest.approx(
        sum(seconds) / len(seconds), rel=0.02
    )


def test_an_encoder_reads_and_writes_nothing(tmp_path: Path) -> None:
    made = workload(tmp_path, f"  model: BAAI/bge-m3\n{LOAD}  slo: {{request_latency: 80 ms}}\n")
    assert made.serving is not None
    assert made.serving.pooling == "embed"
    assert made.memory.kv_cache_bytes == 0
    names = {m.name for m in made.metrics}
    assert {"request_latency", "requests_per_second", "input_tokens_per_second"} <= names
    assert not {"time_to_first_token", "output_tokens_per_second"} & names


def test_a_decoder_embeds_where_the_manifest_says_so(tmp_path: Path) -> None:
    text = f"  model: Qwen/Qwen3-0.6B\n  pooling: embed\n{LOAD}"
    made = workload(tmp_path, text)
    assert made.serving is not None
    assert made.serving.pooling == "embed"
    assert made.memory.kv_cache_bytes > 0  # a decoder keeps the tokens of a step


def rate(made: Workload) -> float:
    (found,) = [m for m in made.metrics if m.name == "requests_per_second"]
    return found.estimate.value / made.replicas


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ("texts: 1, input_tokens: 400", "texts: 4, input_tokens: 400"),
        ("input_tokens: 100", "input_tokens: 500"),
        ("input_tokens: {mean: 400, p95: 500}", "input_tokens: {mean: 400, p95: 1200}"),
    ],
)
def test_more_to_read_is_never_faster(tmp_path: Path, less: str, more: str) -> None:
    text = "  model: BAAI/bge-m3\n  overrides: {gpu: l4}\n  load: {requests_per_second: 3, "
    few, many = (workload(tmp_path, f"{text}{load}}}\n") for load in (less, more))
    assert rate(few) > rate(many)


def test_a_stricter_objective_never_takes_fewer_replicas(tmp_path: Path) -> None:
    text = "  model: BAAI/bge-m3\n  overrides: {gpu: l4}\n"
    text += "  load: {requests_per_second: 900, input_tokens: {mean: 200, p95: 500}}\n"
    counts = [
        workload(tmp_path, f"{text}  slo: {{request_latency: {{p95: {limit} ms}}}}\n").replicas
        for limit in (400, 100, 40, 25)
    ]
    assert counts == sorted(counts)
    assert counts[-1] > counts[0]


def test_a_prediction_of_an_engine_that_nobody_measured_is_wide(tmp_path: Path) -> None:
    made = workload(tmp_path, f"  model: BAAI/bge-m3\n{LOAD}")
    (found,) = [m for m in made.metrics if m.name == "requests_per_second"]
    assert found.estimate.basis == "extrapolated"
    assert found.estimate.high / found.estimate.low > 1.8


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "  model: BAAI/bge-m3\n  pooling: score\n",
            "pooling 'score' of a model that gives vectors",
        ),
        ("  model: Qwen/Qwen3-0.6B\n  pooling: score\n", "has no layer that scores"),
        ("  model: deepseek-ai/DeepSeek-V3\n  pooling: embed\n", "reads texts for vectors"),
        (
            "  model: BAAI/bge-m3\n  engine: tei\n  precision: bf16\n",
            "'tei' does not compute in bf16",
        ),
        ("  model: Qwen/Qwen3-0.6B\n  engine: tei\n", "engine 'tei' does not do inference"),
        ("  model: BAAI/bge-m3\n  engine: sglang\n", "engine 'sglang' does not do pooling"),
        (
            "  model: microsoft/phi-4\n  pooling: embed\n  engine: tei\n",
            "engine 'tei' does not read a Phi3ForCausalLM",
        ),
    ],
)
def test_what_no_engine_does_is_refused(tmp_path: Path, text: str, said: str) -> None:
    assert said in problems(tmp_path, text + LOAD)


def test_tei_computes_in_half_precision_and_others_as_the_weights_are(tmp_path: Path) -> None:
    """`--dtype` of TEI has no bfloat16, in which these weights are published."""
    model = "  model: Qwen/Qwen3-0.6B\n  pooling: embed\n"
    for engine, precision in (("tei", "fp16"), ("vllm", "bf16")):
        assert workload(tmp_path, f"{model}  engine: {engine}\n{LOAD}").precision == precision


def test_tei_is_given_a_step_that_it_starts_with(tmp_path: Path) -> None:
    """It cuts no text short, so that it ends at once where a step has fewer tokens than the model
    reads: not those that the load has."""
    model = "  model: Qwen/Qwen3-0.6B\n  pooling: embed\n"
    texts = {
        engine: workload(tmp_path, f"{model}  engine: {engine}\n{LOAD}").serving
        for engine in ("tei", "vllm")
    }
    tei, vllm = texts["tei"], texts["vllm"]
    assert tei is not None
    assert vllm is not None
    assert tei.max_num_batched_tokens >= 40_960 > vllm.max_num_batched_tokens
    reranker = "  model: BAAI/bge-reranker-v2-m3\n  overrides: {max_num_batched_tokens: 4096}\n"
    assert "a text of 8,192 tokens" in problems(tmp_path, f"{reranker}  engine: tei\n{LOAD}")
    assert workload(tmp_path, f"{reranker}  engine: vllm\n{LOAD}").serving


def test_answers_of_tokens_belong_to_no_reader(tmp_path: Path) -> None:
    load = LOAD.replace("}}\n", "}, output_tokens: 10}\n")
    assert "'load.output_tokens.mean' is not used" in problems(
        tmp_path, f"  model: BAAI/bge-m3\n{load}"
    )


def test_training_of_an_encoder_is_refused(tmp_path: Path) -> None:
    text = "  model: BAAI/bge-m3\n  training: {tokens: 1e9}\n".replace("1e9", "1000000000")
    path = tmp_path / "train.yaml"
    head = HEAD.replace("task: inference", "task: training")
    path.write_text(head + text, encoding="utf-8")
    found = compile_files([path], plan_only=True)
    assert "writes no text (XLMRobertaModel)" in "".join(d.message for d in found.problems)


@pytest.mark.parametrize("gpu", ["t4", "a100-sxm-80gb", "a10", "l4", "h100-sxm-80gb"])
def test_teis_image_has_programs_for_turing_to_hopper(gpu: str) -> None:
    found = load_catalog().gpu(gpu)
    assert found is not None
    assert no_program("tei", found) == ()


@pytest.mark.parametrize(
    ("gpu", "nearest"),
    [
        ("b200-sxm-180gb", None),
        ("rtx-pro-6000-server", None),
        ("b300-sxm-288gb", 10.0),
        ("v100-sxm-32gb", 7.5),
    ],
)
def test_of_blackwell_it_has_two_and_of_volta_none(gpu: str, nearest: float | None) -> None:
    found = load_catalog().gpu(gpu)
    assert found is not None
    assert [gate.requested for gate in no_program("tei", found)] == ([nearest] if nearest else [])
    assert no_program("vllm", found) == ()


def test_a_gpu_without_a_program_is_refused_by_both_numbers() -> None:
    found = load_catalog().gpu("v100-sxm-32gb")
    assert found is not None
    (gate,) = no_program("tei", found)
    assert describe(gate) == f"compute capability of {TEI_IMAGE}: needs 7.5, has 7"
