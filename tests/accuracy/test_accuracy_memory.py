"""Memory: what frameworks allocate, what attention keeps, and plans that leave room for errors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.accuracy.data.memory import FINETUNE, GENERATE
from gpuplan.accuracy.points import memory_names as names
from gpuplan.accuracy.points.points import Case, Point, read_points
from gpuplan.accuracy.predict import reckon
from gpuplan.accuracy.protocols.body import BITS, body, stored_bytes
from gpuplan.accuracy.protocols.finetune import Finetune, finetuned
from gpuplan.accuracy.protocols.generate import Generation, generated
from gpuplan.accuracy.protocols.pretrain import Pretraining, pretrained
from gpuplan.accuracy.reckon import Reckoned
from gpuplan.models.cache import state_bytes
from gpuplan.models.load import bundled
from gpuplan.models.model import AttentionLayers, Transformer
from gpuplan.sizing.evidence.sheet import floats
from gpuplan.sizing.kinds.serving.limit import largest
from gpuplan.sizing.memory.cache import cache_bytes, cache_inputs, kept
from gpuplan.sizing.memory.training import framework_memory, memory
from tests.support.require import require
from tests.support.sizing_cases import CHAT_70B, replica, wanted

POINTS = Path(__file__).parents[3] / "shared/data/accuracy/memory_public.csv"
SHAPE = body(bundled("meta-llama/Llama-3.1-8B"))  # type: ignore[arg-type]
WIDER = replace(SHAPE, layers=40, linear=SHAPE.linear * 2, cached=SHAPE.cached * 1.25)

lengths = st.integers(1, 60_000)
batches = st.integers(1, 16)
gpus = st.integers(1, 4)
forms = st.sampled_from(("bf16", "fp8", "gptq-int8", "awq", "nf4-dq"))


# --- what frameworks allocate -------------------------------------------------------------------


@settings(max_examples=80)
@given(st.tuples(st.sampled_from(sorted(GENERATE)), forms), lengths, lengths, batches, gpus)
def test_a_longer_generation_or_a_larger_model_never_needs_less(
    named: tuple[str, str], prompt: int, output: int, batch: int, gpus: int
) -> None:
    engine, form = named
    run = Generation(engine=engine, form=form, prompt=prompt, output=output, batch=batch, gpus=gpus)
    needed = generated(SHAPE, run)
    assert needed > stored_bytes(SHAPE, form)
    for more in (
        replace(run, prompt=prompt + 500),
        replace(run, output=output + 500),
        replace(run, batch=batch + 1),
    ):
        assert generated(SHAPE, more) >= needed
    assert generated(WIDER, run) > needed


def finetune(framework: str, method: str, **changed: object) -> Finetune:
    run = Finetune(
        framework=framework,
        method=method,
        form="bf16",
        length=2048.0,
        batch=1.0,
        gpus=1,
        sharding="none",
        recompute=True,
        capacity_bytes=1e15,
    )
    return replace(run, **changed)  # type: ignore[arg-type]


@settings(max_examples=80)
@given(
    st.sampled_from(sorted(FINETUNE)),
    st.sampled_from(("full", "lora")),
    st.integers(64, 40_000),
    batches,
    st.booleans(),
)
def test_a_longer_run_or_a_larger_model_never_needs_less(
    framework: str, method: str, length: int, batch: int, recompute: bool
) -> None:
    run = finetune(framework, method, length=length, batch=batch, recompute=recompute)
    needed = finetuned(SHAPE, run)
    assert needed > stored_bytes(SHAPE, "bf16")
    assert finetuned(SHAPE, replace(run, length=length + 100)) >= needed
    assert finetuned(SHAPE, replace(run, batch=batch + 1)) >= needed
    assert finetuned(WIDER, run) > needed
    assert finetuned(SHAPE, replace(run, recompute=True)) <= finetuned(
        SHAPE, replace(run, recompute=False)
    )


@pytest.mark.parametrize("framework", sorted(FINETUNE))
def test_adapters_need_less_than_a_full_run_and_quantized_ones_still_less(framework: str) -> None:
    full, lora = (finetuned(SHAPE, finetune(framework, m)) for m in ("full", "lora"))
    low = finetuned(SHAPE, finetune(framework, "lora", form="nf4-dq"))
    assert low < lora < full


def test_embeddings_trained_beside_adapters_take_a_copy_gradients_and_states() -> None:
    plain = finetune("litgpt", "lora", length=256.0)
    more = finetuned(SHAPE, replace(plain, embeddings_trained=True)) - finetuned(SHAPE, plain)
    assert 8 * SHAPE.embeddings < more < 13 * SHAPE.embeddings


def test_a_lower_precision_never_stores_more() -> None:
    order = ("fp32", "bf16", "int8", "fp8", "nf4", "mxfp4", "int4", "nf4-dq")
    stored = [stored_bytes(SHAPE, form) for form in order]
    assert stored == sorted(stored, reverse=True)
    assert set(order) < set(BITS)


# --- the names of tables ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("bf16", "bf16"),
        ("bnb.nf4-dq", "nf4-dq"),
        ("bnb.nf4", "nf4"),
        ("int8 (gptq)", "gptq-int8"),
        ("awq-int4", "awq"),
        ("gptq-int4", "gptq-int4"),
        ("nvfp4", "nvfp4"),
        ("fp8", "fp8"),
        ("32-true", "fp32"),
    ],
)
def test_precisions_are_read_as_tables_write_them(text: str, form: str) -> None:
    assert names.form(text) == form


@pytest.mark.parametrize(
    ("engine", "library"),
    [
        ("transformers 4.40.1", "transformers 4.38"),
        ("transformers 4.46", "transformers 4.46"),
        ("transformers 4.57.0", "transformers 4.51"),
        ("transformers 5.0", "transformers 4.51"),
        ("transformers (torch 2.0.1, FA2)", "transformers 2023"),
        ("litgpt 2023-10 torch 2.1", "litgpt"),
        ("vllm 0.24", None),
    ],
)
def test_releases_that_allocate_alike_are_one_library(engine: str, library: str | None) -> None:
    assert names.library(engine) == library


# --- public points ------------------------------------------------------------------------------


def errors(metric: str) -> list[float]:
    """|formula / measured - 1| of the usable points, without any correction."""
    if not POINTS.exists():
        require("points", f"{POINTS.name} is not at ../shared/data/accuracy")
    points = [p for p in read_points([POINTS]) if p.metric == metric and p.confidence != "C"]
    pairs = [(p, r) for p in points if isinstance(r := reckon(p), Reckoned)]
    assert len(pairs) > 100
    return sorted(abs(r.value / p.value - 1) for p, r in pairs)


@pytest.mark.parametrize(
    ("metric", "middle", "ninety"),
    [("peak_gpu_memory_inference", 0.004, 0.03), ("peak_gpu_memory_train", 0.03, 0.12)],
)
def test_the_formulas_alone_are_near_what_was_measured(
    metric: str, middle: float, ninety: float
) -> None:
    found = errors(metric)
    assert median(found) < middle
    assert found[int(0.9 * len(found))] < ninety


def test_a_prediction_of_memory_never_sees_the_cell_of_the_table() -> None:
    """The notes of some rows repeat the measured value."""
    if not POINTS.exists():
        require("points", f"{POINTS.name} is not at ../shared/data/accuracy")
    point = next(p for p in read_points([POINTS]) if "cell=" in _row(p).get("notes", ""))
    case = point.case
    assert isinstance(case, Case)
    other = dict(case.row) | {"notes": case.row["notes"].replace("cell=", "cell=9")}
    assert reckon(replace(point, case=replace(case, row=other))) == reckon(point)


def _row(point: Point) -> dict[str, str]:
    return dict(point.case.row) if isinstance(point.case, Case) else {}


# --- what attention keeps -----------------------------------------------------------------------

KINDS = (
    "meta-llama/Llama-3.1-8B",
    "deepseek-ai/DeepSeek-V3",
    "deepseek-ai/DeepSeek-V3.2",
    "google/gemma-2-9b-it",
    "openai/gpt-oss-20b",
    "Qwen/Qwen3.5-27B",
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
)


def cache_of(name: str, *, sequences: int, tokens: int, ranks: int = 1) -> float:
    """Bytes of a bf16 cache on one GPU, with `tokens` of all `sequences` together."""
    model = bundled(name)
    assert isinstance(model, Transformer)
    scope = floats(dict(cache_inputs(model))) | {
        "kv_bytes_each": 2.0,
        "kv_heads": float(model.kv_heads),
        "tensor_parallel_size": float(ranks),
        "pipeline_stages": 1.0,
        "max_num_seqs": float(sequences),
        "kv_cache_tokens": float(tokens),
    }
    return cache_bytes(kept(model))(scope)["kv_cache_bytes"]


def kept_elements(group: AttentionLayers, tokens: int) -> int:
    """Of one sequence, counted layer by layer and entry by entry."""
    seen = min(tokens, group.window) if group.window else tokens
    entries = seen // group.tokens_per_entry + min(tokens, group.recent)
    return group.layers * group.cached_per_token * entries


@pytest.mark.parametrize("name", KINDS)
def test_the_cache_is_what_the_models_layers_keep(name: str) -> None:
    model = bundled(name)
    assert isinstance(model, Transformer)
    tokens = 100_000
    elements = sum(kept_elements(group, tokens) for group in model.attention)
    expected = 2 * elements + state_bytes(model)
    found = cache_of(name, sequences=1, tokens=tokens)
    assert found >= expected * (1 - 1e-9)
    assert found < expected * 1.3  # an indexer's keys come on top


@pytest.mark.parametrize("name", KINDS)
def test_a_window_or_a_state_bounds_what_a_sequence_keeps(name: str) -> None:
    one = [cache_of(name, sequences=4, tokens=t) for t in (4_000, 8_000, 16_000)]
    assert one == sorted(one)
    split = [cache_of(name, sequences=4, tokens=8_000, ranks=r) for r in (1, 2, 4, 8)]
    assert split == sorted(split, reverse=True)
    latent = name.startswith("deepseek")
    assert (split[0] == split[-1]) == latent


# --- training over many GPUs --------------------------------------------------------------------

SCOPE = {
    "parameters": 70e9,
    "layers": 80.0,
    "hidden_size": 8192.0,
    "mlp_width": 28672.0,
    "vocabulary": 128256.0,
    "weight_shards": 1.0,
    "gradient_shards": 1.0,
    "optimizer_shards": 8.0,
    "micro_batch": 1.0,
    "sequence_length": 8192.0,
    **floats(framework_memory("bare", "adamw", None, adapter=False, quantized=False)),
    "memory_correction": 1.0,
    "memory_high": 1.1,
    "memory_z": 0.84,
    "memory_bytes": 80e9,
    "usable_fraction": 0.9,
    "virtual_stages": 1.0,
    "tensor_parallel_size": 1.0,
    "pipeline_parallel_size": 1.0,
    "context_parallel_size": 1.0,
    "expert_parallel_size": 1.0,
}


@pytest.mark.parametrize(
    ("size", "falls"),
    [
        ("tensor_parallel_size", ("weights_bytes", "optimizer_bytes", "activations_bytes")),
        ("pipeline_parallel_size", ("weights_bytes", "optimizer_bytes")),
        ("context_parallel_size", ("activations_bytes",)),
    ],
)
@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_splitting_a_run_never_raises_what_a_gpu_holds(
    size: str, falls: tuple[str, ...], recompute: str
) -> None:
    sheet = memory(
        adapter=False, quantized=False, recompute=recompute, gathered=False, parallel=True
    )
    runs = [sheet(SCOPE | {size: float(n)}) for n in (1, 2, 4, 8)]
    for name in falls:
        values = [run[name] for run in runs]
        assert values == sorted(values, reverse=True)
        assert values[-1] < values[0]
    used = [run["used_bytes"] for run in runs]
    assert used == sorted(used, reverse=True)


# --- plans --------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(st.floats(0.5, 0.98))
def test_a_plan_holds_memory_at_the_end_of_the_interval(confidence: float) -> None:
    sure, unsure = (
        replica(wanted(CHAT_70B, numbers={"slo.confidence": c}), "h100-sxm-80gb", 2)
        for c in (confidence, 0.5)
    )
    one, other = sure.needs(64), unsure.needs(64)
    assert one["gpu_memory"] == pytest.approx(other["gpu_memory"])
    assert one["used_bytes"] >= other["used_bytes"] >= one["gpu_memory"] * (1 - 1e-9)
    assert largest(sure) <= largest(unsure) + 1


def test_torchtitan_divides_states_over_all_gpus_and_tokens_over_some() -> None:
    run = Pretraining(length=8192.0, batch=2.0, gpus=8, recompute=False)
    needed = pretrained(SHAPE, run)
    assert pretrained(SHAPE, replace(run, gpus=64)) < needed < pretrained(WIDER, run)
    assert pretrained(SHAPE, replace(run, recompute=True)) < needed
    assert needed < pretrained(SHAPE, replace(run, eager=True))
    longer = replace(run, length=4 * run.length, context=4)
    assert pretrained(SHAPE, longer) == needed
    assert pretrained(SHAPE, replace(run, batch=4.0, tensor=2)) < needed


def test_torchtitans_table_is_met() -> None:
    """Tables 1 and 2 of its benchmark of 2024-12, in GiB: selective, and full with 32k tokens."""
    for length, batch, full, gibibytes in ((8192, 2, False, 77.0), (32_768, 1, True, 83.9)):
        run = Pretraining(length=length, batch=batch, gpus=8, recompute=full)
        assert pretrained(SHAPE, run) / 2**30 == pytest.approx(gibibytes, rel=0.03)
