"""What a model's sequences keep, and what its published weights take on disk."""

from __future__ import annotations

import math

import pytest

from gpuplan.models.load import known
from gpuplan.models.model import Vision
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.memory.cache import Kept, cache_inputs, kept
from gpuplan.sizing.memory.vision import MEMORY, memory_scope
from gpuplan.sizing.model.checkpoints import WEIGHT_BYTES
from tests.support.models import transformer
from tests.support.sizing_cases import offer

# Of models' own descriptions: what their layers keep besides keys and values of every token.
KEPT = {
    "meta-llama/Llama-3.3-70B-Instruct": set(),
    "deepseek-ai/DeepSeek-V3": {"latent"},
    "deepseek-ai/DeepSeek-V3.2": {"latent", "indexed"},
    "google/gemma-3-27b-it": {"windowed"},
    "Qwen/Qwen3-Next-80B-A3B-Instruct": {"states"},
    "moonshotai/Kimi-Linear-48B-A3B-Instruct": {"latent", "states"},
}
# Bits of a weight without its scales, by the name of the format.
BITS = {"fp32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4, "nvfp4": 4, "mxfp4": 4}


@pytest.mark.parametrize("name", KEPT)
def test_a_model_keeps_what_its_layers_keep(name: str) -> None:
    model = transformer(name, known)
    kinds = kept(model)
    assert {kind for kind in Kept.__annotations__ if getattr(kinds, kind)} == KEPT[name]
    numbers = {n: q.value for n, q in cache_inputs(model).items()}
    assert bool(numbers["state_cache_bytes"]) == kinds.states
    assert bool(numbers["index_bytes"]) == kinds.indexed
    assert bool(numbers["window_elements"]) == bool(numbers["window_tokens"]) == kinds.windowed


def test_a_window_is_the_models_own() -> None:
    """Gemma 3 of 27 B: 62 layers, of which every sixth sees all tokens, and others 1,024; keys and
    values of 16 heads of 128."""
    model = transformer("google/gemma-3-27b-it", known)
    numbers = {n: q.value for n, q in cache_inputs(model).items()}
    assert numbers["window_tokens"] == 1024
    assert numbers["window_elements"] == (62 - 62 // 6) * 2 * 16 * 128
    assert numbers["growing_elements"] == 62 // 6 * 2 * 16 * 128


@pytest.mark.parametrize("precision", WEIGHT_BYTES)
def test_a_published_weight_takes_its_bits_and_at_most_an_eighth_more_for_scales(
    precision: str,
) -> None:
    bits = BITS[precision]
    least, most = bits / 8, bits / 8 * (1 + (1 / 8 if bits == 4 else 0))
    assert least <= WEIGHT_BYTES[precision] <= most


@pytest.mark.parametrize(
    ("name", "blocks"), [("facebook/dinov2-large", 24), ("microsoft/resnet-50", 1)]
)
def test_a_network_without_equal_blocks_counts_as_one(name: str, blocks: int) -> None:
    model = known(name)
    assert isinstance(model, Vision)
    scope = {
        n: q.value for n, q in memory_scope(model, whole(offer("l4")), "triton", 0.8).items()
    } | {"batch": 4.0, "activations": 3e7, "gpu_memory_utilization": 0.9, "bf16_bytes": 2.0}
    values = MEMORY(scope)
    images = 4 * 3 * model.pixels**2
    assert scope["blocks"] == blocks
    assert values["activations_bytes"] == math.ceil(2 * 4 * 3e7 / blocks + 2 * images)
    assert values["weights_bytes"] == 2 * model.parameters
