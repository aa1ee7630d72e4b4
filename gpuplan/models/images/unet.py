"""Convolutional modules of diffusion pipelines: the UNet that denoises, and the autoencoder.

Counted as huggingface/diffusers 0.42 builds them.
"""

from __future__ import annotations

from gpuplan.models.fields import Fields
from gpuplan.models.images.transformers import dense

_KERNEL = 9  # 3 x 3


def _convolution(inputs: int, outputs: int) -> int:
    return (inputs * _KERNEL + 1) * outputs


def _residual(inputs: int, outputs: int, time: int) -> int:
    """Two convolutions with a norm each, the time step between them."""
    total = 2 * inputs + _convolution(inputs, outputs) + 2 * outputs
    total += _convolution(outputs, outputs) + (dense(time, outputs) if time else 0)
    return total + (dense(inputs, outputs) if inputs != outputs else 0)


def _attention(width: int, depth: int, text: int) -> int:
    """Blocks of self-attention, cross-attention and a gated MLP, with a projection around them."""
    own = 4 * width**2 + width
    cross = 2 * width**2 + 2 * text * width + width
    mlp = dense(width, 8 * width) + dense(4 * width, width)
    return 2 * width + 2 * dense(width, width) + depth * (own + cross + mlp + 6 * width)


def _each(fields: Fields, name: str, count: int, default: int) -> list[int]:
    """A number for each block, stated once or one by one."""
    if isinstance(fields.value(name), list):
        return fields.entries(name, int, f"a list of {count} numbers", count) or [1] * count
    return [fields.whole(name, default)] * count


def unet(fields: Fields) -> int:
    """`UNet2DConditionModel`: down, through the middle and up again, each level twice as wide."""
    wide: list[int] = fields.entries("block_out_channels", int, "a list of numbers") or [1]
    kinds = fields.entries("down_block_types", str, "a list of texts", len(wide))
    layers, text = fields.whole("layers_per_block"), fields.whole("cross_attention_dim")
    depths = _each(fields, "transformer_layers_per_block", len(wide), 1)
    channels, time = fields.whole("in_channels"), 4 * wide[0]
    attending = [kind.startswith("CrossAttn") for kind in kinds] or [False] * len(wide)
    beside = [
        _attention(width, depth, text) if has else 0
        for width, depth, has in zip(wide, depths, attending, strict=True)
    ]
    middle = 2 * _residual(wide[-1], wide[-1], time) + _attention(wide[-1], depths[-1], text)
    ends = _convolution(channels, wide[0]) + dense(wide[0], time) + dense(time, time)
    ends += 2 * wide[0] + _convolution(wide[0], fields.whole("out_channels"))
    if size := fields.whole("projection_class_embeddings_input_dim", 0, least=0):
        ends += dense(size, time) + dense(time, time)
    down = _down(wide, layers, time) + layers * sum(beside)
    return down + middle + _up(wide, layers, time) + (layers + 1) * sum(beside) + ends


def _down(wide: list[int], layers: int, time: int) -> int:
    total, before = 0, wide[0]
    for width in wide:
        total += _residual(before, width, time) + (layers - 1) * _residual(width, width, time)
        before = width
    return total + sum(_convolution(width, width) for width in wide[:-1])


def _up(wide: list[int], layers: int, time: int) -> int:
    """Each residual block also reads what the way down left at its level."""
    total, before = 0, wide[-1]
    for level in reversed(range(len(wide))):
        width, below = wide[level], wide[max(level - 1, 0)]
        total += _residual(before + width, width, time)
        total += (layers - 1) * _residual(2 * width, width, time)
        total += _residual(width + below, width, time)
        before = width
    return total + sum(_convolution(width, width) for width in wide[1:])


def autoencoder(fields: Fields) -> int:
    """`AutoencoderKL`: encoder and decoder, each with one attention in the middle."""
    wide: list[int] = fields.entries("block_out_channels", int, "a list of numbers") or [1]
    layers, latent = fields.whole("layers_per_block"), fields.whole("latent_channels")
    colours, last = fields.whole("in_channels", 3), wide[-1]
    middle = 2 * _residual(last, last, 0) + 2 * last + 4 * dense(last, last)
    encoder = _convolution(colours, wide[0]) + _down(wide, layers, 0) + middle
    encoder += 2 * last + _convolution(last, 2 * latent)
    decoder = _convolution(latent, last) + middle + _down(wide[::-1], layers + 1, 0)
    decoder += 2 * wide[0] + _convolution(wide[0], fields.whole("out_channels", 3))
    quantized = dense(2 * latent, 2 * latent) if fields.flag("use_quant_conv", default=True) else 0
    back = dense(latent, latent) if fields.flag("use_post_quant_conv", default=True) else 0
    return encoder + decoder + quantized + back
