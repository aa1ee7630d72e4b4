"""Facts about AI models: dimensions, parameters, bytes.

Derived from a Hugging Face `config.json` or from explicit dimensions; an architecture that is not
known is refused by name.
"""

from __future__ import annotations

from typing import Literal

from gpuplan.plan.records import record


@record
class LatentAttention:
    """Multi-head latent attention (MLA), DeepSeek-V2."""

    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int


@record
class Experts:
    """Mixture of experts: `layers` of the model have one. A token passes `active` of `count` routed
    experts and all `shared` ones; the intermediate sizes are of one expert."""

    count: int
    active: int
    intermediate_size: int
    shared: int
    shared_intermediate_size: int
    layers: int


@record
class Transformer:
    """A decoder-only language model. `linear_parameters` are those that a quantized checkpoint
    stores in its low precision; embeddings, output head, routers, norms and biases stay bf16. The
    active counts leave out the experts that a token is not routed to. `sliding_layers` attend to
    the last `sliding_window` tokens only. `checkpoint_precision` is of the published weights."""

    identifier: str
    revision: str | None
    architecture: str
    layers: int
    hidden_size: int
    attention_heads: int
    kv_heads: int
    head_dim: int
    intermediate_size: int
    vocabulary: int
    tied_embeddings: bool
    gated_mlp: bool
    context_length: int
    latent: LatentAttention | None
    experts: Experts | None
    sliding_window: int | None
    sliding_layers: int
    parameters: int
    active_parameters: int
    linear_parameters: int
    active_linear_parameters: int
    source: str
    checkpoint_precision: str = "bf16"


@record
class DiffusionModule:
    """One resident module of a diffusion pipeline."""

    name: str
    kind: Literal["transformer", "unet", "text_encoder", "vae"]
    parameters: int


@record
class Diffusion:
    """A text-to-image pipeline. `flop_per_step` and `flop_fixed` (text encoders, VAE) are for one
    image of `reference_pixels` without guidance; `passes_per_step` is 2 with classifier-free
    guidance."""

    identifier: str
    revision: str | None
    architecture: str
    modules: tuple[DiffusionModule, ...]
    flop_per_step: float
    flop_fixed: float
    passes_per_step: int
    reference_pixels: int
    parameters: int
    source: str


Model = Transformer | Diffusion
