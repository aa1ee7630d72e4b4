"""What a sequence keeps in memory, for each kind of attention; what layers have which."""

from __future__ import annotations

import pytest

from gpuplan.models.cache import cached_per_token, index_per_token, state_bytes
from gpuplan.models.load import bundled
from gpuplan.models.model import Transformer


def model(name: str) -> Transformer:
    found = bundled(name)
    assert isinstance(found, Transformer)
    return found


# Elements a token, far beyond every window: layers x (2 x KV heads x head size, or the latent row).
@pytest.mark.parametrize(
    ("name", "elements"),
    [
        ("Llama-3.1-8B", 32 * 2 * 8 * 128),
        ("DeepSeek-V3", 61 * 576),
        ("gpt-oss-120b", 18 * 2 * 8 * 64),
        ("gemma-2-27b-it", 23 * 2 * 16 * 128),
        ("Llama-4-Scout-17B-16E-Instruct", 12 * 2 * 8 * 128),
        ("Qwen3.5-397B-A17B", 15 * 2 * 2 * 256),
        ("Qwen3-Next-80B-A3B-Instruct", 12 * 2 * 2 * 256),
        ("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 6 * 2 * 2 * 128),
        ("Nemotron-H-56B-Base-8K", 10 * 2 * 8 * 128),
        ("Llama-3_3-Nemotron-Super-49B-v1", 49 * 2 * 8 * 128),
        ("Kimi-Linear-48B-A3B-Instruct", 7 * 576),
        ("MiMo-V2-Flash", 9 * 4 * (192 + 128)),
        ("gemma-4-31B-it", 10 * 2 * 4 * 512),
        ("DeepSeek-V4-Pro", 30 * 512 / 4 + 31 * 512 / 128),
    ],
)
def test_a_token_leaves_what_its_layers_cache(name: str, elements: float) -> None:
    assert cached_per_token(model(name)) == elements


def test_windows_bound_the_cache() -> None:
    windows = {group.window: group.layers for group in model("gpt-oss-20b").attention}
    assert windows == {128: 12, None: 12}


def test_compressed_entries_stand_beside_recent_tokens() -> None:
    found = model("DeepSeek-V4-Flash")
    own = {(g.tokens_per_entry, g.recent, g.window): g.layers for g in found.attention}
    assert own == {(1, 0, 128): 2, (4, 128, None): 21, (128, 128, None): 20}
    assert {g.cached_per_token for g in found.attention} == {512}


def test_states_of_linear_layers_do_not_grow() -> None:
    found = model("Qwen3.5-397B-A17B")
    linear = found.linear
    assert linear is not None
    assert (linear.kind, linear.layers, found.full_layers) == ("gated_delta_net", 45, 15)
    channels = 2 * 16 * 128 + 64 * 128
    assert state_bytes(found) == 45 * (64 * 128 * 128 * 4 + channels * 4 * 2)
    assert state_bytes(found, state=2) < state_bytes(found)
    assert state_bytes(model("Llama-3.1-8B")) == 0


def test_layers_of_one_block_each_have_one_kind() -> None:
    found = model("NVIDIA-Nemotron-3-Super-120B-A12B-FP8")
    assert found.linear is not None
    assert found.experts is not None
    assert (found.cached_layers, found.linear.layers, found.experts.layers) == (8, 40, 40)
    assert found.layers == 88
    assert found.dense_layers == 0
    assert found.experts.latent_size == 1024


@pytest.mark.parametrize(
    ("name", "top_k", "index_layers", "index"),
    [
        ("DeepSeek-V3.2", 2048, 61, 61 * 128),
        ("GLM-5", 2048, 78, 78 * 128),
        ("GLM-5.2", 2048, 21, 21 * 128),
        ("MiniMax-M3", 16 * 128, 57, 57 * 128),
    ],
)
def test_sparse_attention_reads_less_than_it_keeps(
    name: str, top_k: int, index_layers: int, index: int
) -> None:
    found = model(name)
    assert found.sparse is not None
    assert (found.sparse.top_k, found.sparse.index_layers) == (top_k, index_layers)
    assert index_per_token(found) == index
    assert found.full_layers == found.layers


def test_a_model_of_images_and_text_counts_its_tower() -> None:
    with_tower, without = model("Qwen3-VL-32B-Instruct"), model("Qwen3-32B")
    (tower,) = with_tower.towers
    assert with_tower.parameters - without.parameters == tower.parameters
    assert (tower.patch_size, tower.patches_per_token) == (16, 4)
    assert cached_per_token(with_tower) == cached_per_token(without)


@pytest.mark.parametrize(
    ("name", "tokens", "patches", "size"),
    [
        ("gemma-3-12b-it", 256, 64**2, 3840),  # 896 pixels in patches of 14, pooled
        ("gemma-4-31B-it", 280, 280 * 9, 5376),
        ("Llama-4-Scout-17B-16E-Instruct", 17 * 144, 17 * 24**2, 5120),  # tiles of 336 pixels
        ("Kimi-K2.5", 4096, 16384, 7168),
        ("Qwen3.5-27B", 16384, 65536, 5120),  # 16 million pixels
        ("Qwen3-VL-32B-Instruct", 16384, 65536, 4 * 5120),  # with three layers of the middle
    ],
)
def test_the_largest_image_is_of_so_many_patches_and_tokens(
    name: str, tokens: int, patches: int, size: int
) -> None:
    (tower,) = model(name).towers
    assert tower.image_tokens == tokens
    assert tower.image_tokens * tower.patches_per_token == patches
    assert tower.output_size == size
    assert tower.gated_mlp == ("gemma-4" in name)


@pytest.mark.parametrize(
    ("name", "elements"),
    [
        ("gemma-3-12b-it", 131072 * (8 + 1) * 256),  # 604 MB in 16 bits
        ("gemma-3-27b-it", 131072 * (8 + 1) * 128),
        ("gemma-4-31B-it", 262144 * (512 + 256)),
        ("Llama-4-Scout-17B-16E-Instruct", 10485760 * 128),  # 2.7 GB
        ("Kimi-K2.5", 262144 * 64),
        ("Qwen3-VL-32B-Instruct", 4 * 262144 * 128),
        ("Qwen3.5-27B", 4 * 262144 * 64),  # a quarter of each head
        ("Qwen3-32B", 0),  # of text alone: a few tens of megabytes
        ("Llama-3.1-8B-Instruct", 0),
    ],
)
def test_positions_have_tables_beside_a_tower(name: str, elements: int) -> None:
    assert model(name).rotary_elements == elements
