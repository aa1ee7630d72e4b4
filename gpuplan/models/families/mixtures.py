"""Mixtures of experts, hybrids and sparse attention, by the architecture that a config.json names.

Parts as the modelling code of huggingface/transformers 5.23 builds them.
"""

from __future__ import annotations

from dataclasses import replace

from gpuplan.models.families import attention, experts, hybrids, rotary, special, towers, windows
from gpuplan.models.families.architectures import Architecture, as_many
from gpuplan.models.families.dense import DENSE, UNLIMITED
from gpuplan.models.families.layers import Feed, Frame, Parts
from gpuplan.models.fields import Fields

# What configurations leave out: a module for multi-token prediction lies in the checkpoints of
# GLM-4.5 (Megatron-Bridge, docs/models/llm/glm45.md), of GLM-4.7-Flash, whose layer 47 of 47
# transformers does not load (modular_glm4_moe_lite.py), and of Qwen3-Next (vLLM,
# qwen3_next_mtp.py).
_PREDICTS = {"num_nextn_predict_layers": 1}


def _glm(fields: Fields, parts: Parts) -> Parts:
    return replace(parts, query_key_norm="head" if fields.flag("use_qk_norm") else "none")


def _gemma4(fields: Fields, frame: Frame) -> tuple[Feed, ...]:
    make = special.gemma4_feeds if fields.flag("enable_moe_block") else special.gemma4_dense
    return make(fields, frame)


# A latent head's own width is the sum of its two parts.
_LATENT = Architecture(
    mixers=attention.latent,
    feeds=experts.deepseek,
    bias_field="attention_bias",
    kv_heads=as_many,
)
# The router's bias corrects the scores by which experts are chosen.
_LATENT3 = replace(_LATENT, parts=Parts(router_bias=True))
_SPARSE = replace(_LATENT3, mixers=attention.indexed)
_QWEN3 = DENSE["Qwen3ForCausalLM"]
_QWEN_NEXT = replace(
    _QWEN3, parts=Parts(query_key_norm="head", output_gate=True), mixers=hybrids.qwen_next
)
_QWEN3_5 = replace(
    _QWEN_NEXT,
    text="text_config",
    towers=towers.qwen3_vl,
    rotary=rotary.qwen3_5,
    names={"num_nextn_predict_layers": "mtp_num_hidden_layers"},
)
_MINIMAX = Architecture(mixers=hybrids.minimax, feeds=experts.local, head_dim="stated")
_LLAMA4 = Architecture(
    mixers=attention.windowed(windows.chunks, chunked=True),
    feeds=experts.llama4,
    towers=towers.llama4,
    rotary=rotary.plain,
    bias_field="attention_bias",
    head_dim="stated",
)
_MAMBA_NAMES = {
    "mamba_d_state": "state_size",
    "mamba_d_conv": "conv_kernel",
    "mamba_dt_rank": "time_step_rank",
    "mamba_intermediate_size": "intermediate_size",
    "mamba_conv_bias": "use_conv_bias",
    "mamba_proj_bias": "use_bias",
}
_MAMBA = Architecture(
    parts=Parts(norms=1),
    mixers=hybrids.mamba,
    feeds=hybrids.no_feed,
    names=_MAMBA_NAMES,
    defaults={
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "head_dim": 1,
        "max_position_embeddings": UNLIMITED,
    },
)
# Names of Mamba 2 in Granite 4 and Falcon-H1.
_MAMBA2_NAMES = {
    "mamba_num_heads": "mamba_n_heads",
    "mamba_head_dim": "mamba_d_head",
    "n_groups": "mamba_n_groups",
    "ssm_state_size": "mamba_d_state",
    "conv_kernel": "mamba_d_conv",
    "use_conv_bias": "mamba_conv_bias",
    "use_bias": "mamba_proj_bias",
}

_GEMMA4 = replace(
    DENSE["GemmaForCausalLM"],
    parts=Parts(norms=4, query_key_norm="head"),
    mixers=special.gemma4,
    feeds=_gemma4,
    ends=special.gemma4_ends,
    towers=towers.gemma4,
    rotary=rotary.gemma4,
    text="text_config",
)

