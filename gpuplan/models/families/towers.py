"""Encoders of images beside a language model, with their projectors: parameters of each kind.

Counted as the modelling code of huggingface/transformers 5.23 builds them.
"""

from __future__ import annotations

from gpuplan.frozen import record
from gpuplan.models.families.layers import Frame
from gpuplan.models.fields import Fields
from gpuplan.models.model import Tower

COLOURS = 3
# Limits of the largest image that stand in the checkpoints' preprocessor_config.json, which is not
# read: `max_pixels` of 12,845,056 at 28 pixels a token (Qwen2-VL, Qwen2.5-VL) and 16,777,216 at 32
# (Qwen3-VL, Qwen3.5), `max_patches` tiles beside the whole image, `in_patch_limit`; as others cite
# them, 2026-11-29.
QWEN_TOKENS = 16384
LLAMA4_TILES = 16 + 1
KIMI_PATCHES = 16384


@record
class Blocks:
    """Layers of a vision transformer, as wide as `hidden`; a norm has a bias or not."""

    layers: int
    hidden: int
    width: int
    gated: bool = False
    attention_bias: bool = True
    mlp_bias: bool = True
    norm_bias: bool = True

    @property
    def norm(self) -> int:
        return self.hidden * (2 if self.norm_bias else 1)

    @property
    def parameters(self) -> int:
        matrices = 3 if self.gated else 2
        attention = 4 * self.hidden**2 + 4 * self.hidden * self.attention_bias
        biases = ((matrices - 1) * self.width + self.hidden) * self.mlp_bias
        mlp = matrices * self.hidden * self.width + biases
        return self.layers * (attention + mlp + 2 * self.norm)


@record
class Image:
    """Patches of `patch` pixels squared, `per_token` of them a token of `width` numbers; `tokens`
    are of the largest one."""

    patch: int
    per_token: int
    tokens: int
    width: int


def _tower(blocks: Blocks, heads: int, image: Image, rest: int) -> tuple[Tower]:
    return (
        Tower(
            kind="vision",
            layers=blocks.layers,
            hidden_size=blocks.hidden,
            intermediate_size=blocks.width,
            gated_mlp=blocks.gated,
            attention_heads=heads,
            patch_size=image.patch,
            patches_per_token=image.per_token,
            image_tokens=image.tokens,
            output_size=image.width,
            parameters=blocks.parameters + rest,
        ),
    )


def none(_fields: Fields, _frame: Frame) -> tuple[Tower, ...]:
    return ()


def qwen2_vl(fields: Fields, frame: Frame) -> tuple[Tower, ...]:
    """Qwen2-VL; LayerNorm, an MLP of `mlp_ratio`, pairs of frames in a patch."""
    vision = fields.within("vision_config")
    hidden = vision.whole("embed_dim")
    width = hidden * vision.whole("mlp_ratio", 4)
    blocks = Blocks(layers=vision.whole("depth"), hidden=hidden, width=width)
    return _qwen(vision, blocks, frame.hidden_size, patch_bias=False)


def qwen2_5_vl(fields: Fields, _frame: Frame) -> tuple[Tower, ...]:
    """Qwen2.5-VL; RMSNorm and a gated MLP."""
    vision = fields.within("vision_config")
    blocks = Blocks(
        layers=vision.whole("depth"),
        hidden=vision.whole("hidden_size"),
        width=vision.whole("intermediate_size"),
        gated=True,
        norm_bias=False,
    )
    return _qwen(vision, blocks, vision.whole("out_hidden_size"), patch_bias=False)


