"""What a plan says of a chosen layout beside its times: what bounds it, what it costs when it is
stopped, what its volumes must hold, how bytes are rounded and which points it was corrected by."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from gpuplan.models.load import bundled
from gpuplan.models.model import Transformer
from gpuplan.plan.model import Fabric
from gpuplan.sizing.calibration.anchors import Anchors
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.evidence.formula import CONSTANTS, Quantity, evaluate
from gpuplan.sizing.kinds.pooling import record as reading
from gpuplan.sizing.kinds.serving import record as serving
from gpuplan.sizing.kinds.speech import record as hearing
from gpuplan.sizing.kinds.training import record as training
from gpuplan.sizing.kinds.vision import record as looking
from gpuplan.sizing.kinds.vision import run_record as learning
from gpuplan.sizing.memory import images
from gpuplan.sizing.memory import serving as serving_memory
from gpuplan.sizing.memory.cache import kept
from gpuplan.sizing.memory.training import memory as training_memory
from gpuplan.units import GB
from tests.sizing.test_limit import replica as stand
from tests.support.sizing_cases import (
    CHAT_8B,
    CHAT_70B,
    FULL_8B,
    LORA_70B,
    replica,
    site,
    size,
    sized,
    wanted,
)


def transformer(name: str) -> Transformer:
    model = bundled(name)
    assert isinstance(model, Transformer)
    return model


LLAMA = transformer("meta-llama/Llama-3.3-70B-Instruct")
DEEPSEEK_V3 = transformer("deepseek-ai/DeepSeek-V3")
BYTES = {name: number.value for name, number in CONSTANTS.items()}
SILENT = {
    "gradient_accumulation_steps": 3.0,
    **dict.fromkeys(("matmul_seconds", "head_seconds", "attention_seconds"), 1.0),
    **dict.fromkeys(("operand_seconds", "elementwise_seconds", "weight_seconds"), 1.0),
    "exchange_seconds": 9.0,
    "device_seconds": 8.0,
    "micro_seconds": 11.0,
}


@pytest.mark.parametrize(
    ("more", "bound"),
    [
        # three micro-batches of three seconds each are as long as all else: 9 s
        *(({f"{part}_seconds": 1.1}, "compute") for part in ("matmul", "head", "attention")),
        ({"expert_seconds": 0.1}, "compute"),
        *(
            ({f"{part}_seconds": 1.1}, "memory bandwidth")
            for part in ("operand", "elementwise", "weight")
        ),
        ({"update_seconds": 0.1}, "memory bandwidth"),
        ({"exchange_seconds": 9.1}, "interconnect"),
        ({"micro_seconds": 11.1}, "host"),
        ({"device_seconds": 7.9}, "host"),
    ],
)
def test_a_run_is_bound_by_the_largest_part_of_its_step(more: dict[str, float], bound: str) -> None:
    layout: Any = SimpleNamespace(values=SILENT | more)
    assert training.bound_by(layout) == bound


STEP = {
    **dict.fromkeys(("matmul_bytes", "attention_bytes", "head_bytes", "expert_bytes"), 10.0),
    "bandwidth": 5.0,  # 40 bytes take 8 s
    **dict.fromkeys(("projection_flop", "dense_flop", "attention_flop", "expert_flop"), 20.0),
    **dict.fromkeys(("matmul_peak", "dense_peak", "bf16_peak", "expert_peak"), 20.0),
    "compute_share": 0.5,  # 4 s of a whole GPU take 8 s
    "all_reduce_seconds": 8.0,
    "overhead_seconds": 8.0,
}


@pytest.mark.parametrize(
    ("more", "bound"),
    [
        *(({f"{n}_bytes": 11.0}, "memory bandwidth") for n in ("matmul", "expert", "head")),
        ({"bandwidth": 4.9}, "memory bandwidth"),
        *(({f"{n}_flop": 21.0}, "compute") for n in ("projection", "dense", "attention", "expert")),
        ({"expert_peak": 19.0}, "compute"),
        ({"compute_share": 0.49}, "compute"),
        ({"all_reduce_seconds": 8.1}, "interconnect"),
        ({"overhead_seconds": 8.1}, "engine overhead"),
    ],
)
def test_a_service_is_bound_by_the_largest_part_of_its_step(
    more: dict[str, float], bound: str
) -> None:
    one = stand()
    one.times = lambda sequences: STEP | more
    assert serving.bound_by(one, 1, 1, 1) == bound


def test_several_replicas_are_bound_by_memory_that_one_more_sequence_does_not_find() -> None:
    one = stand()  # 15 sequences fill it
    one.times = lambda sequences: STEP | {"overhead_seconds": 9.0}
    assert serving.bound_by(one, 4, 15, 2) == "memory capacity"
    assert serving.bound_by(one, 4, 14, 2) == "engine overhead"
    assert serving.bound_by(one, 4, 15, 1) == "engine overhead"


# --- runs ---------------------------------------------------------------------------------------

FULL_CHECKPOINT = 8_030_261_248 * 14


def problems(text: str) -> list[str]:
    answer = size(wanted(text), site("h100-sxm-80gb"))
    diagnostics = answer.diagnostics if isinstance(answer, Sized) else answer
    return [f"{d.severity.value}: {d.message}" for d in diagnostics]


@pytest.mark.parametrize(
    ("volume", "severity"),
    [
        (FULL_CHECKPOINT - GB, "error"),
        (FULL_CHECKPOINT + GB, "warning"),
        (3 * FULL_CHECKPOINT - GB, "warning"),
        (3 * FULL_CHECKPOINT + GB, None),
    ],
)
def test_a_volume_that_was_asked_for_holds_a_checkpoint_and_should_hold_three(
    volume: int, severity: str | None
) -> None:
    asked = f"gpu_count: 8, checkpoint_storage: {volume / GB:.3f} GB"
    said = problems(FULL_8B + f"    overrides: {{{asked}}}\n")
    said = [s for s in said if "is not priced" not in s]
    assert [s.partition(":")[0] for s in said] == ([] if severity is None else [severity])


def test_a_volume_of_weights_that_was_asked_for_holds_them() -> None:
    assert problems(CHAT_8B + "    overrides: {model_storage: 16.1 GB}\n") == []
    (said,) = problems(CHAT_8B + "    overrides: {model_storage: 16 GB}\n")
    assert said.endswith("cannot work: 15 GiB must lie there")


def test_volumes_of_a_run_over_nodes_are_mounted_by_all_of_them() -> None:
    fabric = Fabric(kind="infiniband", bytes_per_s_per_gpu=50e9, resource=None)
    where = replace(site("h100-sxm-80gb"), fabric=fabric)
    for gpus, nodes in ((8, 1), (16, 2)):
        work = sized(FULL_8B + f"    overrides: {{gpu_count: {gpus}}}\n", where).workload
        assert (work.nodes_per_replica, work.gpus_per_node) == (nodes, 8)
        assert {v.name: v.shared for v in work.volumes} == dict.fromkeys(
            ("models", "checkpoints"), nodes > 1
        )


def test_a_storage_that_is_told_writes_checkpoints_in_its_time() -> None:
    where = replace(site("h100-sxm-80gb"), storage_bytes_per_s=Quantity(2e9, "B/s", "test"))
    text = FULL_8B + "    overrides: {gpu_count: 8}\n"
    got = {e.quantity: e.value for e in sized(text, where).evidence}
    assert got["work.checkpoint_seconds"] == pytest.approx(FULL_CHECKPOINT / 2e9)


def test_the_metrics_of_a_run_are_held_against_what_was_asked() -> None:
    text = FULL_8B.replace("slo: {", "slo: {tokens_per_second: 20000, ")
    metrics = {m.name: m for m in sized(text, site("h100-sxm-80gb")).workload.metrics}
    assert metrics["tokens_per_second"].limit == 20000
    assert metrics["tokens_per_second"].sense == "at_least"
    assert metrics["time_to_finish"].limit == 2 * 86400
    assert metrics["time_to_finish"].sense == "at_most"
    assert metrics["step_seconds"].limit is None
    for name in ("tokens_per_second", "time_to_finish"):
        assert (metrics[name].probability or 0) >= 0.8
    rate, step = (metrics[n].estimate for n in ("tokens_per_second", "step_seconds"))
    assert rate.low * step.high == pytest.approx(rate.value * step.value)


# --- all ----------------------------------------------------------------------------------------

_ROUNDED = re.compile(r"^(ceil|floor)\((.*)\)$")
NEEDED = [f"{n}_bytes" for n in ("weights", "gradients", "optimizer", "activations", "kv_cache")]
# Made in the tests, not while they are collected: sheets are remembered.
SHEETS = {
    "images": lambda: images.MEMORY,
    "served": lambda: serving_memory.memory(moe=False, kept=kept(LLAMA)),
    "served mixture": lambda: serving_memory.memory(moe=True, kept=kept(DEEPSEEK_V3)),
    "served with images": lambda: serving_memory.memory(moe=True, kept=kept(LLAMA), images=True),
    "adapters": lambda: training_memory(
        adapter=True, quantized=True, recompute="none", gathered=False
    ),
    "full": lambda: training_memory(
        adapter=False, quantized=False, recompute="full", gathered=True
    ),
}


@pytest.mark.parametrize("name", SHEETS)
def test_bytes_that_are_needed_are_rounded_up_and_those_that_are_there_down(name: str) -> None:
    for line, formula in SHEETS[name]().lines:
        if line not in (*NEEDED, "usable_bytes"):
            continue
        scope = {n: 1.3 + place / 7 for place, n in enumerate(formula.names)} | BYTES
        value = evaluate(formula.expression, scope)
        rounded = _ROUNDED.match(formula.expression)
        assert rounded, line
        exact = evaluate(rounded[2], scope)
        assert exact != round(exact)
        assert value == (math.floor(exact) if line == "usable_bytes" else math.ceil(exact)), line


def test_the_evidence_names_the_points_that_correct_it_by_what_they_share() -> None:
    """`this model` for its dimensions, which nobody wants to read."""
    asked = wanted(CHAT_70B)
    one = replica(asked, "h100-sxm-80gb", 4)
    effects = {e.name: e.source for e in one.token.anchors.effects(one.planned(32))}
    said = {name: source.partition(" measured points of ")[2] for name, source in effects.items()}
    assert said["engine"] == "vllm"
    assert said["generation_engine"] == "hopper, vllm"
    assert said["model_engine"] == "this model, vllm"
    assert said["near_model_engine"] == "this model, vllm"
    assert said["cell"] == "this model, h100-sxm-80gb, vllm, fp8"
    assert all(int(source.split()[0]) > 0 for source in effects.values())
    field = Anchors()("training_memory")
    (point, *_) = field.anchors
    assert [e.name for e in field.effects(point.features)][:1] != ["all"]
    assert point.described("GiB").startswith(point.group + ", ")
    assert f"measured {point.measured:.4g} GiB, formulas {point.formula:.4g} GiB; " in (
        point.described("GiB")
    )


def test_adapters_keep_what_is_trained_and_full_runs_all() -> None:
    answer = sized(LORA_70B)
    lora = {e.quantity: e.formula for e in answer.evidence}
    assert "trained_parameters" in lora["work.checkpoint_bytes"]
    (trained,) = (e for e in answer.evidence if e.quantity == "work.trained_parameters")
    rank = {i.name: (i.value, i.source) for i in trained.inputs}["lora_rank"]
    assert rank == (16, "quantity:work.training.lora.rank")
    full = {e.quantity: e.formula for e in sized(FULL_8B).evidence}
    assert "trained_parameters" not in full["work.checkpoint_bytes"]


# --- what binds those that read -----------------------------------------------------------------


def scope(**values: float) -> dict[str, Quantity]:
    return {name: Quantity(value, "s", "test") for name, value in values.items()}


SEEN = {
    "service_seconds": 10.0,
    "storage_seconds": 9.0,
    "host_seconds": 9.0,
    "matmul_seconds": 2.0,
    "attention_seconds": 2.0,
    "stem_seconds": 2.0,
    "traffic_seconds": 5.0,
}


@pytest.mark.parametrize(
    ("more", "bound"),
    [
        ({}, "compute"),  # three parts of 2 s are longer than 5 s
        ({"traffic_seconds": 6.1}, "memory bandwidth"),
        *(({f"{part}_seconds": 0.9}, "memory bandwidth") for part in ("matmul", "attention")),
        ({"stem_seconds": 0.9}, "memory bandwidth"),
        ({"storage_seconds": 10.0}, "storage"),
        ({"host_seconds": 10.0}, "decoding on CPU cores"),
        ({"host_seconds": 10.0, "storage_seconds": 10.0}, "storage"),
    ],
)
def test_a_program_that_looks_is_bound_by_what_is_slowest(
    more: dict[str, float], bound: str
) -> None:
    assert looking.bound_by(scope(**(SEEN | more))) == bound


READ = {
    "request_seconds": 5.0,
    "host_seconds": 5.0,
    "matmul_bytes": 3.0,
    "attention_bytes": 1.0,
    "bandwidth": 2.0,  # 2 s
    "projection_flop": 3.0,
    "matmul_peak": 3.0,
    "dense_flop": 1.0,
    "dense_peak": 4.0,
    "attention_flop": 1.0,
    "bf16_peak": 4.0,  # 1.5 s of a whole GPU
    "compute_share": 0.7,
    "overhead_seconds": 1.0,
}


@pytest.mark.parametrize(
    ("more", "bound"),
    [
        ({}, "compute"),  # of the share of a GPU that a partition has
        ({"compute_share": 1.0}, "memory bandwidth"),
        ({"matmul_bytes": 3.4}, "memory bandwidth"),
        ({"attention_bytes": 1.4}, "memory bandwidth"),
        ({"projection_flop": 2.6}, "memory bandwidth"),
        ({"dense_flop": 0.5}, "memory bandwidth"),
        ({"attention_flop": 0.5}, "memory bandwidth"),
        ({"overhead_seconds": 2.2}, "engine overhead"),
        ({"host_seconds": 5.1}, "API server"),
    ],
)
def test_what_reads_texts_is_bound_by_the_largest_part_of_its_step(
    more: dict[str, float], bound: str
) -> None:
    assert reading._bound_by(scope(**(READ | more))) == bound


LEARNED = {
    "step_seconds": 10.0,
    "stored_seconds": 9.0,
    "decoded_seconds": 9.0,
    "matmul_seconds": 2.0,
    "attention_seconds": 2.0,
    "traffic_seconds": 2.0,
    "score_bytes": 6.0,
    "train_score_traffic": 1.0,
    "bandwidth": 4.0,  # 1.5 s
    "exchange_seconds": 15.0,
    "gpus": 8.0,
    "global_batch": 32.0,  # 3.75 s of an image
}


@pytest.mark.parametrize(
    ("more", "bound"),
    [
        ({}, "compute"),
        ({"traffic_seconds": 2.6}, "memory bandwidth"),
        ({"score_bytes": 8.1}, "memory bandwidth"),
        ({"train_score_traffic": 1.4}, "memory bandwidth"),
        ({"bandwidth": 2.9}, "memory bandwidth"),
        ({"exchange_seconds": 16.1}, "interconnect"),
        ({"gpus": 9.0}, "interconnect"),
        ({"global_batch": 29.0}, "interconnect"),
        ({"matmul_seconds": 1.7}, "interconnect"),
        ({"attention_seconds": 1.7}, "interconnect"),
        ({"stored_seconds": 10.0}, "storage"),
        ({"decoded_seconds": 10.0}, "decoding on CPU cores"),
        ({"decoded_seconds": 10.0, "stored_seconds": 10.0}, "storage"),
    ],
)
def test_a_run_that_learns_from_images_is_bound_by_what_is_slowest(
    more: dict[str, float], bound: str
) -> None:
    assert learning.bound_by(scope(**(LEARNED | more))) == bound


@pytest.mark.parametrize(
    ("seconds", "bound"), [(1.1, "compute"), (1.0, "memory bandwidth"), (0.9, "memory bandwidth")]
)
def test_audio_is_bound_by_reading_or_by_writing(seconds: float, bound: str) -> None:
    parts = scope(reading_seconds=seconds, writing_seconds=1.0)
    assert hearing._bound_by(parts) == bound
