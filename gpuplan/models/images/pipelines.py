"""Modules of diffusion pipelines by their config.json: `_class_name` (diffusers), or an encoder's
`architectures` (transformers)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpuplan.errors import Rejected
from gpuplan.models import messages
from gpuplan.models.fields import Fields
from gpuplan.models.images import transformers, unet
from gpuplan.source import Origin

MODULES: dict[str, Callable[[Fields], int]] = {
    "AutoencoderKL": unet.autoencoder,
    "FluxTransformer2DModel": transformers.flux,
    "HunyuanVideoTransformer3DModel": transformers.hunyuan_video,
    "PixArtTransformer2DModel": transformers.pixart,
    "QwenImageTransformer2DModel": transformers.qwen_image,
    "SD3Transformer2DModel": transformers.stable_diffusion3,
    "UNet2DConditionModel": unet.unet,
    "WanTransformer3DModel": transformers.wan,
}


def module_parameters(config: Mapping[str, Any], origin: Origin) -> int:
    """Parameters of a diffusers module. Raises `Rejected` for a class that is not known and for
    missing or impossible dimensions."""
    name = config.get("_class_name")
    if not isinstance(name, str) or name not in MODULES:
        where = origin.child("_class_name")
        raise Rejected([messages.unknown_architecture(str(name), MODULES, where)])
    fields = Fields(config, name, origin)
    parameters = MODULES[name](fields)
    if fields.problems:
        raise Rejected(fields.problems)
    return parameters


def token_weights(config: Mapping[str, Any], origin: Origin) -> tuple[int, int, float]:
    """Width, layers and weights of the tokens of a transformer whose parameters were counted."""
    name = config["_class_name"]
    return transformers.token_weights(name, Fields(config, name, origin))
