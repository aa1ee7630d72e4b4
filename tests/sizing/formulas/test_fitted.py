"""Constants that fits write are physically possible: a fit that went wrong is noticed here, how far
off a good one is by docs/accuracy.md."""

from __future__ import annotations

import math
import re

import pytest

from gpuplan.sizing.data import images, serving, training_memory, training_speed, vision
from gpuplan.sizing.data.serving_memory import BLOCK_TOKENS, ENGINE_BYTES, INTERVAL

# Of training steps, by the first part of the name: least, most.
RATES = "compute attention expert foundry_attention"
EXPOSED = "dispatch remote gradients hidden bubble"
SECONDS = "hop step scale host dequantize"
FACTORS = (
    "cast routing capability superchip gpu mlperf mlperf_late release release_mixture graphs "
    "adapter torchtune torchtitan eager mlperf_early last"
)
RANGES = {
    **dict.fromkeys(RATES.split(), (0.2, 0.9)),  # of a peak
    **dict.fromkeys(EXPOSED.split(), (0.0, 1.0)),  # of what could be hidden
    **dict.fromkeys(SECONDS.split(), (0.0, 0.01)),
    **dict.fromkeys(FACTORS.split(), (0.75, 1.5)),
    "host.graphs": (0.5, 1.0),
    "host.full": (0.0, 0.012),  # DeepSpeed's, of every layer
    "tensor": (0.0, 1.25),  # whole, over links of whose peak collectives reach four fifths
    "capability.10.3.nvfp4": (2 / 3, 1.0),  # its peak is half as high again as B200's
    "logits": (8.0, 50.0),  # in bf16 each once, in fp32 by a kernel an operation
    "adapters": (1.0, 5.0),  # one pass; all reads and writes of adapters on all products
    "operands": (1.5, 2.65),  # more than once, for the gradients' sake
    "trainer": (1.0, 2.0),
    "trainer_adapter": (1.0, 2.0),
    "trainer_parallel": (1.0, 2.0),
    "update": (1.0, 2.0),
    "elementwise": (100.0, 200.0),
    "elementwise_mixture": (1.0, 2.0),
    "streams": (2.0, 3.0),
    "mamba": (20.0, 30.0),
    "context": (1e4, 2e4),
    "remote.plain": (1.0, 4.0),  # whole, at a part of the network's rate
    "power": (1 / 3, 1 / 2),  # power goes with the cube or the square of the clock
}


@pytest.mark.parametrize("name", training_speed.CONSTANTS)
def test_a_training_step_has_constants_that_can_be(name: str) -> None:
    least, most = RANGES.get(name) or RANGES[re.split(r"\.", name)[0]]
    assert least < training_speed.CONSTANTS[name] < most


def test_kernels_were_measured_about_right() -> None:
    factors = {n: f for n, f in serving.FACTORS.items() if n.endswith("_factor")}
    assert len(factors) == 5
    assert 1 < factors.pop("elementwise_factor") < 2  # of counted traffic: no kernel was measured
    assert all(0.7 < factor < 1.3 for factor in factors.values())


def test_latent_attention_starts_two_to_three_times_the_kernels_of_another() -> None:
    """In a prompt: it compresses, expands and rotates what others only multiply."""
    assert 2 < 1 + serving.FACTORS["eager_latent"] < 3


@pytest.mark.parametrize("engine", serving.ENGINE)
def test_an_engine_takes_microseconds_a_layer_and_less_than_a_millisecond_a_step(
    engine: str,
) -> None:
    own = serving.ENGINE[engine] | {n: f for n, f in serving.FACTORS.items() if "overhead" in n}
    own |= {"latent_overhead": serving.LATENT_OVERHEAD}
    assert 0.5 < own.pop("interference") < 1.5
    assert 0 < own.pop("captured") < 1
    assert 1e-4 < own.pop("eager_seconds") < 2e-3  # some tens of kernels
    assert all(0 < seconds < 1e-3 for seconds in own.values())


@pytest.mark.parametrize("engine", serving.ENGINE)
def test_an_idle_server_answers_in_milliseconds_and_a_busy_one_takes_longer(engine: str) -> None:
    first = serving.FIRST_TOKEN[engine]
    assert 0 < first["first_overhead"] < 0.04
    assert 0 < first["contended_overhead"] < 0.35  # of many requests, half at `gathering` of them
    assert 1 < first["gathering"] < 32
    assert 0 < first["contended_prefill"] < 1
    assert 0 < first["first_sequence_overhead"] < 0.002
    assert 0.6 < first["burst_factor"] < 1.5  # of prompts that fill the steps of a burst
    assert 0.5 < first["line_steps"] < 2.5  # the one that runs, and a prompt
    assert 1 < first["prompt_routing"] < 1.75  # by how much uneven routing is slower
    assert 0.5 < first["first_step_factor"] < 25  # some send ten tokens or more at a time
    assert 0 < first["settled"] < 1  # a part of an engine's own work


def test_kernels_of_another_maker_take_longer_than_those_of_their_stand_in() -> None:
    factors = dict(serving.VENDOR["amd"])
    scaling = factors.pop("scaling_overhead")
    assert all(0.8 < factor < 3 for factor in factors.values())
    assert min(factors["interference"], factors["untuned_prompts"]) > 1
    assert math.prod(factors.values()) > 1
    assert scaling > max(own["scaling_overhead"] for own in serving.ENGINE.values())