def qwen3_vl(fields: Fields, _frame: Frame) -> tuple[Tower, ...]:
    """Qwen3-VL and Qwen3.5: learned positions, and projectors from layers in the middle."""
    vision = fields.within("vision_config")
    hidden, out = vision.whole("hidden_size"), vision.whole("out_hidden_size")
    width = vision.whole("intermediate_size")
    blocks = Blocks(layers=vision.whole("depth"), hidden=hidden, width=width)
    merged = hidden * vision.whole("spatial_merge_size") ** 2
    deep = len(vision.entries("deepstack_visual_indexes", int, "a list of layers"))
    between = merged**2 + merged + merged * out + out + 2 * merged
    positions = vision.whole("num_position_embeddings") * hidden
    rest = positions + deep * between
    return _qwen(vision, blocks, out, patch_bias=True, outputs=1 + deep, rest=rest)


def _qwen(
    vision: Fields,
    blocks: Blocks,
    out: int,
    *,
    patch_bias: bool,
    outputs: int = 1,
    rest: int = 0,
) -> tuple[Tower, ...]:
    """`outputs`: projectors, all of whose outputs a token has beside each other."""
    patch, merge = vision.whole("patch_size"), vision.whole("spatial_merge_size", 2)
    pixels = COLOURS * vision.whole("temporal_patch_size", 2) * patch**2
    merged = blocks.hidden * merge**2
    merger = blocks.norm + merged**2 + merged + merged * out + out
    embed = pixels * blocks.hidden + blocks.hidden * patch_bias
    heads = vision.whole("num_heads")
    image = Image(patch=patch, per_token=merge**2, tokens=QWEN_TOKENS, width=out * outputs)
    return _tower(blocks, heads, image, embed + merger + rest)


def _blocks(vision: Fields, **parts: bool) -> Blocks:
    return Blocks(
        layers=vision.whole("num_hidden_layers"),
        hidden=vision.whole("hidden_size"),
        width=vision.whole("intermediate_size"),
        **parts,
    )


