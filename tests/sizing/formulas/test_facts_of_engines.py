"""What engines take by default and what was published, as their sources say it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.models.load import bundled
from gpuplan.models.model import Transformer
from gpuplan.sizing.data import loading, pooling, speech, vision_steps
from gpuplan.sizing.evidence.formula import evaluate
from gpuplan.sizing.memory import pooling as pooled
from gpuplan.sizing.memory import vision as looked
from gpuplan.sizing.memory.engines import engine_memory, step_tokens
from gpuplan.sizing.model.checkpoints import weight_bytes
from gpuplan.sizing.physics.vision import training as learned
from gpuplan.units import GIB

# Engine, GPU, GiB of its memory, tokens of a step of a server and at most.
STEPS = [
    # vllm/engine/arg_utils.py: from 70 GiB on, but for an A100
    ("vllm", "h100-sxm-80gb", 79.6, 8192, 16384),
    ("vllm", "l40s", 70.0, 8192, 16384),
    ("vllm", "l40s", 69.9, 2048, 8192),
    ("vllm", "a100-sxm-80gb", 80.0, 2048, 8192),
    # sglang/srt/server_args.py: steps at 35, 60 and 160 GiB, whatever the GPU
    ("sglang", "l4", 22.0, 2048, 16384),
    ("sglang", "l40s", 34.9, 2048, 16384),
    ("sglang", "l40s", 35.0, 4096, 16384),
    ("sglang", "l40s", 59.9, 4096, 16384),
    ("sglang", "h100-sxm-80gb", 60.0, 8192, 16384),
    ("sglang", "a100-sxm-80gb", 80.0, 8192, 16384),
    ("sglang", "h200-sxm-141gb", 159.9, 8192, 16384),
    ("sglang", "b200-sxm-180gb", 160.0, 16384, 16384),
    # llmapi/llm_args.py and --max-batch-tokens: one number for all
    ("tensorrt-llm", "l4", 22.0, 8192, 8192),
    ("tensorrt-llm", "b200-sxm-180gb", 180.0, 8192, 8192),
    ("tei", "l4", 22.0, 16384, 16384),
    # one that nobody knows is taken for vLLM
    ("another", "l4", 22.0, 2048, 8192),
    ("another", "h100-sxm-80gb", 80.0, 8192, 16384),
]


@pytest.mark.parametrize(("engine", "gpu", "gib", "served", "most"), STEPS)
def test_the_tokens_of_a_step_are_the_engines_own_default(
    engine: str, gpu: str, gib: float, served: int, most: int
) -> None:
    told = step_tokens(engine, gpu, gib * GIB)
    assert told["default_step_tokens"].value == served
    assert told["largest_step_tokens"].value == most
    known = engine if engine != "another" else "vllm"
    assert told["default_step_tokens"].source.startswith(
        f"constant: default of a server: {known} on"
    )


@pytest.mark.parametrize(
    ("engine", "tokens"),
    [("vllm", 16), ("sglang", 1), ("tensorrt-llm", 32), ("tei", 1), ("another", 16)],
)
def test_the_cache_is_given_out_in_the_engines_own_blocks(engine: str, tokens: int) -> None:
    told = engine_memory(engine)
    assert told["block_tokens"].value == tokens
    known = engine if engine != "another" else "vllm"
    assert told["context_bytes"].source.endswith(f", {known}")


@pytest.mark.parametrize(
    ("text", "value"),
    [("2 ** 10", 1024), ("3 * 5000", 15000), ("5000 - 1", 4999), ("x ** 3", 8), ("2 ** x", 4)],
)
def test_powers_that_somebody_writes_are_worked_out(text: str, value: float) -> None:
    assert evaluate(text, {"x": 2.0}) == value


@pytest.mark.parametrize("text", ["2 ** 2000", "2 ** (3 ** 4)", "(2 ** 3) ** 4", "2 ** -2000"])
def test_powers_that_nobody_writes_are_no_formula(text: str) -> None:
    with pytest.raises(ValueError, match="not arithmetic"):
        evaluate(text, {})


# --- numbers that sources state, and no fit writes -----------------------------------------------


def test_what_an_image_costs_the_host_is_what_was_published() -> None:
    """788.97 GB of 1,281,167 images of three bytes a pixel; 537 of them a second on a core, 360 and
    726 on the slowest and the fastest host; 114,660 bytes a file."""
    assert pytest.approx(205_000, rel=0.002) == loading.IMAGENET_PIXELS
    assert pytest.approx(537) == loading.DECODE_RATE / loading.IMAGENET_PIXELS
    slow, fast = (537 * factor for factor in loading.DECODE_FACTORS)
    assert (slow, fast) == (pytest.approx(360), pytest.approx(726))
    assert (
        pytest.approx(114_660, rel=1e-5) == loading.FILE_BYTES_PER_PIXEL * loading.IMAGENET_PIXELS
    )
    for number in ("537 images/s", "205,000 pixels"):
        assert number in loading.DECODE_SOURCE
    assert "114,660 bytes" in loading.FILE_SOURCE


def test_steps_with_few_images_take_the_launches_that_were_measured() -> None:
    """4.95 ms of 12 layers, 9.88 ms of 24; 7.68 ms of a ResNet-50."""
    assert pytest.approx(4.95e-3) == 12 * vision_steps.LAYER_LAUNCH
    assert pytest.approx(9.88e-3, rel=0.005) == 24 * vision_steps.LAYER_LAUNCH
    assert vision_steps.NETWORK_LAUNCH == {"resnet50": 7.68e-3}


def test_a_request_takes_the_server_what_two_runs_of_it_tell() -> None:
    """414.91 requests/s of one text each, 63.19 of sixteen: a text takes the GPU as long."""
    each = pooling.HOST_SECONDS["vllm"]
    text = 1 / 414.91 - each
    assert 16 * text == pytest.approx(1 / 63.19)


def test_widths_of_intervals_that_nobody_measured_are_judgements_that_stay() -> None:
    assert pooling.UNMEASURED == speech.UNMEASURED == (0.5, 2.0)
    assert pooled.INTERVAL == looked.INTERVAL == learned.INTERVAL == (0.85, 1.25)
    assert (speech.WINDOW_TOKENS, speech.PROMPT_TOKENS) == (63.5, 4)
    assert (speech.LARGEST_BATCH, vision_steps.LARGEST_BATCH) == (256, 256)


@pytest.mark.parametrize(
    ("precision", "bytes_each"),
    [
        ("fp32", 4),
        ("bf16", 2),
        ("fp16", 2),
        ("fp8", 1),
        ("int8", 1),
        ("int4", 0.5 + 2 / 128),  # a scale of 16 bits for 128 weights, and zero points
        ("nvfp4", 0.5 + 1 / 16),
        ("mxfp4", 0.5 + 1 / 32),
    ],
)
def test_a_weight_takes_its_bits_and_its_part_of_a_scale(precision: str, bytes_each: float) -> None:
    told = weight_bytes(None, precision)
    assert told == pytest.approx(bytes_each, rel=0.01)
    assert told == bytes_each or "4" in precision


@pytest.mark.parametrize("group", [32, 64])
def test_four_bits_in_groups_of_their_own_share_a_scale_among_fewer(group: int) -> None:
    model = bundled("meta-llama/Llama-3.1-8B")
    assert isinstance(model, Transformer)
    grouped = replace(model, quantized_group=group)
    assert weight_bytes(grouped, "int4") == 0.5 + 2 / group
    assert weight_bytes(grouped, "fp8") == 1
    for usual in (None, 128):
        assert weight_bytes(replace(model, quantized_group=usual), "int4") == 0.52
