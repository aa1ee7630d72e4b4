"""Decoders without experts, by the architecture that their config.json names.

Parts as the modelling code of huggingface/transformers 5.23 builds them, or, for models that bring
their own code, as that code does (Qwen 1, Baichuan, InternLM, ChatGLM, MPT).
"""

from __future__ import annotations

from dataclasses import replace

from gpuplan.models.families import (
    attention,
    dense_parts,
    experts,
    nas,
    rotary,
    special,
    towers,
    windows,
)
from gpuplan.models.families.architectures import Architecture, as_many
from gpuplan.models.families.layers import Parts

_GPT = Parts(norm_bias=True, gated_mlp=False, mlp_bias=True)
_GPT_NAMES = {
    "hidden_size": "n_embd",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "max_position_embeddings": "n_positions",
}
UNLIMITED = 1_000_000_000  # no positions are learned


_LLAMA = Architecture(bias_field="attention_bias", kv_heads=as_many)
_GEMMA = Architecture(
    defaults={"tie_word_embeddings": True}, head_dim="stated", bias_field="attention_bias"
)
_QWEN3 = Architecture(
    parts=Parts(query_key_norm="head"),
    mixers=attention.windowed(windows.upper_layers),
    bias_field="attention_bias",
    head_dim="stated",
)
_QWEN2 = Architecture(
    parts=Parts(attention_bias="query_key_value"),
    mixers=attention.windowed(windows.upper_layers),
)
_MISTRAL = Architecture(mixers=attention.windowed(windows.all_layers))
_GEMMA3 = replace(
    _GEMMA,
    parts=Parts(norms=4, query_key_norm="head"),
    mixers=attention.windowed(windows.all_but_every_nth("sliding_window_pattern", 6)),
)
_CHATGLM = Architecture(
    parts=Parts(attention_bias="query_key_value"),
    bias_field="add_qkv_bias",
    kv_heads=dense_parts.chatglm_heads,
    names={
        "num_hidden_layers": "num_layers",
        "intermediate_size": "ffn_hidden_size",
        "vocab_size": "padded_vocab_size",
        "max_position_embeddings": "seq_length",
        "head_dim": "kv_channels",
        "kv_groups": "multi_query_group_num",
    },
)
_COHERE = Architecture(
    parts=Parts(norms=1, parallel=True),
    bias_field="attention_bias",
    adjust=dense_parts.cohere,
    kv_heads=as_many,
    defaults={"tie_word_embeddings": True},
)
_OLMO2 = Architecture(
    parts=Parts(query_key_norm="width"), bias_field="attention_bias", kv_heads=as_many
)

