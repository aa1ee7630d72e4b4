"""How many layers attend to a sliding window only, by architecture."""

from __future__ import annotations

from gpuplan.models.fields import Fields

# Tokens of the window, or None, and the number of layers that have it.
Window = tuple[int | None, int]
NONE: Window = (None, 0)


def none(_fields: Fields, _layers: int) -> Window:
    """An architecture without windows."""
    return NONE


def all_layers(fields: Fields, layers: int) -> Window:
    window = fields.whole_or_null("sliding_window")
    return (window, layers) if window else NONE


def every_other(fields: Fields, layers: int) -> Window:
    """Gemma 2, gpt-oss: the first layer has a window, the second has none, and so on."""
    return _with_window(fields, _listed(fields, layers, (layers + 1) // 2))


def all_but_every_nth(fields: Fields, layers: int) -> Window:
    """Gemma 3: every `sliding_window_pattern`-th layer sees everything."""
    if fields.stated("layer_types"):
        return _with_window(fields, _listed(fields, layers, 0))
    return _with_window(fields, layers - layers // fields.whole("sliding_window_pattern"))


def upper_layers(fields: Fields, layers: int) -> Window:
    """Qwen: the layers from `max_window_layers` on, where `use_sliding_window` is set."""
    if not fields.flag("use_sliding_window"):
        return NONE
    if fields.stated("layer_types"):
        return _with_window(fields, _listed(fields, layers, 0))
    return _with_window(fields, max(0, layers - fields.whole("max_window_layers", least=0)))


def _with_window(fields: Fields, layers: int) -> Window:
    window = fields.whole_or_null("sliding_window")
    return (window, layers) if window and layers else NONE


def _listed(fields: Fields, layers: int, otherwise: int) -> int:
    """Layers that `layer_types` lists with a window; `otherwise` where there is no list."""
    if not fields.stated("layer_types"):
        return otherwise
    length = layers if fields.sound("num_hidden_layers") else None
    listed = fields.entries("layer_types", str, f"a list of {layers} texts", length)
    return listed.count("sliding_attention")
