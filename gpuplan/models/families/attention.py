"""Softmax attention: parameters of a layer, and what a token leaves in its cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gpuplan.models.families import windows
from gpuplan.models.families.layers import Frame, Mixer, Mixers
from gpuplan.models.fields import Fields
from gpuplan.models.model import AttentionLayers, LatentAttention, SparseAttention


def grouped(
    frame: Frame,
    *,
    kv_heads: int | None = None,
    head_dim: int | None = None,
    value_dim: int | None = None,
    window: int | None = None,
    chunked: bool = False,
) -> Mixer:
    """Query heads in groups, each with a head of keys and one of values."""
    kv, size = kv_heads or frame.kv_heads, head_dim or frame.head_dim
    kind = AttentionLayers(
        layers=1,
        heads=frame.attention_heads,
        kv_heads=kv,
        head_dim=size,
        value_dim=value_dim or size,
        cached_per_token=kv * (size + (value_dim or size)),
        window=window,
        chunked=chunked,
    )
    return _mixer(frame, projections(kind, frame), _rest(kind, frame), attention=kind)


def _mixer(frame: Frame, linear: int, rest: int, **kinds: Any) -> Mixer:
    if frame.parts.attention_quantized:
        return Mixer(linear=linear, rest=rest, **kinds)
    return Mixer(linear=0, rest=linear + rest, kept=linear, **kinds)


def projections(kind: AttentionLayers, frame: Frame) -> int:
    """Weights of the projections of one layer."""
    query = kind.heads * kind.head_dim * (2 if frame.parts.output_gate else 1)
    written = kind.heads * kind.value_dim
    return frame.hidden_size * (query + kind.cached_per_token + written)


def _rest(kind: AttentionLayers, frame: Frame) -> int:
    """Norms, biases and sinks."""
    parts, total = frame.parts, 0
    if parts.attention_bias != "none":
        total += kind.heads * kind.head_dim + kind.cached_per_token
    if parts.attention_bias == "all":
        total += frame.hidden_size
    if parts.query_key_norm == "head":
        total += 2 * kind.head_dim
    if parts.query_key_norm == "width":
        total += (kind.heads + kind.kv_heads) * kind.head_dim
    return total + (kind.heads if parts.attention_sinks else 0)


def plain(_fields: Fields, frame: Frame) -> tuple[Mixer, ...]:
    """Layers that all see everything."""
    return (grouped(frame),) * frame.layers


def windowed(window: windows.Windows, chunked: bool = False) -> Mixers:
    """Layers of which some have a window."""

    def mixers(fields: Fields, frame: Frame) -> tuple[Mixer, ...]:
        widths = window(fields, frame.layers)
        return tuple(grouped(frame, window=w, chunked=chunked and bool(w)) for w in widths)

    return mixers


def latent(fields: Fields, frame: Frame) -> tuple[Mixer, ...]:
    """Multi-head latent attention in every layer."""
    return (compressed(read_latent(fields), frame),) * frame.layers


def read_latent(fields: Fields) -> LatentAttention:
    return LatentAttention(
        q_lora_rank=fields.whole_or_null("q_lora_rank"),
        kv_lora_rank=fields.whole("kv_lora_rank"),
        qk_nope_head_dim=fields.whole("qk_nope_head_dim"),
        qk_rope_head_dim=fields.whole("qk_rope_head_dim"),
        v_head_dim=fields.whole("v_head_dim"),
    )


def compressed(latent: LatentAttention, frame: Frame) -> Mixer:
    """Down and up projections of queries and of keys and values, and the output projection."""
    hidden, heads = frame.hidden_size, frame.attention_heads
    head = latent.qk_nope_head_dim + latent.qk_rope_head_dim
    rank, row = latent.q_lora_rank, latent.kv_lora_rank + latent.qk_rope_head_dim
    queries = hidden * rank + rank * heads * head if rank else hidden * heads * head
    up = latent.kv_lora_rank * heads * (latent.qk_nope_head_dim + latent.v_head_dim)
    norms = latent.kv_lora_rank + (rank or 0)
    biases = row + (rank or 0) + hidden if frame.parts.attention_bias == "all" else 0
    return _mixer(
        frame,
        queries + hidden * row + up + heads * latent.v_head_dim * hidden,
        norms + biases,
        latent=latent,
        attention=AttentionLayers(
            layers=1,
            heads=heads,
            kv_heads=frame.kv_heads,
            head_dim=head,
            value_dim=latent.v_head_dim,
            cached_per_token=row,
        ),
    )


def indexed(fields: Fields, frame: Frame) -> tuple[Mixer, ...]:
    """DeepSeek-V3.2, GLM-5: latent attention to the tokens that an indexer chooses. A layer whose
    `indexer_types` entry is `shared` has no indexer of its own."""
    dense = compressed(read_latent(fields), frame)
    heads, size = fields.whole("index_n_heads"), fields.whole("index_head_dim")
    rank = fields.whole("q_lora_rank")
    sparse = SparseAttention(
        layers=1,
        top_k=fields.whole("index_topk"),
        block=1,
        index_layers=1,
        index_heads=heads,
        index_head_dim=size,
        index_cached_per_token=size,
    )
    indexer = rank * heads * size + frame.hidden_size * size
    scores = frame.hidden_size * heads + 2 * size  # kept in high precision, with the key's norm
    own = replace(dense, linear=dense.linear + indexer, rest=dense.rest + scores, sparse=sparse)
    reusing = replace(dense, sparse=replace(sparse, index_layers=0))
    wanted = f"a list of {frame.layers} texts"
    kinds = (
        fields.entries("indexer_types", str, wanted, frame.list_length) or ["full"] * frame.layers
    )
    return tuple(reusing if kind == "shared" else own for kind in kinds)


def by_kind(
    kinds: Callable[[Fields, Frame], tuple[str, ...]],
    **made: Callable[[Fields, Frame], Mixer | None],
) -> Mixers:
    """Layers of several kinds: `kinds` names one for each layer, `made` builds one of each."""

    def mixers(fields: Fields, frame: Frame) -> tuple[Mixer | None, ...]:
        named = kinds(fields, frame)
        built = {kind: made[kind](fields, frame) for kind in made if kind in named}
        return tuple(built[kind] for kind in named)

    return mixers


def full(_fields: Fields, frame: Frame) -> Mixer:
    """A layer that sees everything, for `by_kind`."""
    return grouped(frame)


def full_latent(fields: Fields, frame: Frame) -> Mixer:
    return compressed(read_latent(fields), frame)
