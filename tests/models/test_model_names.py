"""Names of models as measurements and hubs spell them, and the network each means."""

from __future__ import annotations

import pytest

from gpuplan.accuracy.points.known import find_model
from gpuplan.models.identity import identity
from gpuplan.models.model import Transformer

# Spellings of one network.
SAME = {
    "llama3.1-70b": (
        "meta-llama/Meta-Llama-3.1-70B-Instruct",
        "Llama3.3-70B",
        "llama-3.3-70b-instruct-fp8-dynamic",
        "nvidia/Llama-3.1-70B-Instruct-FP8",
        "neuralmagic/Meta-Llama-3.1-70B-Instruct-quantized.w8a8",
        "LLAMA3_70B",
        "llama31_70b",
        "llama3_1-70b",
        "DeepSeek-R1-Distill-Llama-70B",
        "hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4",
    ),
    "llama2-70b": ("llama2-70b-99.9", "llama2_70b_lora", "meta-llama/Llama-2-70b-chat-hf"),
    "deepseek-v3": (
        "DeepSeekV3 (dropless)",
        "deepseek-ai/DeepSeek-R1-0528",
        "DeepSeek-V3.1-Terminus",
        "nvidia/DeepSeek-R1-FP4",
        "deepseek-r1",
    ),
    "gpt-oss-120b": ("GPT OSS 120B", "openai/gpt-oss-120b", "gpt_oss_120b"),
    "kimi-k2": ("moonshotai/Kimi-K2.5", "Kimi-K2-Thinking", "nvidia/Kimi-K2.6-NVFP4"),
    "minimax-m2.5": ("MiniMaxAI/MiniMax-M2.7", "nvidia/MiniMax-M2.5-NVFP4", "minimax-m2"),
    "qwen1-7b": ("Qwen/Qwen-7B-Chat", "qwen1-7b-chat", "qwen-7b"),
    "qwen1-1.8b": ("qwen1-1_8b-chat", "Qwen/Qwen-1_8B"),
    "qwen2.5-32b": ("Qwen/QwQ-32B", "Qwen2.5-Coder-32B-Instruct-GPTQ-Int4", "qwen2p5-32b"),
    "qwen3-30b-a3b": ("Qwen3_30B_a3B (tokendrop)", "Qwen3-Coder-30B-A3B-Instruct", "Qwen3-30B"),
    "qwen3-235b-a22b": ("Qwen3-235B-A22B-Thinking-2507-FP8", "Qwen3_235B_a22B"),
    "qwen3.5-397b-a17b": ("nvidia/Qwen3.5-397B-A17B-NVFP4",),
    "glm-4.6": ("zai-org/GLM-4.5-FP8", "glm4.7"),
    "llama4-maverick": ("meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8",),
    "nemotron-3-ultra": ("Nemotron_3_Ultra", "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-NVFP4"),
    "phi-3-mini": ("microsoft/Phi-3-mini-128k-instruct", "Phi-3.5-mini-instruct"),
    "mixtral-8x7b": ("mistralai/Mixtral-8x7B-Instruct-v0.1", "Mixtral-8x7B-v0.1"),
    "mistral-7b": ("Mistral-7B-Instruct-v0.2", "openbuddy-zephyr-7b-chat"),
    "gptj-6b": ("EleutherAI/gpt-j-6b", "gpt-j-6B"),
    "codellama-34b": ("codellama/CodeLlama-34b-Instruct-hf", "code-llama-34b"),
    "stable-diffusion-xl": ("stabilityai/stable-diffusion-xl-base-1.0", "sdxl"),
    "flux.1-dev": ("flux1", "black-forest-labs/FLUX.1-schnell"),
}


def network(name: str) -> str:
    found = find_model(name, "")
    assert found is not None, name
    return identity(found)


@pytest.mark.parametrize(("name", "other"), [(n, o) for n, all_ in SAME.items() for o in all_])
def test_spellings_of_one_network(name: str, other: str) -> None:
    assert network(name) == network(other)


def test_networks_of_other_dimensions_stay_apart() -> None:
    assert len({network(name) for name in SAME}) == len(SAME)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "llama",
        "llama-3",
        "qwen3",
        "stable_diffusion",
        "some-model-7b",
        "qwen3-vl-70b",
        "deepseek-v2",
        "deepseek-v4",
        "qwen2-vl-7b",
        "resnet50",
        "vit_base_patch16_224",
    ],
)
def test_a_name_that_means_no_one_network_is_not_guessed(name: str) -> None:
    assert find_model(name, "") is None


def test_the_hub_identifier_helps_where_the_name_does_not() -> None:
    found = find_model("our-chat-model", "Qwen/Qwen3-32B-FP8")
    assert isinstance(found, Transformer)
    assert found.identifier == "Qwen/Qwen3-32B"