MIXTURES: dict[str, Architecture] = {
    "DeepseekForCausalLM": Architecture(
        feeds=experts.deepseek, bias_field="attention_bias", kv_heads=as_many
    ),
    "DeepseekV2ForCausalLM": _LATENT,
    "DeepseekV32ForCausalLM": _SPARSE,
    "DeepseekV3ForCausalLM": _LATENT3,
    "DeepseekV4ForCausalLM": Architecture(
        parts=Parts(router_bias=True),
        mixers=special.compressed,
        feeds=experts.deepseek,
        ends=special.hyper_connections,
        defaults={"first_k_dense_replace": 0},
        head_dim="stated",
    ),
    "Ernie4_5_MoeForCausalLM": Architecture(
        parts=Parts(router_bias=True),
        feeds=experts.deepseek,
        bias_field="use_bias",
        names={
            "first_k_dense_replace": "moe_layer_start_index",
            "n_routed_experts": "moe_num_experts",
            "n_shared_experts": "moe_num_shared_experts",
            "num_experts_per_tok": "moe_k",
        },
        defaults={"tie_word_embeddings": True},
    ),
    "FalconH1ForCausalLM": Architecture(
        mixers=hybrids.parallel, names=_MAMBA2_NAMES, defaults={"mamba_rms_norm": False}
    ),
    "FalconMambaForCausalLM": _MAMBA,
    "Gemma4ForCausalLM": replace(_GEMMA4, text=None, towers=towers.none),
    "Gemma4ForConditionalGeneration": _GEMMA4,
    "Glm4MoeForCausalLM": Architecture(
        parts=Parts(attention_bias="query_key_value", router_bias=True),
        feeds=experts.deepseek,
        adjust=_glm,
        bias_field="attention_bias",
        defaults=_PREDICTS,
        head_dim="stated",
    ),
    "Glm4MoeLiteForCausalLM": replace(_LATENT3, defaults=_PREDICTS),
    "GlmMoeDsaForCausalLM": _SPARSE,
    "GptOssForCausalLM": Architecture(
        parts=Parts(
            attention_bias="all",
            attention_sinks=True,
            attention_quantized=False,
            router_bias=True,
            expert_bias=True,
        ),
        mixers=attention.windowed(windows.every_other),
        feeds=experts.local,
        bias_field="attention_bias",
        head_dim="stated",
    ),
    "GraniteMoeForCausalLM": Architecture(feeds=experts.local, bias_field="attention_bias"),
    "GraniteMoeHybridForCausalLM": Architecture(
        mixers=hybrids.granite,
        feeds=experts.granite,
        bias_field="attention_bias",
        names=_MAMBA2_NAMES,
    ),
    "JambaForCausalLM": Architecture(
        mixers=hybrids.jamba,
        feeds=experts.jamba,
        defaults={"mamba_inner_layernorms": True},
    ),
    "KimiK25ForConditionalGeneration": replace(
        _LATENT3, text="text_config", towers=towers.kimi, rotary=rotary.plain
    ),
    "KimiLinearForCausalLM": replace(
        _LATENT3,
        mixers=hybrids.kimi,
        names={
            "n_routed_experts": "num_experts",
            "num_experts_per_tok": "num_experts_per_token",
            "n_shared_experts": "num_shared_experts",
            "max_position_embeddings": "model_max_length",
        },
    ),
    "Llama4ForCausalLM": _LLAMA4,
    "Llama4ForConditionalGeneration": replace(_LLAMA4, text="text_config"),
    "MambaForCausalLM": replace(
        _MAMBA, defaults=dict(_MAMBA.defaults) | {"tie_word_embeddings": True}
    ),
    "MiniMaxForCausalLM": _MINIMAX,
    "MiniMaxM1ForCausalLM": _MINIMAX,
    "MiniMaxM2ForCausalLM": Architecture(
        parts=Parts(query_key_norm="width", router_bias=True),
        feeds=experts.local,
        head_dim="stated",
    ),
    "MiniMaxM3ForCausalLM": Architecture(
        parts=Parts(query_key_norm="head", router_bias=True),
        mixers=special.blocks,
        feeds=experts.listed("num_local_experts", dense_width="dense_intermediate_size"),
        head_dim="stated",
    ),
    "MiniMaxText01ForCausalLM": _MINIMAX,
    "MiMoV2FlashForCausalLM": Architecture(
        parts=Parts(router_bias=True),
        mixers=special.mimo,
        feeds=experts.listed("n_routed_experts"),
        bias_field="attention_bias",
        head_dim="stated",
    ),
    "MixtralForCausalLM": Architecture(
        mixers=attention.windowed(windows.all_layers), feeds=experts.local
    ),
    "NemotronHForCausalLM": Architecture(
        parts=Parts(norms=1, gated_mlp=False, router_bias=True),
        mixers=hybrids.block_mixers,
        feeds=hybrids.block_feeds,
        names={"head_dim": "attention_head_dim"},
        defaults={"num_hidden_layers": 1},  # as many as there are blocks
        head_dim="stated",
    ),
    "OlmoeForCausalLM": Architecture(
        parts=Parts(query_key_norm="width"),
        feeds=experts.everywhere("num_experts", "intermediate_size"),
        bias_field="attention_bias",
        kv_heads=as_many,
    ),
    "Qwen2MoeForCausalLM": replace(DENSE["Qwen2ForCausalLM"], feeds=experts.qwen),
    "Qwen3MoeForCausalLM": replace(_QWEN3, feeds=experts.qwen),
    "Qwen3NextForCausalLM": replace(_QWEN_NEXT, feeds=experts.qwen, defaults=_PREDICTS),
    "Qwen3VLMoeForConditionalGeneration": replace(
        _QWEN3,
        feeds=experts.qwen,
        text="text_config",
        towers=towers.qwen3_vl,
        rotary=rotary.qwen_vl,
    ),
    "Qwen3_5ForConditionalGeneration": _QWEN3_5,
    "Qwen3_5MoeForConditionalGeneration": replace(_QWEN3_5, feeds=experts.qwen),
    "Step3p5ForCausalLM": Architecture(
        parts=Parts(query_key_norm="head", router_bias=True),
        mixers=special.step,
        feeds=experts.deepseek,
        head_dim="stated",
        names={
            "n_routed_experts": "moe_num_experts",
            "num_experts_per_tok": "moe_top_k",
            "num_key_value_heads": "num_attention_groups",
        },
        defaults={"first_k_dense_replace": 3, "n_shared_experts": 1},
    ),
}