DENSE: dict[str, Architecture] = {
    "BaichuanForCausalLM": _LLAMA,
    "BloomForCausalLM": Architecture(
        parts=replace(_GPT, attention_bias="all"),
        feeds=experts.four_times("n_inner"),
        ends=dense_parts.embedding_norm,
        kv_heads=as_many,
        names={
            "num_hidden_layers": "n_layer",
            "num_attention_heads": "n_head",
            "max_position_embeddings": "seq_length",
        },
        defaults={"tie_word_embeddings": True, "seq_length": UNLIMITED},
    ),
    "ChatGLMForConditionalGeneration": _CHATGLM,
    "ChatGLMModel": _CHATGLM,
    "Cohere2ForCausalLM": replace(
        _COHERE, mixers=attention.windowed(windows.all_but_every_nth("sliding_window_pattern", 4))
    ),
    "CohereForCausalLM": _COHERE,
    "DeciLMForCausalLM": Architecture(
        mixers=nas.mixers, feeds=nas.feeds, bias_field="attention_bias", kv_heads=as_many
    ),
    "FalconForCausalLM": Architecture(
        parts=Parts(norm_bias=True, gated_mlp=False),
        feeds=experts.four_times("ffn_hidden_size"),
        adjust=dense_parts.falcon,
        kv_heads=dense_parts.falcon_heads,
        defaults={"tie_word_embeddings": True, "max_position_embeddings": 2048},
    ),
    "GPT2LMHeadModel": Architecture(
        parts=replace(_GPT, attention_bias="all"),
        feeds=experts.four_times("n_inner"),
        ends=dense_parts.positions,
        kv_heads=as_many,
        names=_GPT_NAMES,
        defaults={"tie_word_embeddings": True},
    ),
    "GPTBigCodeForCausalLM": Architecture(
        parts=replace(_GPT, attention_bias="all"),
        feeds=experts.four_times("n_inner"),
        ends=dense_parts.positions,
        kv_heads=dense_parts.one_kv_head,
        names=_GPT_NAMES,
        defaults={"tie_word_embeddings": True},
    ),
    "GPTJForCausalLM": Architecture(
        parts=replace(_GPT, norms=1, parallel=True),
        feeds=experts.four_times("n_inner"),
        ends=dense_parts.head_bias,
        kv_heads=as_many,
        names=_GPT_NAMES,
    ),
    "GPTNeoXForCausalLM": Architecture(
        parts=replace(_GPT, attention_bias="all"),
        bias_field="attention_bias",
        adjust=dense_parts.neox,
        kv_heads=as_many,
    ),
    "Gemma2ForCausalLM": replace(
        _GEMMA, parts=Parts(norms=4), mixers=attention.windowed(windows.every_other)
    ),
    "Gemma3ForCausalLM": _GEMMA3,
    "Gemma3ForConditionalGeneration": replace(
        _GEMMA3,
        text="text_config",
        towers=towers.gemma3,
        rotary=rotary.gemma3,
        # Gemma3TextConfig.
        defaults={
            "tie_word_embeddings": True,
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "head_dim": 256,
            "vocab_size": 262208,
            "max_position_embeddings": 131072,
        },
    ),
    "GemmaForCausalLM": _GEMMA,
    "Glm4ForCausalLM": Architecture(
        parts=Parts(attention_bias="query_key_value", norms=4), bias_field="attention_bias"
    ),
    "GlmForCausalLM": Architecture(
        parts=Parts(attention_bias="query_key_value"), bias_field="attention_bias"
    ),
    "GraniteForCausalLM": _LLAMA,
    "InternLM2ForCausalLM": replace(_LLAMA, bias_field="bias"),
    "InternLMForCausalLM": replace(_LLAMA, bias_field="bias"),
    "LlamaForCausalLM": _LLAMA,
    "LlamaModel": replace(_LLAMA, pooling="embed"),
    "MPTForCausalLM": Architecture(
        parts=Parts(gated_mlp=False),
        feeds=experts.expanded,
        ends=dense_parts.mpt_positions,
        adjust=dense_parts.mpt,
        kv_heads=dense_parts.mpt_heads,
        names={
            "hidden_size": "d_model",
            "num_hidden_layers": "n_layers",
            "num_attention_heads": "n_heads",
            "max_position_embeddings": "max_seq_len",
        },
        defaults={"tie_word_embeddings": True},
    ),
    "MiMoForCausalLM": _QWEN2,
    "Mistral3ForConditionalGeneration": Architecture(
        mixers=attention.windowed(windows.optional(windows.all_layers)),
        text="text_config",
        towers=towers.pixtral,
        rotary=rotary.plain,
    ),
    "MistralForCausalLM": _MISTRAL,
    "MistralModel": replace(_MISTRAL, pooling="embed"),
    "MllamaForConditionalGeneration": replace(
        _LLAMA,
        mixers=special.mllama,
        ends=special.image_tokens,
        towers=towers.mllama,
        rotary=rotary.plain,
        text="text_config",
    ),
    "NemotronForCausalLM": Architecture(
        parts=Parts(norm_bias=True, gated_mlp=False), bias_field="attention_bias"
    ),
    "OPTForCausalLM": Architecture(
        parts=replace(_GPT, attention_bias="all"),
        ends=dense_parts.opt,
        kv_heads=as_many,
        names={"intermediate_size": "ffn_dim"},
        defaults={"tie_word_embeddings": True},
    ),
    "Olmo2ForCausalLM": _OLMO2,
    "Olmo3ForCausalLM": replace(
        _OLMO2, mixers=attention.windowed(windows.all_but_every_nth("sliding_window_pattern", 4))
    ),
    "OlmoForCausalLM": replace(_LLAMA, parts=Parts(norm_weight=False)),
    "Phi3ForCausalLM": Architecture(
        mixers=attention.windowed(windows.all_layers), kv_heads=as_many
    ),
    "PhiForCausalLM": Architecture(
        parts=replace(_GPT, attention_bias="all", norms=1, parallel=True),
        ends=dense_parts.head_bias,
        kv_heads=as_many,
    ),
    "QWenLMHeadModel": Architecture(
        parts=Parts(attention_bias="query_key_value"),
        feeds=experts.halved,
        kv_heads=as_many,
        names={"head_dim": "kv_channels", "max_position_embeddings": "seq_length"},
    ),
    "Qwen2ForCausalLM": _QWEN2,
    "Qwen2Model": replace(_QWEN2, pooling="embed"),
    "Qwen2VLForConditionalGeneration": replace(
        _QWEN2, text="text_config", towers=towers.qwen2_vl, rotary=rotary.qwen_vl
    ),
    "Qwen2_5_VLForConditionalGeneration": replace(
        _QWEN2, text="text_config", towers=towers.qwen2_5_vl, rotary=rotary.qwen_vl
    ),
    "Qwen3ForCausalLM": _QWEN3,
    "Qwen3ForSequenceClassification": replace(_QWEN3, ends=dense_parts.labels, pooling="score"),
    "Qwen3Model": replace(_QWEN3, pooling="embed"),
    "Qwen3VLForConditionalGeneration": replace(
        _QWEN3, text="text_config", towers=towers.qwen3_vl, rotary=rotary.qwen_vl
    ),
    "SmolLM3ForCausalLM": replace(_LLAMA, defaults={"tie_word_embeddings": True}),
    "StableLmForCausalLM": Architecture(
        parts=Parts(norm_bias=True), adjust=dense_parts.stablelm, kv_heads=as_many
    ),
    "Starcoder2ForCausalLM": Architecture(
        parts=replace(_GPT, attention_bias="all"),
        mixers=attention.windowed(windows.optional(windows.all_layers)),
        adjust=dense_parts.starcoder,
        defaults={"tie_word_embeddings": True},
    ),
}
