"""Diffusion transformers: parameters by the class that a module's config.json names.

Counted as huggingface/diffusers 0.42 builds them; fixed tables of positions are not counted. A
block multiplies 4 h² (attention) + 8 h² (MLP) for each token, and 2 h² more with cross-attention;
the modulation of a block is not per token.
"""

from __future__ import annotations

from gpuplan.models.fields import Fields

_SINES = 256  # width of the embedding of a time step


def dense(inputs: int, outputs: int) -> int:
    """A linear layer with its bias."""
    return (inputs + 1) * outputs


def _two(inputs: int, width: int) -> int:
    """A linear layer, and one as wide as its output behind it."""
    return dense(inputs, width) + dense(width, width)


def _mlp(width: int, inner: int) -> int:
    return dense(width, inner) + dense(inner, width)


def _stream(width: int) -> int:
    """Modulation, four projections and the MLP of one stream of tokens."""
    return dense(width, 6 * width) + 4 * dense(width, width) + _mlp(width, 4 * width)


def _joint(width: int, head: int) -> int:
    """Image and text in streams of their own that attend together."""
    return 2 * _stream(width) + 4 * head


def _single(width: int, head: int) -> int:
    """One stream, its MLP beside the attention."""
    projections = 3 * dense(width, width) + dense(5 * width, width)
    return dense(width, 3 * width) + dense(width, 4 * width) + projections + 2 * head


def _width(fields: Fields) -> tuple[int, int]:
    head = fields.whole("attention_head_dim")
    return fields.whole("num_attention_heads") * head, head


def _last(width: int, outputs: int) -> int:
    return dense(width, 2 * width) + dense(width, outputs)


def _conditions(fields: Fields, width: int, *, guided: bool) -> int:
    """Embeddings of time step, guidance and pooled text."""
    pooled = fields.whole("pooled_projection_dim")
    return (2 if guided else 1) * _two(_SINES, width) + _two(pooled, width)


def flux(fields: Fields) -> int:
    width, head = _width(fields)
    blocks = fields.whole("num_layers") * _joint(width, head)
    blocks += fields.whole("num_single_layers") * _single(width, head)
    channels = fields.whole("in_channels")
    ends = _conditions(fields, width, guided=fields.flag("guidance_embeds"))
    ends += dense(channels, width) + dense(fields.whole("joint_attention_dim"), width)
    return blocks + ends + _last(width, channels)


def stable_diffusion3(fields: Fields) -> int:
    """The last block drops the text stream. Blocks with a second attention are not counted."""
    fields.must_be("dual_attention_layers", value=())
    width, head = _width(fields)
    normed = head if fields.stated("qk_norm") else 0
    blocks = fields.whole("num_layers") * _joint(width, normed)
    blocks -= dense(width, 4 * width) + dense(width, width) + _mlp(width, 4 * width)
    patch = fields.whole("patch_size") ** 2
    ends = _conditions(fields, width, guided=False)
    ends += dense(patch * fields.whole("in_channels"), width)
    ends += dense(fields.whole("joint_attention_dim"), width)
    return blocks + ends + _last(width, patch * fields.whole("out_channels"))


def pixart(fields: Fields) -> int:
    """One modulation for all layers; cross-attention to the text."""
    width, _ = _width(fields)
    block = 6 * width + 8 * dense(width, width) + _mlp(width, 4 * width)
    patch = fields.whole("patch_size") ** 2
    ends = 2 * width + _two(_SINES, width) + dense(width, 6 * width)
    large = fields.whole("sample_size") == 128
    if fields.flag("use_additional_conditions", default=large):  # size and shape of the image
        ends += 2 * _two(_SINES, width // 3)
    ends += dense(patch * fields.whole("in_channels"), width)
    if captions := fields.whole("caption_channels", 0, least=0):
        ends += _two(captions, width)
    outputs = dense(width, patch * fields.whole("out_channels"))
    return fields.whole("num_layers") * block + ends + outputs


def qwen_image(fields: Fields) -> int:
    width, head = _width(fields)
    channels, text = fields.whole("in_channels"), fields.whole("joint_attention_dim")
    outputs = fields.whole("patch_size") ** 2 * fields.whole("out_channels")
    ends = _two(_SINES, width) + text + dense(channels, width) + dense(text, width)
    blocks = fields.whole("num_layers") * _joint(width, head)
    return blocks + ends + _last(width, outputs)


def wan(fields: Fields) -> int:
    """Cross-attention to the text, norms as wide as all heads. Image conditions are not counted."""
    fields.must_be("image_dim", value=None)
    width, _ = _width(fields)
    block = 6 * width + 8 * dense(width, width) + 6 * width + _mlp(width, fields.whole("ffn_dim"))
    pixels = _pixels(fields)
    ends = 2 * width + dense(pixels * fields.whole("in_channels"), width)
    ends += _two(_SINES, width) + dense(width, 6 * width) + _two(fields.whole("text_dim"), width)
    outputs = dense(width, pixels * fields.whole("out_channels"))
    return fields.whole("num_layers") * block + ends + outputs


def _pixels(fields: Fields) -> int:
    """Latents of a token in time, height and width."""
    sizes = fields.entries("patch_size", int, "a list of three numbers", 3)
    return sizes[0] * sizes[1] * sizes[2] if sizes else 1


def hunyuan_video(fields: Fields) -> int:
    """As FLUX, with blocks that refine the text first."""
    width, head = _width(fields)
    text, patch = fields.whole("text_embed_dim"), fields.whole("patch_size") ** 2
    blocks = fields.whole("num_layers") * _joint(width, head)
    blocks += fields.whole("num_single_layers") * _single(width, head)
    refined = 4 * width + 4 * dense(width, width) + _mlp(width, 4 * width) + dense(width, 2 * width)
    refiner = fields.whole("num_refiner_layers") * refined
    refiner += _two(_SINES, width) + _two(text, width) + dense(text, width)
    channels = patch * fields.whole("patch_size_t")
    ends = _conditions(fields, width, guided=fields.flag("guidance_embeds"))
    ends += dense(channels * fields.whole("in_channels"), width)
    outputs = channels * fields.whole("out_channels")
    return blocks + refiner + ends + _last(width, outputs)


CROSSED = ("PixArtTransformer2DModel", "WanTransformer3DModel")  # text is not among the tokens


def token_weights(name: str, fields: Fields) -> tuple[int, int, float]:
    """Width of a token, layers, and the weights that multiply each token, of the class `name`."""
    width, _ = _width(fields)
    layers = fields.whole("num_layers") + fields.whole("num_single_layers", 0, least=0)
    if name in CROSSED:
        return width, layers, crossed_weights(width, layers, fields.whole("ffn_dim", 4 * width))
    return width, layers, joint_weights(width, layers)


def joint_weights(width: int, layers: int) -> float:
    """Of blocks in which image and text attend together."""
    return 12.0 * width**2 * layers


def crossed_weights(width: int, layers: int, mlp: int) -> float:
    """Of blocks with self- and cross-attention, and an MLP of two matrices."""
    return (6.0 * width**2 + 2 * width * mlp) * layers