@pytest.mark.parametrize("framework", training_memory.FRAMEWORKS)
def test_a_framework_keeps_a_checkpoint_and_several_copies_of_logits(framework: str) -> None:
    own = training_memory.FRAMEWORKS[framework]
    assert 1.5 < own["stored"] < 2.0  # a bf16 checkpoint, less what fragments leave
    assert 13 < own["hidden"] < 14
    assert 17 < own["layer_hidden"] < 18
    assert 6 < own["layer_wide"] < 7
    assert 7 < own["wide"] < 8
    assert 9 < own["loss_quantized"] <= own["loss"] < 17  # bf16, fp32 and gradients
    assert own["fixed"] == pytest.approx(2e9, rel=0.1)


def test_states_of_an_optimizer_are_what_its_code_keeps() -> None:
    """Gradient, states, temporaries: fp32 has a copy of the weight and two moments; 8 bits have two
    of a byte, bf16 two of two bytes; an adapter's bf16 gradient stands beside fp32 states."""
    assert training_memory.OPTIMIZERS == {
        "adamw": (4, 4 + 4 + 4, 4 + 4 + 4),
        "adamw-8bit": (2, 1 + 1, 4 + 4 + 4),
        "adamw-bf16": (2, 2 + 2, 4 + 4 + 4),
    }
    assert training_memory.ADAPTER == (2, 4 + 4 + 4, 4 + 4)
    # 4 bits, and 8 bits for each 64 weights, with 32 bits for each 256 of these
    nf4_bits = 4 + 8 / 64 + 32 / 64 / 256
    assert math.isclose(training_memory.NF4_BYTES * 8, nf4_bits, rel_tol=1e-4)


def test_engines_give_out_blocks_as_their_documentation_says() -> None:
    assert BLOCK_TOKENS == {"vllm": 16, "sglang": 1, "tensorrt-llm": 32, "tei": 1}
    assert all(2e9 < size < 2.5e9 for size in ENGINE_BYTES.values())
    assert 0.8 < INTERVAL[0] < 1 < INTERVAL[1] < 1.1


@pytest.mark.parametrize("network", vision.STRUCTURES)
def test_networks_of_images_are_held_up_by_traffic_and_less_so_where_it_is_fused(
    network: str,
) -> None:
    compute, eager, fused = vision.STRUCTURES[network]
    assert 0.2 < compute < 1  # of what its GPU reaches
    assert 0.2 < fused < 1.1  # times what each layer reads and writes once
    assert 2 < eager < 12


def test_gpus_exceed_their_stated_clock_and_not_their_memory() -> None:
    for compute, traffic, attention in (*vision.GPUS.values(), *vision.LINES.values()):
        assert 0.9 < compute < 2
        assert 1 < traffic < 2
        assert 0.5 < attention < 1
    assert all(0 < share < 0.5 for share in (*vision.STEM.values(), vision.STEM_OTHER))
    assert 0 < vision.NARROW_SLOWDOWN < 0.1
    assert 1e-6 < vision.LAUNCH_SECONDS < 1e-5
    added = vision.QUICK_GELU, vision.LAYER_SCALE, vision.PARALLEL_BLOCKS, vision.NO_CLASS_TOKEN
    assert all(0 < part < 0.6 for part in added)
    least, most = vision.UNSEEN_FACTORS
    assert 0.6 < least < 1 < most < 1.7


def test_scores_that_a_kernel_keeps_on_the_chip_are_hardly_written() -> None:
    assert all(vision.SCORE_TRAFFIC["fused", compiled] < 0.3 for compiled in (False, True))
    assert 0 < vision.SCORE_TRAFFIC["fused", False] < vision.SCORE_TRAFFIC["fused", True]
    eager, compiled = (vision.SCORE_TRAFFIC["windowed", fused] for fused in (False, True))
    assert 16 < eager < 20
    assert compiled == pytest.approx(eager / 2, rel=0.1)  # a compiler saves about half


def test_a_step_of_training_takes_three_times_the_operations_of_inference_or_less() -> None:
    """Forward, and backward for inputs and for weights."""
    assert 2.5 < vision.TRAINING["train_matmul"] < 3
    assert 4 < vision.TRAINING["train_traffic"] < 5
    # AdamW in FP32 reads weight, gradient and two moments, and writes all but the gradient: 28 B
    assert 28 < vision.TRAINING["update_bytes"] < 36


def test_diffusion_reaches_a_part_of_the_peak() -> None:
    assert all(0.2 < part < 0.4 for part in images.UNET_LOW.values())
    assert all(0.5 < part < 0.9 for part in images.DENOISER_MATMUL.values())
    for gpu, attention in images.DENOISER_ATTENTION.items():
        assert 0.3 < attention < images.DENOISER_MATMUL[gpu]
    assert math.isclose(images.DENOISER_LOW, 0.41 / 0.72, rel_tol=0.01)
    assert 0.4 < images.UNET_BF16 < 0.5
    assert 0 < images.DENOISER_START_SECONDS < 0.3
    least, most = images.UNMEASURED
    assert 0.5 < least < 1 < most < 2
