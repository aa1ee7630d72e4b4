"""What a step of a served model is made of: dimensions, launches and rates, from the published
configurations of models of every kind (config.json) and the sizes of elements."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.hardware.devices import partitions, whole
from gpuplan.sizing.model import widths
from gpuplan.sizing.model.shapes import inputs
from gpuplan.sizing.physics.serving.scopes import (
    decode_scope,
    formats,
    prefill_scope,
    serving_scope,
    traits,
)
from gpuplan.sizing.physics.serving.service import Division
from tests.support.models import transformer
from tests.support.sizing_cases import offer, site

LLAMA, GEMMA = "meta-llama/Llama-3.1-8B-Instruct", "google/gemma-3-27b-it"
V3, V32 = "deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-V3.2"
V4, NEXT = "deepseek-ai/DeepSeek-V4-Flash", "Qwen/Qwen3-Next-80B-A3B-Instruct"
OSS, READER = "openai/gpt-oss-120b", "BAAI/bge-m3"
HYBRID = "nvidia/Nemotron-H-56B-Base-8K"
SUPER = "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8"
# 7,168 wide, 61 layers, 58 with experts: 256 of 2,048, 8 of them and a shared one a token.
DEEPSEEK = {
    "layers": 61,
    "layer_pairs": 61,
    "attention_heads": 128,
    "cached_layers": 61,
    "full_layers": 61,
    # compressions and their products of queries, of keys and values; the routers
    "projection_launches": 6 * 61 + 58,
    "dense_launches": 2 * 61,
    "all_reduces": 2 * 61,
    "mlp_width_sum": 3 * 18432 + 58 * 2048,
    "mlp_width": 18432,
    "router_width": 58 * 256,
    "active_experts": 8,
    "expert_width": 2048,
    "expert_hidden": 7168,
    "expert_layers": 58,
    "query_rank": 1536,
    "query_width": 1536,
    "kv_rank": 512,
    "nope_dim": 128,
    "rope_dim": 64,
    "value_dim": 128,
}
SHAPES: dict[str, dict[str, float]] = {
    LLAMA: {
        "layers": 32,
        "layer_pairs": 32,
        "hidden_size": 4096,
        "kv_heads": 8,
        "head_dim": 128,
        "output_gate": 0,
        "vocabulary": 128256,
        # what is no product of a step: both tables of words, and the norms
        "other_parameters": 2 * 128256 * 4096 + (2 * 32 + 1) * 4096,
        "cached_layers": 32,
        "full_layers": 32,
        "sliding_layers": 0,
        "sliding_window": 0,
        "linear_layers": 0,
        "linear_width": 0,
        "state_elements": 0,
        "projection_launches": 2 * 32,
        "mlp_matrices": 3,
        "mlp_width_sum": 32 * 14336,
        "mlp_width": 14336,
        "router_width": 0,
        "dense_launches": 2 * 32,
        "all_reduces": 2 * 32,
    },
    # Every sixth of 62 layers sees all tokens, the others 1,024 of them.
    GEMMA: {"full_layers": 10, "sliding_layers": 52, "sliding_window": 1024, "cached_layers": 62},
    V3: DEEPSEEK,
    V32: {
        **DEEPSEEK,
        "top_k": 2048,
        "index_layers": 61,
        "index_heads": 64,
        "index_width": 61 * 128,
    },
    # 21 layers keep an entry for 4 tokens, 20 one for 128; 2 see a window alone.
    V4: {"full_layers": 21 / 4 + 20 / 128, "sliding_layers": 2, "index_width": 21 * 128 / 4},
    # Of 48 layers every fourth has attention, of 16 heads of 256 with a gate; the others a gated
    # delta net of 16 heads of keys and 32 of values, 128 wide, with gates and rates of each head.
    NEXT: {
        "layer_pairs": 48,
        "cached_layers": 12,
        "output_gate": 1,
        "linear_layers": 36,
        "linear_width": (2 * 16 + 2 * 32) * 128 + 2 * 32 + 32 * 128,
        "state_elements": 32 * 128 * 128,
        "projection_launches": 2 * 12 + 2 * 36 + 48,
        "dense_launches": 2 * 48,
        "mlp_width_sum": 48 * 512,
        "mlp_width": 10 * 512 + 512,
        "router_width": 48 * 512,
    },
    # 36 layers of 128 experts and no other MLP; every other layer sees 128 tokens.
    OSS: {
        "full_layers": 18,
        "sliding_layers": 18,
        "sliding_window": 128,
        "projection_launches": 2 * 36 + 36,
        "dense_launches": 0,
        "mlp_width_sum": 0,
        "mlp_width": 4 * 2880,
        "all_reduces": 2 * 36,
    },
    # 118 blocks, one a layer: 54 of Mamba-2, 10 of attention, 54 MLPs.
    HYBRID: {
        "layer_pairs": 118 / 2,
        "cached_layers": 10,
        "linear_layers": 54,
        "projection_launches": 2 * 10 + 2 * 54,
        "mlp_matrices": 2,
        "mlp_width_sum": 54 * 32768,
        "mlp_width": 32768,
        "dense_launches": 2 * 54,
        "all_reduces": 118,
    },
    # 40 of 88 blocks have 512 experts of 2,688 in 1,024 dimensions, 22 and a shared one a token.
    SUPER: {
        "layer_pairs": 88 / 2,
        "projection_launches": 2 * 8 + 2 * 40 + 40,
        "dense_launches": 2 * 40,
        "mlp_width_sum": 40 * 5376,
        "mlp_width": 22 * 2688 + 5376,
        "router_width": 40 * 512,
        "expert_hidden": 1024,
        "expert_width": 2688,
        "all_reduces": 88,
    },
    READER: {"mlp_matrices": 2, "mlp_width_sum": 24 * 4096, "projection_launches": 2 * 24},
}


# In and out of all linear layers that a token passes, but for routed experts; of each part of a
# layer so many. Then what attention and experts have.
WIDTHS: dict[str, dict[str, float]] = {
    GEMMA: {
        "adapter_width": 62 * (2 * (5376 + 4096) + 2 * (5376 + 2048) + 3 * (5376 + 21504)),
        "unrouted_parameters": 62 * 5376 * (2 * 4096 + 2 * 2048 + 3 * 21504),
        "full_width": 10 * 32 * 128,
        "window_width": 52 * 32 * 128,
        "attended_window": 1024,
        "whole_layers": 62,
        "residual_streams": 1,
        "mamba_width": 0,
    },
    NEXT: {
        "adapter_width": 12 * ((2048 + 8192) + 2 * (2048 + 512) + (4096 + 2048))
        + 36 * ((2048 + 12352) + (4096 + 2048))
        + 48 * 3 * (2048 + 512),
        "full_width": 12 * 16 * 256,
        "mamba_width": 36 * 4096,
        "routed_parameters": 48 * 3 * 10 * 2048 * 512,
        "expert_parameters_held": 48 * 3 * 512 * 2048 * 512,
        "routed_width": 48 * 3 * 10 * (2048 + 512),
        "exchanged_width": 2048,
        "active_experts": 10,
        "expert_layers": 48,
    },
    HYBRID: {
        "adapter_width": 10 * (2 * (8192 + 8192) + 2 * (8192 + 1024))
        + 54 * ((8192 + 37120) + (16384 + 8192))
        + 54 * 2 * (8192 + 32768),
        "whole_layers": 54,
        "mamba_width": 54 * 16384,
    },
    SUPER: {
        "adapter_width": 8 * (2 * (4096 + 4096) + 2 * (4096 + 256))
        + 40 * ((4096 + 18560) + (8192 + 4096))
        + 40 * 2 * (4096 + 5376)
        + 40 * 2 * (4096 + 1024),
        "routed_parameters": 40 * 2 * 22 * 1024 * 2688,
        "expert_parameters_held": 40 * 2 * 512 * 1024 * 2688,
        "routed_width": 40 * 2 * 22 * (1024 + 2688),
        "exchanged_width": 1024,
        "whole_layers": 40,
    },
    # Compressed caches; four residual streams.
    V4: {
        "full_width": (21 / 4 + 20 / 128) * 64 * 512,
        "window_width": 2 * 64 * 512,
        "attended_window": 128,
        "residual_streams": 4,
        "routed_parameters": 43 * 3 * 6 * 4096 * 2048,
    },
}


@pytest.mark.parametrize("name", SHAPES)
def test_dimensions_are_those_of_the_configuration(name: str) -> None:
    got = {of: quantity.value for of, quantity in inputs(transformer(name)).items()}
    assert {of: got[of] for of in SHAPES[name]} == SHAPES[name]
    assert ("top_k" in got) == (name in (V32, V4))
    assert ("experts" in got) == (name not in (LLAMA, GEMMA, READER, HYBRID))
    assert ("kv_rank" in got) == (name in (V3, V32))


@pytest.mark.parametrize("name", WIDTHS)
def test_widths_of_a_training_step_are_those_of_the_configuration(name: str) -> None:
    got = {of: quantity.value for of, quantity in widths.inputs(transformer(name)).items()}
    assert {of: got[of] for of in WIDTHS[name]} == WIDTHS[name]
    # Operands of low-rank outputs and indexers are in proportion to their weights.
    beyond = got["operand_width"] - got.get("routed_width", 0)
    assert (beyond == got["adapter_width"]) == (name in (GEMMA, HYBRID, SUPER))


@pytest.mark.parametrize(
    ("name", "precision", "each"),
    [
        # attention, dense, experts
        (LLAMA, "bf16", ("bf16", "bf16", "bf16")),
        (LLAMA, "fp8", ("fp8", "fp8", "fp8")),
        (LLAMA, "nvfp4", ("nvfp4", "nvfp4", "nvfp4")),
        (LLAMA, "int4", ("int4", "int4", "int4")),
        (V3, "fp8", ("fp8-block", "fp8-block", "fp8-block")),
        (V3, "nvfp4", ("bf16", "nvfp4", "nvfp4")),
        (V3, "int4", ("bf16", "bf16", "int4")),
        (OSS, "mxfp4", ("bf16", "bf16", "mxfp4")),
    ],
)
def test_which_weights_a_checkpoint_keeps_in_what(
    name: str, precision: str, each: tuple[str, str, str]
) -> None:
    layout = formats(transformer(name), precision, "auto")
    assert (layout.matmul, layout.dense, layout.experts, layout.kv) == (*each, "bf16")
    assert formats(transformer(name), precision, "fp8").kv == "fp8"


BYTES = {"bf16": 2.0, "fp8": 1.0, "fp8-block": 1.0, "nvfp4": 0.5625, "mxfp4": 0.53, "int4": 0.52}


def scope(
    name: str, precision: str = "bf16", gpu: str = "h200-sxm-141gb", **how: int
) -> dict[str, Quantity]:
    layout = formats(transformer(name), precision, "auto")
    division = Division(**how)
    card = Quantity(50e9, "B/s", "a test") if division.nodes > 1 else None
    return serving_scope(
        transformer(name), whole(offer(gpu)), "vllm", layout, division, fabric_rate=card
    )


@pytest.mark.parametrize(
    ("name", "precision"),
    [(LLAMA, "fp8"), (V3, "fp8"), (V3, "nvfp4"), (V3, "int4"), (OSS, "mxfp4")],
)
@pytest.mark.parametrize("gpu", ["h200-sxm-141gb", "b200-sxm-180gb"])
def test_weights_are_read_in_their_bytes_and_computed_at_their_peak(
    name: str, precision: str, gpu: str
) -> None:
    """What a GPU cannot compute in is widened to bf16: nvfp4 and mxfp4 on Hopper, int4 everywhere;
    beside mxfp4 weights Blackwell's inputs are fp8."""
    now, layout, card = (
        scope(name, precision, gpu),
        formats(transformer(name), precision, "auto"),
        offer(gpu).gpu,
    )
    peaks = {"bf16": card.peak_bf16, "fp8": card.peak_fp8, "fp8-block": card.peak_fp8}
    if gpu.startswith("b200"):
        peaks |= {"nvfp4": card.peak_fp4, "mxfp4": card.peak_fp8}
    for part, kind in (
        ("matmul", layout.matmul),
        ("dense", layout.dense),
        ("expert", layout.experts),
    ):
        if part == "expert" and name == LLAMA:
            assert "expert_bytes_each" not in now
            continue
        assert now[f"{part}_bytes_each"].value == BYTES[kind]
        known = peaks.get(kind, card.peak_bf16)
        assert known is not None
        assert now[f"{part}_peak"].value == known.value, part


