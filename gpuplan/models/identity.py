"""Which network it is, whatever it is called: a text made of dimensions alone."""

from __future__ import annotations

from gpuplan.models.model import (
    Diffusion,
    Experts,
    LinearAttention,
    Model,
    Speech,
    Transformer,
    Vision,
)

# A few added tokens (32,000, 32,016) make no other network.
_TOKENS = 1024


def identity(model: Model) -> str:
    """The same for models of the same dimensions: fine-tuned, renamed, in another precision, with a
    tower for images before it. Source of no number; a key."""
    if isinstance(model, Diffusion):
        return "+".join(f"{m.kind}{m.parameters:.1e}" for m in model.modules)
    if isinstance(model, Speech):
        return f"audio {identity(model.encoder)} to {identity(model.decoder)}"
    if isinstance(model, Vision):
        return f"images {model.network.identifier} {model.pixels}"
    words = [
        f"{model.layers}x{model.hidden_size}",
        _attention(model),
        f"f{model.intermediate_size}" if model.dense_layers else "",
        _experts(model.experts) if model.experts else "",
        _linear(model.linear) if model.linear else "",
        f"top{model.sparse.top_k}" if model.sparse else "",
        f"v{round(model.vocabulary / _TOKENS)}k",
    ]
    return " ".join(word for word in words if word)


def _attention(model: Transformer) -> str:
    if model.latent:
        return f"{model.attention_heads}h-mla{model.latent.kv_lora_rank}"
    return f"{model.attention_heads}h{model.kv_heads}kv{model.head_dim}"


def _experts(experts: Experts) -> str:
    shared = f"+{experts.shared}" if experts.shared else ""
    return f"{experts.layers}m{experts.active}of{experts.count}{shared}w{experts.intermediate_size}"


def _linear(linear: LinearAttention) -> str:
    return f"{linear.layers}{linear.kind}-{linear.value_heads}x{linear.value_dim}"
