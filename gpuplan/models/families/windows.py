"""Which layers attend to a sliding window only, by architecture."""

from __future__ import annotations

from collections.abc import Callable

from gpuplan.models.fields import Fields

# The window of each layer in tokens, None where it sees everything.
Windows = Callable[[Fields, int], tuple[int | None, ...]]


def all_layers(fields: Fields, layers: int) -> tuple[int | None, ...]:
    window = fields.whole_or_null("sliding_window")
    return _where(window, [True] * layers)


def every_other(fields: Fields, layers: int) -> tuple[int | None, ...]:
    """Gemma 2, gpt-oss: the first layer has a window, the second has none, and so on."""
    window = fields.whole_or_null("sliding_window")
    return _where(window, _listed(fields, layers) or [i % 2 == 0 for i in range(layers)])


def all_but_every_nth(name: str, default: int | None = None, *, first: int = 1) -> Windows:
    """Every n-th layer sees everything, as the field `name` says (Gemma 3, Cohere 2, OLMo 3);
    counted from `first`."""

    def windows(fields: Fields, layers: int) -> tuple[int | None, ...]:
        if listed := _listed(fields, layers):
            return _where(fields.whole_or_null("sliding_window"), listed)
        every = fields.whole(name, default)
        having = [(i + first) % every != 0 for i in range(layers)]
        return _where(fields.whole_or_null("sliding_window"), having)

    return windows


def upper_layers(fields: Fields, layers: int) -> tuple[int | None, ...]:
    """Qwen: the layers from `max_window_layers` on, where `use_sliding_window` is set."""
    if not fields.flag("use_sliding_window"):
        return (None,) * layers
    having = _listed(fields, layers)
    if not having:
        first = fields.whole("max_window_layers", least=0)
        having = [i >= first for i in range(layers)]
    return _where(fields.whole_or_null("sliding_window"), having)


def chunks(fields: Fields, layers: int) -> tuple[int | None, ...]:
    """Llama 4: three layers of four see the chunk of `attention_chunk_size` they are in."""
    every = fields.whole("no_rope_layer_interval", 4)
    chunk = fields.whole_or_null("attention_chunk_size")
    return _where(chunk, [(i + 1) % every != 0 for i in range(layers)])


def optional(window: Windows) -> Windows:
    """For architectures whose `sliding_window` is often left out."""

    def windows(fields: Fields, layers: int) -> tuple[int | None, ...]:
        return window(fields, layers) if fields.stated("sliding_window") else (None,) * layers

    return windows


def _where(window: int | None, having: list[bool]) -> tuple[int | None, ...]:
    return tuple(window if has else None for has in having)


def _listed(fields: Fields, layers: int) -> list[bool]:
    """What `layer_types` says of each layer; nothing where there is no list."""
    if not fields.stated("layer_types"):
        return []
    length = layers if fields.sound("num_hidden_layers") else None
    kinds = fields.choices("layer_types", ("full_attention", "sliding_attention"), length)
    return [kind == "sliding_attention" for kind in kinds] or [False] * layers
