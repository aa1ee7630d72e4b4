"""Models that read images: by their names on the Hub, by `timm/NAME`, or from a `config.json` of a
plain vision transformer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from gpuplan.errors import Rejected
from gpuplan.models.fields import Fields
from gpuplan.models.images.checkpoints import BOTH_CITED, CHECKPOINTS, CITED
from gpuplan.models.images.networks import Profile, VisionNetwork, find_network
from gpuplan.models.messages import impossible_value
from gpuplan.models.model import Vision
from gpuplan.models.precision import checkpoint_precision
from gpuplan.source import Origin

TIMM = "timm/"
COLOURS = 3
# Words in the names of networks that find objects.
DETECTORS = re.compile(r"yolo|retinanet|detr|r-?cnn|ObjectDetection", re.IGNORECASE)
# Architectures of plain vision transformers: what the points call their blocks, whether a token
# stands for the whole image, and whether a tower for texts stands beside the one for images.
PLAIN = {
    "CLIPModel": ("clip", True, True),
    "CLIPVisionModel": ("clip", True, False),
    "CLIPVisionModelWithProjection": ("clip", True, False),
    "DeiTForImageClassification": ("", True, False),
    "Dinov2ForImageClassification": ("dinov2", True, False),
    "Dinov2Model": ("dinov2", True, False),
    "SiglipModel": ("siglip", False, True),
    "SiglipVisionModel": ("siglip", False, False),
    "ViTForImageClassification": ("", True, False),
    "ViTModel": ("", True, False),
}
# What transformers takes where a tower's part of the configuration leaves a number out.
DEFAULTS = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "image_size": 224,
    "patch_size": 16,
}
CLIP_PATCH = 32


def vision_names() -> tuple[str, ...]:
    """The names that have facts of their own, sorted; those of timm are beside them."""
    return tuple(sorted(CHECKPOINTS))


@cache
def named_vision(name: str) -> Vision | None:
    """A model by its name, in any case, with or without the organisation, or `timm/NAME`."""
    wanted = name.casefold()
    for identifier in CHECKPOINTS:
        folded = identifier.casefold()
        if wanted in {folded, folded.partition("/")[2]}:
            return _known(identifier)
    return _timm(name) if wanted.startswith(TIMM) else None


def _known(identifier: str) -> Vision:
    architecture, name, pixels, millions = CHECKPOINTS[identifier]
    network = find_network(name)
    assert network is not None
    return Vision(
        identifier=identifier,
        revision=None,
        architecture=architecture,
        network=network,
        pixels=pixels,
        parameters=network.parameters if millions is None else round(millions * 1e6),
        source=CITED if millions is None else BOTH_CITED,
    )


def _timm(name: str) -> Vision | None:
    """At the size that its name ends in, else at 224 pixels or the smallest that was profiled."""
    short = name[len(TIMM) :]
    network = find_network(short)
    if network is None:
        return None
    sizes = [profile.pixels for profile in network.profiles]
    end = re.search(r"_(\d{3})(\.|$)", short)
    stated = int(end[1]) if end else 224
    return _of_timm(name, network, stated if stated in sizes else min(sizes))


def _of_timm(name: str, network: VisionNetwork, pixels: int) -> Vision:
    return Vision(
        identifier=name,
        revision=None,
        architecture="timm",
        network=network,
        pixels=pixels,
        parameters=network.parameters,
        source=CITED,
    )


def is_detector(name: object) -> bool:
    """Whether a name or an architecture is that of a network that finds objects."""
    return isinstance(name, str) and DETECTORS.search(name) is not None


def is_vision(config: Mapping[str, Any]) -> bool:
    named = config.get("architectures")
    plain = isinstance(named, list) and len(named) == 1 and str(named[0]) in PLAIN
    return plain or _timm_name(config) is not None


def _timm_name(config: Mapping[str, Any]) -> str | None:
    """Of a config.json as timm writes it."""
    name = config.get("architecture")
    known = "pretrained_cfg" in config and isinstance(name, str) and find_network(name)
    return str(name) if known else None


def vision(
    config: Mapping[str, Any], identifier: str, revision: str | None, source: str, origin: Origin
) -> Vision:
    """Raises `Rejected` for missing or impossible dimensions, all at once."""
    name = _timm_name(config)
    if name is not None:
        network = find_network(name)
        assert network is not None
        size = Fields(config["pretrained_cfg"], "timm", origin.child("pretrained_cfg"))
        shape = size.entries("input_size", int, "three whole numbers", 3)
        if size.problems:
            raise Rejected(size.problems)
        if not shape or shape[1] < 1:
            at = origin.child("pretrained_cfg", "input_size")
            wanted = "three whole numbers: colours, height, width"
            raise Rejected([impossible_value("input_size", size.value("input_size"), wanted, at)])
        return _of_timm(identifier, network, shape[1])
    return _transformer(config, identifier, revision, source, origin)


def _transformer(
    config: Mapping[str, Any], identifier: str, revision: str | None, source: str, origin: Origin
) -> Vision:
    (architecture,) = config["architectures"]
    mark, class_token, towers = PLAIN[architecture]
    whole = Fields(config, architecture, origin)
    fields = whole.within("vision_config") if towers else whole
    numbers = {n: fields.whole(n, usual) for n, usual in _usual(mark).items()}
    quick = mark == "clip" and fields.value("hidden_act") in (None, "quick_gelu")
    fields.at_most("patch_size", numbers["patch_size"], "image_size", numbers["image_size"])
    precision = checkpoint_precision(whole, fields)
    texts = _tower(whole.within("text_config"), mark) if towers else 0
    if whole.problems:
        raise Rejected(whole.problems)
    network = _network(identifier, numbers, "clip_quickgelu" if quick else mark, class_token)
    return Vision(
        identifier=identifier,
        revision=revision,
        architecture=architecture,
        network=network,
        pixels=numbers["image_size"],
        parameters=network.parameters + texts,
        source=source,
        checkpoint_precision=precision,
    )


def _usual(mark: str) -> dict[str, int]:
    usual = dict(DEFAULTS)
    if mark == "clip":
        usual["patch_size"] = CLIP_PATCH
    if mark == "dinov2":  # says its MLP by a ratio, of four as all of its sizes but the giant
        usual |= {"image_size": 518, "patch_size": 14}
    return usual


def _network(
    identifier: str, numbers: Mapping[str, int], variant: str, class_token: bool
) -> VisionNetwork:
    width, layers, patch = (numbers[n] for n in ("hidden_size", "num_hidden_layers", "patch_size"))
    heads, pixels = numbers["num_attention_heads"], numbers["image_size"]
    inner = 4 * width if variant == "dinov2" else numbers["intermediate_size"]
    patches = (pixels // patch) ** 2
    tokens = patches + class_token
    weights = layers * (4 * width**2 + 2 * width * inner)
    stem, attention = COLOURS * patch**2 * width, 2 * layers * width * patches**2
    scores = layers * heads * patches**2
    profile = Profile(
        pixels=pixels,
        macs=float(stem * patches + tokens * weights + attention),
        activations=float(patches * width + tokens * layers * (6 * width + inner) + scores),
        attention_macs=float(attention),
        attention_activations=float(scores),
        stem_macs=float(COLOURS * pixels**2 * width),
    )
    biases = layers * (9 * width + inner) + (tokens + 3) * width
    return VisionNetwork(
        identifier=identifier,
        structure="vit",
        variant=variant,
        original=True,
        parameters=weights + stem + biases,
        width=width,
        patch=patch,
        layer_scale=variant == "dinov2",
        quick_gelu=variant == "clip_quickgelu",
        parallel_blocks=False,
        class_token=class_token,
        profiles=(profile,),
    )


def _tower(fields: Fields, mark: str) -> int:
    """Parameters of the tower for texts."""
    siglip = mark == "siglip"
    width = fields.whole("hidden_size", 768 if siglip else 512)
    layers = fields.whole("num_hidden_layers", 12)
    inner = fields.whole("intermediate_size", 3072 if siglip else 2048)
    words = fields.whole("vocab_size", 32000 if siglip else 49408)
    places = fields.whole("max_position_embeddings", 64 if siglip else 77)
    blocks = layers * (4 * width**2 + 2 * width * inner + 9 * width + inner)
    return blocks + (words + places + 2 + width) * width
