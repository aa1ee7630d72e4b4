"""A model's numbers from its layers.

Counted are the tensors that the architecture's weights have: see the modelling code of
huggingface/transformers. Modules for multi-token prediction, which only speculative decoding loads,
are not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar

from gpuplan.models.families.architectures import Shape
from gpuplan.models.families.layers import Feed, Layer, Mixer
from gpuplan.models.model import AttentionLayers, Experts, LinearAttention, SparseAttention

Part = TypeVar("Part", AttentionLayers, Experts, LinearAttention)


def numbers(shape: Shape) -> dict[str, Any]:
    """The fields of a `Transformer` that follow from its layers."""
    layers, frame = shape.layers, shape.frame
    kinds, mixture = _attention(layers), _merged(f.experts for f in _feeds(layers) if f.experts)
    main = next((kind for kind in kinds if kind.window is None), next(iter(kinds), None))
    windowed = [kind for kind in kinds if kind.window is not None]
    return {
        "layers": frame.layers,
        "hidden_size": frame.hidden_size,
        "attention_heads": main.heads if main else frame.attention_heads,
        "kv_heads": main.kv_heads if main else frame.kv_heads,
        "head_dim": main.head_dim if main else frame.head_dim,
        "vocabulary": shape.vocabulary,
        "tied_embeddings": shape.tied,
        "gated_mlp": frame.parts.gated_mlp,
        "latent": next((m.latent for m in _mixers(layers) if m.latent), None),
        "experts": next(iter(mixture), None),
        "sliding_window": windowed[0].window if windowed else None,
        "sliding_layers": sum(kind.layers for kind in windowed),
        "attention": kinds,
        "attention_free_layers": frame.layers - sum(kind.layers for kind in kinds),
        "mlp_free_layers": frame.layers - len(_feeds(layers)),
        "linear": next(iter(_merged(m.recurrent for m in _mixers(layers) if m.recurrent)), None),
        "sparse": _sparse(layers),
        "output_gate": frame.parts.output_gate,
        "parallel_blocks": frame.parts.parallel,
        "towers": shape.towers,
        "rotary_elements": shape.rotary if shape.towers else 0,
    } | _parameters(shape)


def _parameters(shape: Shape) -> dict[str, int]:
    """Embeddings, head and norms stay in high precision; towers are counted as linear layers."""
    embedding = shape.vocabulary * shape.frame.hidden_size
    towers = sum(tower.parameters for tower in shape.towers)
    ends = embedding * (1 if shape.tied else 2) + shape.ends
    mixers, feeds = _mixers(shape.layers), _feeds(shape.layers)
    mixing = sum(m.linear for m in mixers) + towers
    rest = sum(m.rest for m in mixers) + sum(layer.rest for layer in shape.layers) + ends
    linear = mixing + sum(f.linear for f in feeds)
    active = mixing + sum(f.active_linear for f in feeds)
    return {
        "parameters": linear + rest + sum(f.rest for f in feeds),
        "active_parameters": active + rest + sum(f.active_rest for f in feeds),
        "linear_parameters": linear,
        "active_linear_parameters": active,
        "kept_parameters": sum(m.kept for m in mixers),
    }


def dense_width(layers: Iterable[Layer]) -> int:
    """Of the dense MLPs; their mean where they differ (Nemotron-NAS)."""
    widths = [feed.width for feed in _feeds(layers) if feed.width]
    return round(sum(widths) / len(widths)) if widths else 0


def _attention(layers: Iterable[Layer]) -> tuple[AttentionLayers, ...]:
    """The kinds of softmax attention, those of most layers first."""
    return _merged(m.attention for m in _mixers(layers) if m.attention)


def _sparse(layers: Iterable[Layer]) -> SparseAttention | None:
    kinds = [m.sparse for m in _mixers(layers) if m.sparse]
    if not kinds:
        return None
    return replace(
        kinds[0], layers=len(kinds), index_layers=sum(kind.index_layers for kind in kinds)
    )


def _mixers(layers: Iterable[Layer]) -> list[Mixer]:
    return [layer.mixer for layer in layers if layer.mixer]


def _feeds(layers: Iterable[Layer]) -> list[Feed]:
    return [layer.feed for layer in layers if layer.feed]


def _merged(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Equal parts as one, with the number of their layers."""
    return tuple(replace(part, layers=n) for part, n in Counter(parts).most_common())
