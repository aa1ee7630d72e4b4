"""The dimensions of a language model that its memory depends on, and bytes of stored weights."""

from __future__ import annotations

from dataclasses import replace

from gpuplan.accuracy.data.memory import DIFFUSION_NVFP4
from gpuplan.frozen import record
from gpuplan.models.model import Diffusion, Transformer


@record
class Body:
    """Widths in elements, `linear` and `embeddings` in parameters. `width` is of the MLP that a
    token passes last: of two experts in a mixture. `cached` elements a token in all layers, without
    regard to windows, which these libraries do not use."""

    layers: int
    hidden: int
    heads: int
    query: int
    key: int
    width: int
    vocabulary: int
    tied: bool
    gated: bool
    linear: int
    embeddings: int
    cached: float

    @property
    def parameters(self) -> int:
        return self.linear + self.embeddings

    @property
    def head(self) -> int:
        """Parameters of the output head, which may be those of the embedding."""
        return self.vocabulary * self.hidden

    @property
    def linear_widths(self) -> int:
        """In + out of every linear layer of a layer: what one rank of adapters takes."""
        attention = (self.hidden + self.query + 2 * self.key) + (self.query + self.hidden)
        return attention + (3 if self.gated else 2) * (self.hidden + self.width)


def body(model: Transformer) -> Body:
    experts = model.experts
    width = 2 * experts.intermediate_size if experts else model.intermediate_size
    copies = 1 if model.tied_embeddings else 2
    return Body(
        layers=model.layers,
        hidden=model.hidden_size,
        heads=model.attention_heads,
        query=model.attention_heads * model.head_dim,
        key=model.kv_heads * model.head_dim,
        width=width,
        vocabulary=model.vocabulary,
        tied=model.tied_embeddings,
        gated=model.gated_mlp,
        linear=model.linear_parameters,
        embeddings=model.vocabulary * model.hidden_size * copies,
        cached=sum(
            group.layers * group.cached_per_token / group.tokens_per_entry
            for group in model.attention
        ),
    )


def untied(shape: Body) -> Body:
    """With a head of its own, which litgpt always makes."""
    return replace(shape, tied=False, embeddings=2 * shape.head)


# Bits of a weight with its scales. Groups of 128 share a 16-bit scale and, in GPTQ and AWQ, a zero
# of their own width; nf4 has an fp32 scale for 64 weights, itself in 8 bits when doubled (QLoRA,
# Dettmers 2023, section 3).
BITS = {
    "bf16": 16.0,
    "fp32": 32.0,
    "fp8": 8.002,
    "int8": 8.19,
    "gptq-int8": 8.19,
    "int4": 4.156,
    "gptq-int4": 4.156,
    "awq": 4.156,
    "nf4": 4.5,
    "nf4-dq": 4.127,
    "nvfp4": 4.5,
    "mxfp4": 4.25,
}


def stored_bytes(body: Body, form: str) -> float:
    """Weights on the device: linear layers in `form`, embeddings and head in 16 or 32 bits."""
    return body.linear * BITS[form] / 8 + (4.0 if form == "fp32" else 2.0) * body.embeddings


def diffusion_bytes(model: Diffusion, form: str, *, offload: bool) -> float:
    """Modules of a pipeline on the device; the denoiser in `form`, the others in 16 bits."""
    sizes = []
    for module in model.modules:
        low = module.kind in ("transformer", "unet")
        bits = DIFFUSION_NVFP4 if form == "nvfp4" else BITS[form]
        sizes.append(module.parameters * (bits if low else 16.0) / 8)
    return max(sizes) if offload else sum(sizes)
