"""What a layer is made of, counted: a mixer of tokens and a feed-forward part.

`linear` are weights of linear layers that a quantized checkpoint stores in its low precision,
`rest` norms, biases, routers and convolutions, which stay in high precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from gpuplan.frozen import record
from gpuplan.models.fields import Fields
from gpuplan.models.model import (
    AttentionLayers,
    Experts,
    LatentAttention,
    LinearAttention,
    SparseAttention,
    Tower,
)

Bias = Literal["none", "query_key_value", "all"]
Norm = Literal["none", "head", "width"]


@record
class Parts:
    """The parts in which decoders differ. `norms` are those of width `hidden_size` in a layer, with
    a bias each where `norm_bias`, without a weight where not `norm_weight`. `query_key_norm`: of
    one head's width or of all heads together. `attention_quantized` is False where quantized
    checkpoints hold the experts alone in low precision. `parallel`: attention and MLP of a layer
    read the same input."""

    attention_bias: Bias = "none"
    mlp_bias: bool = False
    gated_mlp: bool = True
    expert_bias: bool = False
    router_bias: bool = False
    query_key_norm: Norm = "none"
    attention_sinks: bool = False
    output_gate: bool = False
    parallel: bool = False
    norms: int = 2
    norm_bias: bool = False
    norm_weight: bool = True
    attention_quantized: bool = True


@record
class Frame:
    """The dimensions that all layers share. A list with an entry a layer has `list_length` of them;
    None, as many as it has, where the number of layers is wrong itself."""

    layers: int
    list_length: int | None
    hidden_size: int
    attention_heads: int
    kv_heads: int
    head_dim: int
    parts: Parts


@record
class Mixer:
    """Attention, a linear layer, or both beside each other (Falcon-H1). `kept`: the projections
    among `rest`, where checkpoints leave them as they were."""

    linear: int
    rest: int = 0
    kept: int = 0
    attention: AttentionLayers | None = None
    latent: LatentAttention | None = None
    recurrent: LinearAttention | None = None
    sparse: SparseAttention | None = None


@record
class Feed:
    """An MLP of `width`, or experts. The active counts leave out those that a token does not
    pass."""

    linear: int
    rest: int = 0
    active_linear: int
    active_rest: int = 0
    width: int = 0
    experts: Experts | None = None


@record
class Layer:
    mixer: Mixer | None
    feed: Feed | None
    rest: int


# One for each layer; None where a layer has none.
Mixers = Callable[[Fields, Frame], tuple[Mixer | None, ...]]
Feeds = Callable[[Fields, Frame], tuple[Feed | None, ...]]
Towers = Callable[[Fields, Frame], tuple[Tower, ...]]
