"""How a config.json is read: an architecture's parts, and the names and defaults of its fields.

A config.json may leave a field out where the architecture's configuration class in
huggingface/transformers, which wrote the file, has a value for it; those values are `defaults`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any, Literal

from gpuplan.frozen import record
from gpuplan.models.families import attention, experts, rotary, towers
from gpuplan.models.families.layers import Feeds, Frame, Layer, Mixers, Parts, Towers
from gpuplan.models.fields import Fields
from gpuplan.models.model import Pooling, Tower
from gpuplan.models.precision import leaves_attention
from gpuplan.source import Origin


def _stated(fields: Fields, _heads: int) -> int:
    return fields.whole("num_key_value_heads")


def as_many(fields: Fields, heads: int) -> int:
    """As many KV heads as query heads where the number is missing."""
    return fields.whole("num_key_value_heads", heads)


def nothing(_fields: Fields, _frame: Frame, _vocabulary: int) -> int:
    """No parameters beside embedding, layers, last norm and head."""
    return 0


def unchanged(_fields: Fields, parts: Parts) -> Parts:
    """The parts do not depend on fields."""
    return parts


@record
class Architecture:
    """`bias_field` decides over biases of the attention where the configuration has it. `text`:
    where the language model stands in the configuration of a larger one. `ends`: parameters beside
    embedding, layers, last norm and head; `adjust`: parts that fields decide over. `head_dim`:
    stated, or hidden size by heads. `context`: tokens, where no field states them. `pooling`: what
    a text becomes where none is written; such a model has no head for tokens, whatever is tied.
    `rotary`: elements of the tables of positions."""

    parts: Parts = Parts()
    mixers: Mixers = attention.plain
    feeds: Feeds = experts.dense
    towers: Towers = towers.none
    rotary: Callable[[Fields, Frame], int] = rotary.uncounted
    ends: Callable[[Fields, Frame, int], int] = nothing
    kv_heads: Callable[[Fields, int], int] = _stated
    names: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None
    bias_field: str | None = None
    adjust: Callable[[Fields, Parts], Parts] = unchanged
    head_dim: Literal["stated", "divided"] = "divided"
    last_norm: bool = True
    context: Callable[[Fields], int] | None = None
    role: Literal["decoder", "encoder", "encoder_decoder"] = "decoder"
    pooling: Pooling | None = None


@record
class Shape:
    """A model's dimensions and layers; of no use when the `fields` of the language model have
    problems. `ends`: parameters beside embedding, layers and head; `rotary`: elements of the tables
    of positions."""

    fields: Fields
    frame: Frame
    layers: tuple[Layer, ...]
    vocabulary: int
    tied: bool
    ends: int
    towers: tuple[Tower, ...]
    rotary: int


def read(architecture: Architecture, name: str, config: Mapping[str, Any], at: Origin) -> Fields:
    """The fields of a configuration, under the names that most architectures use."""
    return Fields(dict(architecture.defaults) | dict(config), name, at, architecture.names)


def shape(architecture: Architecture, whole: Fields) -> Shape:
    fields = whole
    if architecture.text and whole.stated(architecture.text):
        fields = whole.within(architecture.text, architecture.names, architecture.defaults)
    frame = _frame(architecture, fields)
    mixers, feeds = architecture.mixers(fields, frame), architecture.feeds(fields, frame)
    vocabulary = fields.whole("vocab_size", least=1 if architecture.role == "decoder" else 0)
    norms = frame.parts.norms * _norm(frame)
    layers = tuple(
        Layer(mixer=mixer, feed=feed, rest=norms)
        for mixer, feed in zip(mixers, feeds, strict=False)
    )
    tied = fields.flag("tie_word_embeddings", default=whole.flag("tie_word_embeddings"))
    headless = architecture.pooling is not None
    last = _norm(frame) if architecture.last_norm else 0
    return Shape(
        fields=fields,
        frame=replace(frame, layers=len(layers)),
        layers=layers,
        vocabulary=vocabulary,
        tied=tied or headless,
        ends=architecture.ends(fields, frame, vocabulary) + last,
        towers=architecture.towers(whole, frame),
        rotary=architecture.rotary(fields, frame),
    )


def _norm(frame: Frame) -> int:
    return frame.hidden_size * (frame.parts.norm_weight + frame.parts.norm_bias)


def _frame(architecture: Architecture, fields: Fields) -> Frame:
    hidden, heads = fields.whole("hidden_size"), fields.whole("num_attention_heads")
    kv_heads = architecture.kv_heads(fields, heads)
    fields.multiple("num_attention_heads", heads, "num_key_value_heads", kv_heads)
    layers = fields.whole("num_hidden_layers")
    return Frame(
        layers=layers,
        list_length=layers if fields.sound("num_hidden_layers") else None,
        hidden_size=hidden,
        attention_heads=heads,
        kv_heads=kv_heads,
        head_dim=_head_dim(architecture, fields, hidden, heads),
        parts=_parts(architecture, fields),
    )


def _head_dim(architecture: Architecture, fields: Fields, hidden: int, heads: int) -> int:
    if fields.stated("qk_nope_head_dim"):
        return fields.whole("qk_nope_head_dim") + fields.whole("qk_rope_head_dim")
    if architecture.head_dim == "stated" or fields.stated("head_dim"):
        return fields.whole("head_dim")
    return fields.multiple("hidden_size", hidden, "num_attention_heads", heads)


def _parts(architecture: Architecture, fields: Fields) -> Parts:
    own = architecture.parts
    parts = replace(own, mlp_bias=fields.flag("mlp_bias", default=own.mlp_bias))
    parts = architecture.adjust(fields, parts)
    if leaves_attention(fields):
        parts = replace(parts, attention_quantized=False)
    if architecture.bias_field is None:
        return parts
    biased = fields.flag(architecture.bias_field, default=own.attention_bias != "none")
    kind = "all" if own.attention_bias == "none" else own.attention_bias
    return replace(parts, attention_bias=kind if biased else "none")
