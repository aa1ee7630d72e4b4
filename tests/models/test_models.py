"""Model facts: parameters as published, attention, names, sources."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from gpuplan.errors import Rejected
from gpuplan.models.configs import from_config
from gpuplan.models.load import BUNDLED, bundled, bundled_names, known_names
from gpuplan.models.model import Denoiser, Diffusion, Transformer
from gpuplan.models.vision import vision_names
from gpuplan.sizing.model.checkpoints import weight_bytes
from gpuplan.sizing.physics.serving.scopes import formats
from gpuplan.source import Origin
from tests.support.models import transformer

# Sources of the published totals:
#   keras    keras-team/keras-hub@71453d08, 2026-08-21, keras_hub/src/models/*/*_presets.py: counted
#            there from an implementation of its own
#   hub      huggingface.co/api/models/NAME, safetensors.total
#   card     the model card at huggingface.co/NAME
#   transformers  the modelling code of transformers 5.23.0, built on PyTorch's meta device,
#            2026-11-21; without the biases of routers, which are no parameters there
PUBLISHED = {
    "CohereForAI/c4ai-command-r-v01": 34_980_831_232,  # transformers
    "HuggingFaceTB/SmolLM3-3B": 3_075_098_624,  # transformers
    "MiniMaxAI/MiniMax-M2.5": 228.69e9,  # transformers
    "MiniMaxAI/MiniMax-M2.7": 228.69e9,  # transformers
    "MiniMaxAI/MiniMax-M3": 428e9,  # card, with its tower
    "Qwen/Qwen2.5-0.5B-Instruct": 494_032_768,  # keras
    "Qwen/Qwen2.5-1.5B-Instruct": 1_543_714_304,  # keras
    "Qwen/Qwen2.5-14B-Instruct": 14_770_033_664,  # transformers
    "Qwen/Qwen2.5-32B-Instruct": 32_763_876_352,  # keras
    "Qwen/Qwen2.5-3B-Instruct": 3_085_938_688,  # keras
    "Qwen/Qwen2.5-72B-Instruct": 72_706_203_648,  # keras
    "Qwen/Qwen2.5-7B-Instruct": 7_615_616_512,  # keras
    "Qwen/Qwen3-0.6B": 596_049_920,  # keras
    "Qwen/Qwen3-1.7B": 1_720_574_976,  # keras
    "Qwen/Qwen3-14B": 14_768_307_200,  # keras
    "Qwen/Qwen3-235B-A22B": 235_093_634_560,  # keras
    "Qwen/Qwen3-30B-A3B": 30_532_122_624,  # keras
    "Qwen/Qwen3-32B": 32_762_123_264,  # keras
    "Qwen/Qwen3-4B": 4_022_468_096,  # keras
    "Qwen/Qwen3-8B": 8_190_735_360,  # keras
    "Qwen/Qwen3-Coder-480B-A35B-Instruct": 480_154_875_392,  # transformers
    "Qwen/Qwen3-Next-80B-A3B-Instruct": 79_674_391_296,  # transformers
    "Qwen/Qwen3-VL-235B-A22B-Instruct": 235_670_022_896,  # transformers
    "Qwen/Qwen3-VL-2B-Instruct": 2_127_532_032,  # transformers
    "Qwen/Qwen3-VL-30B-A3B-Instruct": 31_070_754_032,  # transformers
    "Qwen/Qwen3-VL-32B-Instruct": 33_357_390_064,  # transformers
    "Qwen/Qwen3-VL-4B-Instruct": 4_437_815_808,  # transformers
    "Qwen/Qwen3-VL-8B-Instruct": 8_767_123_696,  # transformers
    "Qwen/Qwen3.5-122B-A10B": 122_562_817_776,  # transformers
    "Qwen/Qwen3.5-27B": 27_356_728_560,  # keras
    "Qwen/Qwen3.5-35B-A3B": 35_107_181_936,  # keras
    "Qwen/Qwen3.5-397B-A17B": 396_802_360_816,  # transformers
    "XiaomiMiMo/MiMo-7B-Base": 7_622_619_136,  # transformers, as a Qwen2
    "XiaomiMiMo/MiMo-V2-Flash": 308.78e9,  # transformers
    "deepseek-ai/DeepSeek-R1": 671e9,  # card: without the module for multi-token prediction
    "deepseek-ai/DeepSeek-V2-Lite-Chat": 15_706_484_224,  # hub
    "deepseek-ai/DeepSeek-V3": 671e9,  # card
    "deepseek-ai/DeepSeek-V3.2": 671.88e9,  # transformers
    "deepseek-ai/DeepSeek-V4-Flash": 284.33e9,  # transformers
    "deepseek-ai/DeepSeek-V4-Pro": 1573.0e9,  # transformers
    "google/gemma-2-27b-it": 27_227_128_320,  # keras
    "google/gemma-2-2b-it": 2_614_341_888,  # keras
    "google/gemma-2-9b-it": 9_241_705_984,  # keras
    "google/gemma-3-12b-it": 12_187_079_280.0,  # keras, with a smaller vocabulary
    "google/gemma-3-27b-it": 27_432_406_640,  # keras: medgemma_instruct_27b
    "google/gemma-3-4b-it": 4_300_079_472,  # keras: medgemma_4b
    "google/gemma-4-26B-A4B": 25_805_933_872,  # transformers
    "google/gemma-4-31B-it": 31_273_086_512,  # transformers
    "meta-llama/Llama-2-13b-chat-hf": 13_015_864_320,  # transformers
    "meta-llama/Llama-2-70b-chat-hf": 68_976_648_192,  # transformers
    "meta-llama/Llama-2-7b-chat-hf": 6_738_415_616,  # keras
    "meta-llama/Llama-3.1-405B": 405_853_388_800,  # hub
    "meta-llama/Llama-3.1-405B-Instruct": 405_853_388_800,  # hub
    "meta-llama/Llama-3.1-70B": 70_553_706_496,  # hub
    "meta-llama/Llama-3.1-70B-Instruct": 70_553_706_496,  # hub
    "meta-llama/Llama-3.1-8B": 8_030_261_248,  # keras, hub
    "meta-llama/Llama-3.1-8B-Instruct": 8_030_261_248,  # keras
    "meta-llama/Llama-3.2-1B-Instruct": 1.23e9,  # card
    "meta-llama/Llama-3.2-3B-Instruct": 3.21e9,  # card
    "meta-llama/Llama-3.3-70B-Instruct": 70_553_706_496,  # hub
    "meta-llama/Llama-4-Maverick-17B-128E-Instruct": 401_583_781_376,  # transformers
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": 108_641_793_536,  # transformers
    "meta-llama/Meta-Llama-3-70B-Instruct": 70_553_706_496,  # hub
    "meta-llama/Meta-Llama-3-8B-Instruct": 8_030_261_248,  # keras
    "microsoft/Phi-3.5-mini-instruct": 3_821_079_552,  # keras
    "microsoft/Phi-4-mini-instruct": 3_836_021_760,  # transformers
    "microsoft/phi-4": 14.7e9,  # card
    "mistralai/Ministral-8B-Instruct-2410": 8_019_808_256,  # transformers
    "mistralai/Mistral-7B-Instruct-v0.3": 7_248_023_552,  # keras
    "mistralai/Mistral-Large-Instruct-2411": 122_610_069_504,  # transformers
    "mistralai/Mistral-Nemo-Instruct-2407": 12_247_782_400,  # transformers
    "mistralai/Mistral-Small-24B-Instruct-2501": 23_572_403_200,  # keras: magistral_small_2506
    "mistralai/Mixtral-8x22B-v0.1": 140_620_634_112,  # transformers
    "mistralai/Mixtral-8x7B-Instruct-v0.1": 46_702_792_704,  # keras
    "mistralai/Mixtral-8x7B-v0.1": 46_702_792_704,  # keras
    "moonshotai/Kimi-K2-Instruct": 1026.41e9,  # transformers
    "moonshotai/Kimi-K2.5": 1026.41e9,  # transformers, without its tower
    "moonshotai/Kimi-Linear-48B-A3B-Instruct": 49.133e9,  # transformers
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": 31.578e9,  # transformers
    "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8": 120.669e9,  # transformers
    "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16": 549.31e9,  # transformers
    "nvidia/Nemotron-H-56B-Base-8K": 56_324_350_464,  # transformers
    "openai/gpt-oss-120b": 116_829_156_672,  # keras
    "openai/gpt-oss-20b": 20_914_757_184,  # keras
    "tiiuae/Falcon3-7B-Instruct": 7_455_550_464,  # transformers
    "zai-org/GLM-4.5": 352.80e9,  # transformers
    "zai-org/GLM-4.5-Air": 106.85e9,  # transformers
    "zai-org/GLM-4.7-Flash": 29.943e9,  # transformers
    "zai-org/GLM-5": 743.9e9,  # transformers
    "zai-org/GLM-5.1": 743.9e9,  # transformers
    "zai-org/GLM-5.2": 743.4e9,  # transformers
    # Embedding models and rerankers, by their cards on the Hub.
    "BAAI/bge-large-en-v1.5": 335_141_888,
    "BAAI/bge-m3": 567_754_752,
    "BAAI/bge-reranker-v2-m3": 567_755_777,
    "BAAI/bge-small-en-v1.5": 33_360_000,
    "sentence-transformers/all-MiniLM-L6-v2": 22_713_216,
}

# Quantized checkpoints have the parameters of what they were made of, by the cards on the Hub.
PUBLISHED |= {
    name: PUBLISHED[base]
    for name, base in {
        "Qwen/Qwen3-235B-A22B-FP8": "Qwen/Qwen3-235B-A22B",
        "Qwen/Qwen3-30B-A3B-FP8": "Qwen/Qwen3-30B-A3B",
        "Qwen/Qwen3-32B-FP8": "Qwen/Qwen3-32B",
        "Qwen/Qwen3-32B-FP8-Static-PerTensor": "Qwen/Qwen3-32B",
        "nvidia/Llama-3.1-70B-Instruct-FP8": "meta-llama/Llama-3.1-70B-Instruct",
        "nvidia/MiniMax-M2.5-NVFP4": "MiniMaxAI/MiniMax-M2.5",
        "nvidia/MiniMax-M2.7-NVFP4": "MiniMaxAI/MiniMax-M2.7",
        "nvidia/Qwen3-235B-A22B-NVFP4": "Qwen/Qwen3-235B-A22B",
        "zai-org/GLM-5-FP8": "zai-org/GLM-5",
        "zai-org/GLM-5.1-FP8": "zai-org/GLM-5.1",
        "zai-org/GLM-5.2-FP8": "zai-org/GLM-5.2",
    }.items()
}

# Nothing but the name, which rounds down.
NAMED = {"nvidia/Llama-3_3-Nemotron-Super-49B-v1": 49e9}

# The active parameters of the model cards.
ACTIVE = {
    "Qwen/Qwen3-30B-A3B": 3.3e9,
    "Qwen/Qwen3-235B-A22B": 22e9,
    "deepseek-ai/DeepSeek-V3": 37e9,
    "mistralai/Mixtral-8x7B-v0.1": 12.9e9,  # mistral.ai/news/mixtral-of-experts, 2023-12-11
}


def compressed(weights: dict[str, object], packing: str = "pack-quantized") -> dict[str, object]:
    """A `quantization_config` of compressed-tensors."""
    groups = {"group_0": {"weights": weights}}
    method = {"quant_method": "compressed-tensors", "format": packing, "config_groups": groups}
    return {"quantization_config": method}


LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 131072,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}


SIZES = (
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "num_key_value_heads",
    "intermediate_size",
    "vocab_size",
)


def dense(architecture: str, sizes: tuple[int, ...], **more: object) -> dict[str, Any]:
    stated = {"architectures": [architecture], "max_position_embeddings": 8192}
    return stated | dict(zip(SIZES, sizes, strict=True)) | more


# Architectures that no bundled model has, or in a form that none has: dimensions of the models'
# config.json, totals as published.
FURTHER = {
    "gemma-2b": (  # keras
        dense("GemmaForCausalLM", (18, 2048, 8, 1, 16384, 256000), head_dim=256),
        2_506_172_416,
    ),
    "gemma-3-1b": (  # keras
        dense(
            "Gemma3ForCausalLM",
            (26, 1152, 4, 1, 6912, 262144),
            head_dim=256,
            sliding_window=512,
            sliding_window_pattern=6,
        ),
        999_885_952,
    ),
    "phi-3-mini": (  # keras
        dense("Phi3ForCausalLM", (32, 3072, 32, 32, 8192, 32064), sliding_window=2047),
        3_821_079_552,
    ),
    "qwen2.5-0.5b": (  # keras
        dense("Qwen2ForCausalLM", (24, 896, 14, 2, 4864, 151936), tie_word_embeddings=True),
        494_032_768,
    ),
    "qwen3-0.6b": (  # keras
        dense(
            "Qwen3ForCausalLM",
            (28, 1024, 16, 8, 3072, 151936),
            head_dim=128,
            tie_word_embeddings=True,
        ),
        596_049_920,
    ),
    "deepseek-v2-lite": (  # hub
        dense(
            "DeepseekV2ForCausalLM",
            (27, 2048, 16, 16, 10944, 102400),
            first_k_dense_replace=1,
            kv_lora_rank=512,
            moe_intermediate_size=1408,
            moe_layer_freq=1,
            n_routed_experts=64,
            n_shared_experts=2,
            num_experts_per_tok=6,
            q_lora_rank=None,
            qk_nope_head_dim=128,
            qk_rope_head_dim=64,
            v_head_dim=128,
        ),
        15_706_484_224,
    ),
}


def model(config: dict[str, Any]) -> Transformer:
    return from_config(config, "some/model", None, "a test", Origin("config.json"))


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_those_published(name: str) -> None:
    assert transformer(name).parameters == pytest.approx(PUBLISHED[name], rel=0.006)
    if isinstance(PUBLISHED[name], int):
        assert transformer(name).parameters == PUBLISHED[name]


def test_every_bundled_transformer_has_a_published_total() -> None:
    assert {n for n in bundled_names() if isinstance(bundled(n), Transformer)} == set(
        PUBLISHED | NAMED
    )


@pytest.mark.parametrize("name", NAMED)
def test_parameters_are_those_of_the_name(name: str) -> None:
    assert transformer(name).parameters == pytest.approx(NAMED[name], rel=0.02)


@pytest.mark.parametrize("name", FURTHER)
def test_further_architectures_are_counted_exactly(name: str) -> None:
    fields, total = FURTHER[name]
    assert model(fields).parameters == total


@pytest.mark.parametrize("name", ACTIVE)
def test_active_parameters_are_those_published(name: str) -> None:
    assert transformer(name).active_parameters == pytest.approx(ACTIVE[name], rel=0.02)


@pytest.mark.parametrize(("name", "active"), [("gpt-oss-20b", 3.61e9), ("gpt-oss-120b", 5.13e9)])
def test_active_parameters_of_gpt_oss(name: str, active: float) -> None:
    """gpt-oss model card (arXiv 2508.10925), table 1, which leaves the embedding out."""
    found = transformer(name)
    embedding = found.vocabulary * found.hidden_size
    assert found.active_parameters - embedding == pytest.approx(active, rel=0.006)


@pytest.mark.parametrize(("name", "gib"), [("gpt-oss-20b", 12.8), ("gpt-oss-120b", 60.8)])
def test_quantized_checkpoint_of_gpt_oss_has_its_published_size(name: str, gib: float) -> None:
    """Same table. MXFP4 takes 4.25 bits a weight, the rest is bf16."""
    found = transformer(name)
    rest = found.parameters - found.linear_parameters
    size = found.linear_parameters * 4.25 / 8 + rest * 2
    assert size / 2**30 == pytest.approx(gib, rel=0.006)


def test_linear_parameters_are_those_that_fp8_checkpoints_store() -> None:
    """The 560 linear layers of a Llama 3 70B in FP8 hold 68,451,041,280 F8_E4M3 elements, by the
    metadata of its safetensors."""
    assert transformer("Llama-3.3-70B-Instruct").linear_parameters == 68_451_041_280


def test_active_counts_of_a_dense_model_are_its_counts() -> None:
    found = transformer("Qwen3-8B")
    assert found.active_parameters == found.parameters
    assert found.active_linear_parameters == found.linear_parameters


def test_tied_embeddings_are_counted_once() -> None:
    untied, tied = model(LLAMA), model(LLAMA | {"tie_word_embeddings": True})
    assert tied.tied_embeddings
    assert untied.parameters - tied.parameters == 128256 * 4096
    assert untied.linear_parameters == tied.linear_parameters


def test_biases_are_counted_where_the_configuration_has_them() -> None:
    attention = model(LLAMA | {"attention_bias": True}).parameters - model(LLAMA).parameters
    assert attention == 32 * (4096 + 2 * 1024 + 4096)
    mlp = model(LLAMA | {"mlp_bias": True}).parameters - model(LLAMA).parameters
    assert mlp == 32 * (2 * 14336 + 4096)


def test_latent_attention_and_shared_experts() -> None:
    found = transformer("DeepSeek-V3")
    assert found.latent is not None
    assert found.latent.kv_lora_rank + found.latent.qk_rope_head_dim == 576
    assert found.head_dim == 192
    assert found.experts is not None
    assert (found.experts.count, found.experts.active, found.experts.shared) == (256, 8, 1)
    assert found.experts.layers == found.layers - 3


def test_layers_of_qwen_may_go_without_experts() -> None:
    fields = {
        "architectures": ["Qwen3MoeForCausalLM"],
        "head_dim": 128,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 768,
        "decoder_sparse_step": 2,
        "mlp_only_layers": [1],
    }
    found = model(LLAMA | fields).experts
    assert found is not None
    assert found.layers == 15


@pytest.mark.parametrize(
    ("fields", "window", "layers"),
    [
        ({"sliding_window": None}, None, 0),
        ({"sliding_window": 4096}, 4096, 32),
    ],
)
def test_windows_of_mistral(fields: dict[str, Any], window: int | None, layers: int) -> None:
    found = model(LLAMA | {"architectures": ["MistralForCausalLM"]} | fields)
    assert (found.sliding_window, found.sliding_layers) == (window, layers)


def test_windows_by_layer() -> None:
    gemma2, gpt = transformer("gemma-2-9b-it"), transformer("gpt-oss-20b")
    assert (gemma2.sliding_window, gemma2.sliding_layers) == (4096, 21)
    assert (gpt.sliding_window, gpt.sliding_layers) == (128, 12)
    assert model(FURTHER["gemma-3-1b"][0]).sliding_layers == 22
    listed = FURTHER["gemma-3-1b"][0] | {"layer_types": ["sliding_attention"] * 26}
    assert model(listed).sliding_layers == 26


def test_windows_of_qwen() -> None:
    fields = FURTHER["qwen2.5-0.5b"][0] | {"sliding_window": 4096, "max_window_layers": 20}
    assert model(fields).sliding_window is None
    found = model(fields | {"use_sliding_window": True})
    assert (found.sliding_window, found.sliding_layers) == (4096, 4)


def test_yarn_lengthens_the_context() -> None:
    yarn = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    fields = FURTHER["qwen2.5-0.5b"][0] | {"max_position_embeddings": 32768}
    assert model(fields).context_length == 32768
    assert model(fields | {"rope_scaling": yarn}).context_length == 131072
    assert transformer("DeepSeek-V3").context_length == 163840


@pytest.mark.parametrize("factor", [None, 0.5, -4, "4", float("inf"), float("nan"), 10**400])
def test_yarn_that_makes_no_sense_changes_nothing(factor: object) -> None:
    yarn = {"type": "yarn", "factor": factor, "original_max_position_embeddings": 8192}
    assert model(FURTHER["qwen3-0.6b"][0] | {"rope_scaling": yarn}).context_length == 8192


def test_bundled_names_are_found_in_any_case_with_or_without_organisation() -> None:
    whole = bundled("meta-llama/Llama-3.3-70B-Instruct")
    assert whole is not None
    assert bundled("META-LLAMA/llama-3.3-70b-instruct") is whole
    assert bundled("llama-3.3-70B-instruct") is whole
    assert bundled("Llama-3.3") is None
    assert bundled("") is None
    bare = [name.partition("/")[2].casefold() for name in known_names()]
    assert len(set(bare)) == len(bare)


def test_a_release_of_a_bundled_network_has_its_weights_and_its_own_name() -> None:
    coder, base = bundled("qwen2.5-coder-7b-instruct"), transformer("Qwen/Qwen2.5-7B-Instruct")
    assert isinstance(coder, Transformer)
    assert coder.identifier == "Qwen/Qwen2.5-Coder-7B-Instruct"
    assert coder.parameters == base.parameters
    assert coder.revision is None
    assert "Qwen/Qwen2.5-7B-Instruct" in coder.source
    assert "litgpt 0.5.13, 2026-06-29" in coder.source
    assert transformer("Qwen/Qwen3-4B-Instruct-2507").context_length == 262144
    assert transformer("Qwen/Qwen3-4B").context_length == 40960


OTHER_RELEASES = sorted(set(known_names()) - {*bundled_names(), *vision_names()})


@pytest.mark.parametrize("name", OTHER_RELEASES)
def test_a_release_is_as_large_as_its_name_says(name: str) -> None:
    sizes = re.findall(r"(?<![a-z0-9])(?:(\d+)x)?(\d+(?:\.\d+)?)([bm])(?![a-z])", name.casefold())
    if sizes and not sizes[0][0]:
        said = float(sizes[0][1]) * (1e9 if sizes[0][2] == "b" else 1e6)
        assert 0.85 * said < transformer(name).parameters < 1.7 * said  # names are rounded down


@pytest.mark.parametrize("path", sorted(BUNDLED.glob("*.json")), ids=lambda p: p.stem)
def test_bundled_files_name_their_model_and_their_source(path: Any) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["identifier"].replace("/", "--") == path.stem
    assert document["revision"] is None or len(document["revision"]) == 40
    source = document["source"]
    assert source["title"]
    assert "url" in source or {"repository", "commit", "path"} <= source.keys()
    assert "date" in source or "read" in source
    found = bundled(document["identifier"])
    assert found is not None
    date = source.get("date", f"read {source.get('read')}")
    assert found.source == f"model: {path.name} ({source['title']}, {date})"


# Counts by others of the modules of FLUX.1 and SDXL: 12 billion for the transformer (card of
# FLUX.1-dev), 2.6 billion for the UNet and 817 million for its text encoders (arXiv 2307.01952).
@pytest.mark.parametrize(
    ("name", "kind", "parameters"),
    [
        ("FLUX.1-dev", "transformer", 12e9),
        ("FLUX.1-schnell", "transformer", 12e9),
        ("stable-diffusion-xl-base-1.0", "unet", 2.6e9),
        ("stable-diffusion-xl-base-1.0", "text_encoder", 817e6),
    ],
)
def test_modules_of_diffusion_pipelines(name: str, kind: str, parameters: float) -> None:
    found = bundled(name)
    assert isinstance(found, Diffusion)
    counted = sum(m.parameters for m in found.modules if m.kind == kind)
    assert counted == pytest.approx(parameters, rel=0.015)
    assert found.parameters == sum(m.parameters for m in found.modules)


@pytest.mark.parametrize(("name", "text"), [("FLUX.1-dev", 512), ("FLUX.1-schnell", 256)])
def test_flop_of_flux_follow_from_its_dimensions(name: str, text: int) -> None:
    """19 double and 38 single blocks of width 3072; 64 x 64 patches and the tokens of the text."""
    found = bundled(name)
    assert isinstance(found, Diffusion)
    tokens, width, blocks = 64 * 64 + text, 3072, 19 + 38
    assert isinstance(found.denoiser, Denoiser)
    assert (found.denoiser.width, found.denoiser.layers) == (width, blocks)
    assert found.denoiser.token_weights == 12 * width**2 * blocks
    assert 1024**2 / found.denoiser.token_pixels() + found.denoiser.text_tokens == tokens


def test_loading_a_model_needs_neither_pydantic_nor_yaml() -> None:
    code = (
        "import sys; from gpuplan.models.load import bundled; assert bundled('Qwen3-8B');"
        "print(*sorted({'pydantic', 'ruamel', 'jinja2'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    ("stated", "precision"),
    [
        ({}, "bf16"),
        ({"torch_dtype": "float16"}, "fp16"),
        ({"dtype": "float32"}, "fp32"),
        ({"quantization_config": {"quant_method": "fp8"}, "torch_dtype": "bfloat16"}, "fp8"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, "int4"),
        ({"quantization_config": {"quant_method": "awq", "bits": 4}}, "int4"),
        ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}}, "fp8"),
        ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}}, "nvfp4"),
        ({"quantization_config": {"quant_algo": "NVFP4"}}, "nvfp4"),
        (compressed({"num_bits": 4, "type": "float"}), "nvfp4"),
        (compressed({"num_bits": 4, "type": "float"}, "nvfp4-pack-quantized"), "nvfp4"),
        (compressed({"num_bits": 4, "type": "float"}, "mxfp4-pack-quantized"), "mxfp4"),
        (compressed({"num_bits": 8, "type": "float"}), "fp8"),
        (compressed({"num_bits": 4, "type": "int"}), "int4"),
    ],
)
def test_the_published_precision_is_read(stated: dict[str, object], precision: str) -> None:
    assert from_config(LLAMA | stated, "x/y", None, "test", Origin("c")).checkpoint_precision == (
        precision
    )


@pytest.mark.parametrize(
    ("stated", "method"),
    [
        (None, None),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "modelopt"),
        ({"quant_algo": "NVFP4"}, "modelopt"),
        ({"quant_method": "fp8"}, "fp8"),
        (compressed({"num_bits": 4, "type": "float"})["quantization_config"], "compressed-tensors"),
    ],
)
def test_what_made_a_checkpoint_is_read(stated: object, method: str | None) -> None:
    config = LLAMA if stated is None else LLAMA | {"quantization_config": stated}
    assert from_config(config, "x/y", None, "test", Origin("c")).quant_method == method


@pytest.mark.parametrize(
    ("quantization", "named"),
    [
        ({"quant_method": "quip"}, "quip"),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, "modelopt MIXED_PRECISION"),
        ({"quant_method": "fp8", "quant_algo": "MIXED_PRECISION"}, "fp8 MIXED_PRECISION"),
        ({"quant_method": "gptq", "bits": 3}, "gptq"),
    ],
)
def test_a_quantization_whose_bytes_are_not_known_is_refused_by_name(
    quantization: dict[str, object], named: str
) -> None:
    config = LLAMA | {"quantization_config": quantization}
    with pytest.raises(Rejected, match=f"'{named}'"):
        from_config(config, "x/y", None, "test", Origin("c"))


def test_attention_that_a_checkpoint_leaves_alone_is_stored_in_16_bits() -> None:
    whole, left = transformer("MiniMax-M2.5"), transformer("MiniMax-M2.5-NVFP4")
    layers, width, heads, groups, size = 62, 3072, 48, 8, 128
    assert left.kept_parameters == layers * width * 2 * (heads + groups) * size
    assert whole.linear_parameters - left.linear_parameters == left.kept_parameters
    assert whole.parameters == left.parameters


def _compressed(strategy: str) -> dict[str, object]:
    weights = {"type": "float", "num_bits": 8, "strategy": strategy}
    return {
        "quant_method": "compressed-tensors",
        "config_groups": {"group_0": {"weights": weights}},
    }


@pytest.mark.parametrize(
    ("group", "each"), [(128, 0.52), (32, 0.5625), (64, 0.53125), (-1, 0.52), (0, 0.52)]
)
def test_smaller_groups_of_int4_hold_more_scales(group: int, each: float) -> None:
    """-1 is a whole column, which is counted as the usual 128."""
    stated = {"quant_method": "gptq", "bits": 4, "group_size": group}
    found = from_config(LLAMA | {"quantization_config": stated}, "x/y", None, "test", Origin("c"))
    assert weight_bytes(found, "int4") == each


@pytest.mark.parametrize("name", ["LlamaForCausalLM", "Qwen3ForCausalLM"])
@pytest.mark.parametrize(
    ("stated", "layout"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8-block"),
        ({"quant_method": "fp8", "activation_scheme": "dynamic"}, "fp8"),
        ({"quant_method": "fp8", "weight_block_size": None}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
        (_compressed("block"), "fp8-block"),
        (_compressed("channel"), "fp8"),
    ],
)
def test_a_checkpoint_says_what_shares_a_scale(
    name: str, stated: dict[str, object], layout: str
) -> None:
    config = LLAMA | {"architectures": [name], "head_dim": 128, "quantization_config": stated}
    found = from_config(config, "x/y", None, "test", Origin("c"))
    assert formats(found, "fp8", "auto").matmul == layout