@pytest.mark.parametrize(
    ("name", "precision", "fp8", "nvfp4"),
    [
        (LLAMA, "bf16", 0, 0),
        (LLAMA, "fp8", 0, 0),
        (LLAMA, "nvfp4", 0, 2 * 32 + 2 * 32),
        (V3, "fp8", 2 * 61 + 2 * 61 + 2 * 58, 0),
        (V3, "nvfp4", 0, 2 * 61 + 2 * 58),
        (V3, "int4", 0, 0),
        # attention and linear attention, shared experts, experts
        (NEXT, "fp8", 2 * 48 + 2 * 48 + 2 * 48, 0),
    ],
)
def test_products_scale_their_inputs_where_blocks_of_weights_have_scales(
    name: str, precision: str, fp8: int, nvfp4: int
) -> None:
    now = scope(name, precision, "b200-sxm-180gb")
    assert (now["scaled_inputs"].value, now["block_inputs"].value) == (fp8, nvfp4)


def test_groups_of_attention_stall_together_and_reduce_less() -> None:
    """Experts meet in an exchange of all ranks, not in a reduction of a group's."""
    alone, groups = (
        scope(V3, "fp8", tensor_parallel_size=8),
        scope(V3, "fp8", tensor_parallel_size=2, data_parallel_size=4, expert_parallel_size=8),
    )
    assert (alone["all_reduces"].value, groups["all_reduces"].value) == (122, 122 - 58)
    assert (alone["stalling_ranks"].value, groups["stalling_ranks"].value) == (1, 4)
    assert "gather_launch" in groups
    assert "gather_launch" not in alone
    dense = scope(LLAMA, tensor_parallel_size=2, data_parallel_size=4)
    assert (dense["all_reduces"].value, dense["stalling_ranks"].value) == (64, 1)


