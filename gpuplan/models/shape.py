"""What a decoder is made of: its dimensions, and which parts its architecture has."""

from __future__ import annotations

from typing import Literal

from gpuplan.models.model import Experts, LatentAttention
from gpuplan.plan.records import record


@record
class Parts:
    """The parts in which decoders differ, beside attention, gated MLP and norms. `norms` are those
    of width `hidden_size` in a layer. `attention_quantized` is False where quantized checkpoints
    hold the experts alone in low precision."""

    attention_bias: Literal["none", "query_key_value", "all"] = "none"
    mlp_bias: bool = False
    expert_bias: bool = False
    router_bias: bool = False
    query_key_norm: bool = False
    attention_sinks: bool = False
    norms: int = 2
    attention_quantized: bool = True


@record
class Shape:
    layers: int
    hidden_size: int
    attention_heads: int
    kv_heads: int
    head_dim: int
    intermediate_size: int
    vocabulary: int
    tied_embeddings: bool
    latent: LatentAttention | None
    experts: Experts | None
    parts: Parts
