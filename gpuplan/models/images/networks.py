"""Image classifiers and backbones by their names in timm: multiply-accumulates and activations.

`vision_networks.tsv` is made by `bench/published/networks.py` from the profiles that timm
publishes. Training tags of a name (`.augreg_in21k`, `_in21ft1k`) change no dimension.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from gpuplan.frozen import record

TABLE = Path(__file__).with_name("vision_networks.tsv")
SOURCE = "timm profiles, huggingface/pytorch-image-models (2026-08-08)"
TAGS = re.compile(r"\.[a-z].*$|_(in21ft1k|22kft1k|in22ft1k|in21k|in22k|1k|sam)$")
# The name's start: the structure that decides what a multiply-accumulate and an activation cost.
STRUCTURES = (
    ("swinv2", "swin-v2"),
    ("swin", "swin"),
    ("convnextv2", "convnext-v2"),
    ("convnext", "convnext"),
    ("efficientnet", "depthwise"),
    ("tf_efficientnet", "depthwise"),
    ("mobilenet", "depthwise"),
    ("mnasnet", "depthwise"),
    ("resnetv2", "other"),
    ("resnet", "resnet"),
    ("wide_resnet", "resnet"),
    ("seresnet", "resnet"),
)
# Of these starts, the names whose blocks are those of the original; others resemble them.
ORIGINAL = re.compile(
    r"resnet\d+[cdst]?$|efficientnet_b\d$|convnext(v2)?_[a-z]+$|"
    r"swin_[a-z]+_patch4_window|swinv2_[a-z]+_window|(?!.*relpos)(vit_|deit|beit|eva|flexivit)"
)
VIT = ("vit_", "deit", "beit", "eva", "flexivit")
ROTARY = ("eva02", "rope", "dinov3", "_pe_")
# Parts of a transformer's name that change its blocks.
MARKS = (
    "clip_quickgelu",
    "clip",
    "siglip_gap",
    "siglip",
    "gap",
    "xp",
    "rpn",
    "dinov2",
    "dinov3",
    "18x2",
    "36x1",
    "rope_mixed",
    "rope",
    "relpos",
    "miil",
    "distilled",
)
SCALED = ("deit3", "beit", "dinov2", "18x2", "36x1", "rpn", "_plus_", "tipsv2")
NO_CLASS_TOKEN = ("siglip", "gap", "rpn")
HYBRID = re.compile(r"vit_\w+_(r\d+_|r_s|resnet)|vit_\w*mci")


@record
class Profile:
    """One image of `pixels`²: multiply-accumulates and activations (outputs of convolutions and
    matrix products), all of them and attention's scores; `stem_macs` are of a patch embedding."""

    pixels: int
    macs: float
    activations: float
    attention_macs: float
    attention_activations: float
    stem_macs: float


@record
class VisionNetwork:
    """`structure` is the kind of its blocks, `variant` what sets it apart among them, `original`
    whether it is more than akin to them; `width` of a plain vision transformer's tokens (else 0),
    and its `patch` in pixels."""

    identifier: str
    structure: str
    variant: str
    original: bool
    parameters: int
    width: int
    patch: int
    layer_scale: bool
    quick_gelu: bool
    parallel_blocks: bool
    class_token: bool
    profiles: tuple[Profile, ...]

    @property
    def layers(self) -> int:
        """Blocks of a plain vision transformer, from what its attention multiplies; else 0."""
        if not (self.width and self.patch):
            return 0
        one = self.profiles[0]
        patches = (one.pixels // self.patch) ** 2
        return round(one.attention_macs / (2 * patches**2 * self.width))

    def at(self, pixels: int) -> Profile:
        """At another size, multiply-accumulates and activations grow with the pixels, attention's
        with their square."""
        nearest = min(self.profiles, key=lambda p: (abs(p.pixels - pixels), p.pixels))
        if nearest.pixels == pixels:
            return nearest
        area = (pixels / nearest.pixels) ** 2
        attention, scores = nearest.attention_macs, nearest.attention_activations
        return Profile(
            pixels=pixels,
            macs=(nearest.macs - attention) * area + attention * area**2,
            activations=(nearest.activations - scores) * area + scores * area**2,
            attention_macs=attention * area**2,
            attention_activations=scores * area**2,
            stem_macs=nearest.stem_macs * area,
        )


@cache
def find_network(name: str) -> VisionNetwork | None:
    """The network of a timm name, with or without training tags; None if it is not known."""
    known = _table()
    while name not in known:
        shorter = TAGS.sub("", name)
        if shorter == name:
            return None
        name = shorter
    rows = known[name]
    structure, (width, patch) = _structure(name), (int(rows[0][6]), int(rows[0][7]))
    plain = structure in ("vit", "vit-rotary")
    return VisionNetwork(
        identifier=name,
        structure=structure,
        variant=_variant(name, plain=plain),
        original=structure != "other" and ORIGINAL.match(name) is not None,
        parameters=round(rows[0][1] * 1e6),
        width=width,
        patch=patch,
        layer_scale=structure == "vit" and any(m in name for m in SCALED),
        quick_gelu=plain and "quickgelu" in name,
        parallel_blocks=plain and "_xp_" in name,
        class_token=plain and not any(m in name for m in NO_CLASS_TOKEN),
        profiles=tuple(_profile(row) for row in rows),
    )


def _profile(row: tuple[float, ...]) -> Profile:
    pixels, _, gmacs, activations, attention, scores, width, _ = row
    return Profile(
        pixels=int(pixels),
        macs=gmacs * 1e9,
        activations=activations * 1e6,
        attention_macs=attention * 1e9,
        attention_activations=scores * 1e6,
        stem_macs=3 * pixels**2 * width,
    )


def _structure(name: str) -> str:
    if name.startswith(VIT) and not HYBRID.match(name):
        return "vit-rotary" if any(m in name for m in ROTARY) else "vit"
    return next((s for start, s in STRUCTURES if name.startswith(start)), "other")


def _variant(name: str, *, plain: bool) -> str:
    if not plain:
        return "basic blocks" if re.match(r"resnet(10|14|18|34)", name) else ""
    start = re.match(r"deit3|beit|eva02|eva", name)
    mark = next((m for m in MARKS if m in name), "")
    return f"{start[0] if start else ''} {mark}".strip()


@cache
def _table() -> dict[str, list[tuple[float, ...]]]:
    known: dict[str, list[tuple[float, ...]]] = {}
    for line in TABLE.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            name, *numbers = line.split("\t")
            known.setdefault(name, []).append(tuple(map(float, numbers)))
    return known