def test_ranks_of_an_engine_that_balances_prompts_do_not_stall() -> None:
    layout = formats(transformer(V3), "fp8", "auto")
    division = Division(tensor_parallel_size=2, data_parallel_size=4, expert_parallel_size=8)
    device = whole(offer("h200-sxm-141gb"))
    now = serving_scope(transformer(V3), device, "tensorrt-llm", layout, division)
    assert now["stalling_ranks"].value == 1


def test_a_replica_over_nodes_has_their_number_their_gpus_and_the_fabric() -> None:
    one = scope(V3, "fp8", tensor_parallel_size=8)
    two = scope(V3, "fp8", tensor_parallel_size=8, pipeline_stages=2, nodes=2)
    assert not {"replica_nodes", "node_gpus", "fabric_rate"} & one.keys()
    told = tuple(two[name].value for name in ("replica_nodes", "node_gpus", "fabric_rate"))
    assert told == (2, 8, 50e9)
    assert two["pipeline_stages"].value == 2
    assert "link_launch" not in scope(LLAMA)


@pytest.mark.parametrize(
    ("name", "changes", "on"),
    [
        (LLAMA, {}, set()),
        (LLAMA, {"tensor_parallel_size": 2}, {"parallel"}),
        (LLAMA, {"data_parallel_size": 2}, set()),
        (LLAMA, {"pipeline_stages": 2}, {"staged"}),
        (LLAMA, {"nodes": 2}, {"across"}),
        (GEMMA, {}, {"windowed"}),
        (V3, {}, {"moe"}),
        (V3, {"data_parallel_size": 2}, {"moe", "spread"}),
        (V32, {}, {"moe", "sparse"}),
        (V4, {}, {"moe", "windowed"}),
        (NEXT, {}, {"moe", "linear"}),
        (OSS, {}, {"moe", "windowed"}),
    ],
)
def test_a_step_has_the_parts_that_its_model_and_division_have(
    name: str, changes: dict[str, int], on: set[str]
) -> None:
    told = traits(transformer(name), Division(**changes))
    assert {part for part, there in told.items() if there} == on


