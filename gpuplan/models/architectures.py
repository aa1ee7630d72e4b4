"""Architectures by name: how each one's config.json is read, and what it is made of.

A config.json may leave a field out where the architecture's configuration class in
huggingface/transformers, which wrote the file, has a value for it; those values are given here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpuplan.models import experts, windows
from gpuplan.models.fields import Fields
from gpuplan.models.model import Experts, LatentAttention
from gpuplan.models.shape import Parts, Shape
from gpuplan.models.windows import Window
from gpuplan.plan.records import record


def _no_experts(_fields: Fields, _layers: int) -> None:
    """A dense model."""


@record
class Architecture:
    """`bias_field`: the field `attention_bias` decides over biases. Where `kv_heads_stated` is
    False, a missing number of KV heads means as many as query heads; where `head_dim_stated` is
    False, a missing head width means hidden size by heads."""

    parts: Parts = Parts()
    experts: Callable[[Fields, int], Experts | None] = _no_experts
    window: Callable[[Fields, int], Window] = windows.none
    latent: bool = False
    tied_by_default: bool = False
    bias_field: bool = False
    kv_heads_stated: bool = True
    head_dim_stated: bool = False


_GEMMA = Architecture(tied_by_default=True, head_dim_stated=True, bias_field=True)
_LATENT = Architecture(
    latent=True, experts=experts.deepseek, bias_field=True, kv_heads_stated=False
)
_QWEN3 = Architecture(
    parts=Parts(query_key_norm=True),
    window=windows.upper_layers,
    bias_field=True,
    head_dim_stated=True,
)

ARCHITECTURES: dict[str, Architecture] = {
    "DeepseekV2ForCausalLM": _LATENT,
    # Its router bias corrects the scores by which experts are chosen.
    "DeepseekV3ForCausalLM": replace(_LATENT, parts=Parts(router_bias=True)),
    "Gemma2ForCausalLM": replace(_GEMMA, parts=Parts(norms=4), window=windows.every_other),
    "Gemma3ForCausalLM": replace(
        _GEMMA, parts=Parts(norms=4, query_key_norm=True), window=windows.all_but_every_nth
    ),
    "GemmaForCausalLM": _GEMMA,
    "GptOssForCausalLM": Architecture(
        parts=Parts(
            attention_bias="all",
            attention_sinks=True,
            attention_quantized=False,
            router_bias=True,
            expert_bias=True,
        ),
        experts=experts.local,
        window=windows.every_other,
        bias_field=True,
        head_dim_stated=True,
    ),
    "LlamaForCausalLM": Architecture(bias_field=True, kv_heads_stated=False),
    "MistralForCausalLM": Architecture(window=windows.all_layers),
    "MixtralForCausalLM": Architecture(window=windows.all_layers, experts=experts.local),
    "Phi3ForCausalLM": Architecture(window=windows.all_layers, kv_heads_stated=False),
    "Qwen2ForCausalLM": Architecture(
        parts=Parts(attention_bias="query_key_value"), window=windows.upper_layers
    ),
    "Qwen3ForCausalLM": _QWEN3,
    "Qwen3MoeForCausalLM": replace(_QWEN3, experts=experts.qwen),
}


def shape(architecture: Architecture, fields: Fields) -> Shape:
    """The shape that the fields describe; of no use when they have problems."""
    layers = fields.whole("num_hidden_layers")
    hidden = fields.whole("hidden_size")
    heads = fields.whole("num_attention_heads")
    return Shape(
        layers=layers,
        hidden_size=hidden,
        attention_heads=heads,
        kv_heads=_kv_heads(architecture, fields, heads),
        head_dim=_head_dim(architecture, fields, hidden, heads),
        intermediate_size=fields.whole("intermediate_size"),
        vocabulary=fields.whole("vocab_size"),
        tied_embeddings=fields.flag("tie_word_embeddings", default=architecture.tied_by_default),
        latent=_latent(fields) if architecture.latent else None,
        experts=architecture.experts(fields, layers),
        parts=_parts(architecture, fields),
    )


def _kv_heads(architecture: Architecture, fields: Fields, heads: int) -> int:
    name = "num_key_value_heads"
    found = fields.whole(name, None if architecture.kv_heads_stated else heads)
    fields.multiple("num_attention_heads", heads, name, found)
    return found


def _head_dim(architecture: Architecture, fields: Fields, hidden: int, heads: int) -> int:
    if architecture.latent:
        return fields.whole("qk_nope_head_dim") + fields.whole("qk_rope_head_dim")
    if architecture.head_dim_stated or fields.stated("head_dim"):
        return fields.whole("head_dim")
    return fields.multiple("hidden_size", hidden, "num_attention_heads", heads)


def _latent(fields: Fields) -> LatentAttention:
    return LatentAttention(
        q_lora_rank=fields.whole_or_null("q_lora_rank"),
        kv_lora_rank=fields.whole("kv_lora_rank"),
        qk_nope_head_dim=fields.whole("qk_nope_head_dim"),
        qk_rope_head_dim=fields.whole("qk_rope_head_dim"),
        v_head_dim=fields.whole("v_head_dim"),
    )


def _parts(architecture: Architecture, fields: Fields) -> Parts:
    parts = replace(architecture.parts, mlp_bias=fields.flag("mlp_bias"))
    if not architecture.bias_field:
        return parts
    biased = fields.flag("attention_bias", default=parts.attention_bias == "all")
    return replace(parts, attention_bias="all" if biased else "none")