def gemma3(fields: Fields, frame: Frame) -> tuple[Tower, ...]:
    """SigLIP, pooled to `mm_tokens_per_image`, and one projection."""
    vision = fields.within("vision_config")
    blocks, patch = _blocks(vision), vision.whole("patch_size")
    patches = (vision.whole("image_size") // patch) ** 2
    embed = (COLOURS * patch**2 + 1 + patches) * blocks.hidden + blocks.norm
    projector = blocks.hidden * frame.hidden_size + blocks.hidden
    tokens = fields.whole("mm_tokens_per_image", 256)
    per_token = max(1, patches // tokens)
    image = Image(patch=patch, per_token=per_token, tokens=tokens, width=frame.hidden_size)
    return _tower(blocks, vision.whole("num_attention_heads"), image, embed + projector)


def pixtral(fields: Fields, frame: Frame) -> tuple[Tower, ...]:
    """Mistral 3: RMSNorm, a gated MLP, no biases; patches merged, then two projections."""
    vision = fields.within("vision_config")
    blocks = _blocks(vision, gated=True, attention_bias=False, mlp_bias=False, norm_bias=False)
    patch, merge = vision.whole("patch_size"), fields.whole("spatial_merge_size", 2)
    embed = COLOURS * patch**2 * blocks.hidden + blocks.hidden
    merger = blocks.hidden + merge**2 * blocks.hidden**2
    projector = blocks.hidden * frame.hidden_size + frame.hidden_size**2
    tokens = max(1, vision.whole("image_size", 1024) // (patch * merge)) ** 2
    image = Image(patch=patch, per_token=merge**2, tokens=tokens, width=frame.hidden_size)
    heads = vision.whole("num_attention_heads")
    return _tower(blocks, heads, image, embed + merger + projector)


def llama4(fields: Fields, frame: Frame) -> tuple[Tower, ...]:
    """Llama 4; none where the configuration is of the text alone."""
    if not fields.stated("vision_config"):
        return ()
    vision = fields.within("vision_config")
    blocks, patch = _blocks(vision), vision.whole("patch_size")
    ratio = round(1 / vision.share("pixel_shuffle_ratio", 0.5))
    patches = (vision.whole("image_size") // patch) ** 2 + 1
    embed = (COLOURS * patch**2 + patches + 1) * blocks.hidden + 2 * blocks.norm
    inner, out = vision.whole("projector_input_dim"), vision.whole("projector_output_dim")
    shuffled = blocks.hidden * ratio**2 * inner + out**2
    projector = vision.whole("vision_output_dim") * frame.hidden_size
    tokens = LLAMA4_TILES * max(1, (patches - 1) // ratio**2)
    image = Image(patch=patch, per_token=ratio**2, tokens=tokens, width=frame.hidden_size)
    heads = vision.whole("num_attention_heads")
    return _tower(blocks, heads, image, embed + shuffled + projector)


def kimi(fields: Fields, frame: Frame) -> tuple[Tower, ...]:
    """Kimi K2.5: MoonViT with learned positions, patches merged before two projections."""
    vision = fields.within("vision_config")
    blocks = Blocks(
        layers=vision.whole("vt_num_hidden_layers"),
        hidden=vision.whole("vt_hidden_size"),
        width=vision.whole("vt_intermediate_size"),
    )
    patch, merge = vision.whole("patch_size"), 4
    positions = vision.whole("init_pos_emb_height") * vision.whole("init_pos_emb_width")
    embed = (COLOURS * patch**2 + 1 + positions) * blocks.hidden + blocks.norm
    merged = blocks.hidden * merge
    projector = merged**2 + merged + (merged + 1) * frame.hidden_size + blocks.norm
    heads, tokens = vision.whole("vt_num_attention_heads"), KIMI_PATCHES // merge
    image = Image(patch=patch, per_token=merge, tokens=tokens, width=frame.hidden_size)
    return _tower(blocks, heads, image, embed + projector)


def gemma4(fields: Fields, frame: Frame) -> tuple[Tower, ...]:
    """Gemma 4: four norms a layer, norms of queries and keys, positions in two axes. What hears
    (E2B, E4B) is not counted."""
    fields.must_be("audio_config", value=None)
    vision = fields.within("vision_config")
    blocks = _blocks(vision, gated=True, attention_bias=False, mlp_bias=False, norm_bias=False)
    patch, more = vision.whole("patch_size"), 2 * blocks.hidden + 2 * vision.whole("head_dim")
    positions = 2 * vision.whole("position_embedding_size") * blocks.hidden
    embed = COLOURS * patch**2 * blocks.hidden + positions
    projector = blocks.hidden * frame.hidden_size
    heads, pooled = vision.whole("num_attention_heads"), vision.whole("pooling_kernel_size", 3)
    rest = blocks.layers * more + embed + projector
    tokens = vision.whole("default_output_length", 280)
    image = Image(patch=patch, per_token=pooled**2, tokens=tokens, width=frame.hidden_size)
    return _tower(blocks, heads, image, rest)


def mllama(fields: Fields, frame: Frame) -> tuple[Tower, ...]:
    """Llama 3.2 Vision: local layers, then gated global ones; positions of tiles."""
    vision = fields.within("vision_config")
    hidden, width = vision.whole("hidden_size"), vision.whole("intermediate_size")
    local, above = vision.whole("num_hidden_layers"), vision.whole("num_global_layers")
    blocks = Blocks(layers=local + above, hidden=hidden, width=width, attention_bias=False)
    patch, tiles = vision.whole("patch_size"), vision.whole("max_num_tiles")
    patches = (vision.whole("image_size") // patch) ** 2 + 1
    ratios = len(vision.entries("supported_aspect_ratios", list, "a list of pairs")) + 1
    positions = patches * hidden + ratios * tiles * patches * hidden + 1
    ends = 2 * (ratios * tiles * hidden + 1) + 2 * blocks.norm + hidden
    embed = COLOURS * patch**2 * hidden + positions + ends + 2 * above
    projector = (vision.whole("vision_output_dim") + 1) * frame.hidden_size
    image = Image(patch=patch, per_token=1, tokens=tiles * patches, width=frame.hidden_size)
    return _tower(blocks, vision.whole("attention_heads"), image, embed + projector)