def test_a_part_of_a_gpu_reads_at_its_share() -> None:
    where = site("h200-sxm-141gb")
    part = next(d for d in partitions(where.gpus[0], where) if d.partition == "3g.71gb")
    layout = formats(transformer(LLAMA), "bf16", "auto")
    now = serving_scope(transformer(LLAMA), part, "vllm", layout, Division())
    full = scope(LLAMA)
    assert now["gpu_bandwidth"].value == full["bandwidth"].value
    assert now["bandwidth_share"].value == 0.5
    assert now["compute_share"].value == 3 / 7
    assert "bandwidth" not in now
    assert "gpu_bandwidth" not in full


def test_whoever_decodes_is_one_and_a_prompt_attends_to_those_around_it() -> None:
    known = {name: q.value for name, q in scope(NEXT).items()}
    known |= {"input_mean": 700.0, "longer_input": 900.0, "input_p95": 1500.0}
    for sequences, batch in ((0.25, 1.0), (1.0, 1.0), (7.5, 7.5)):
        step = decode_scope(known | {"sequences": sequences})
        assert {step[n] for n in ("sequences", "tokens", "outputs")} == {batch}
        assert step["attention_launch"] == known["decode_launch"]
        assert step["state_launch"] == known["decode_state_launch"]
    prompt = prefill_scope(known, ("input_mean", "longer_input"), 1.0)
    told = tuple(prompt[n] for n in ("tokens", "prompt", "around", "outputs"))
    assert told == (700, 700, 900, 1)
    assert prompt["attention_launch"] == known["prefill_launch"]
    assert prompt["state_launch"] == known["prefill_state_launch"]
    few = {name: Quantity(v, "1", "a test") for name, v in known.items()}
    few["sequences"] = replace(few["tensor_parallel_size"], value=0.25)
    assert decode_scope(few)["tokens"].value == 1
