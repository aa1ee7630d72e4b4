"""The number formats behind what measurements call a precision."""

from __future__ import annotations

from gpuplan.accuracy.data.models import ATTENTION_KEPT
from gpuplan.catalog.model import Gpu
from gpuplan.models.model import Transformer
from gpuplan.sizing.hardware.efficiency import peak
from gpuplan.sizing.physics.serving.scopes import formats
from gpuplan.sizing.physics.serving.service import Formats

# What a name contains, in this order, and the weights' format.
_NAMES = (
    ("mxfp4", "mxfp4"),
    ("fp4", "nvfp4"),
    ("nf4", "int4"),
    ("fp8", "fp8"),
    ("int8", "int8"),
    ("int4", "int4"),
    ("awq", "int4"),
    ("bf16", "bf16"),
    ("fp16", "bf16"),
    ("fp32", "bf16"),
)


def weights(name: str) -> str:
    """The format that a precision's name says. Raises `ValueError` for other names."""
    for part, weight in _NAMES:
        if part in name:
            return weight
    raise ValueError(f"precision '{name}' is not one that is planned")


def computed(gpu: Gpu, name: str) -> str:
    """`name`, or bf16 where the GPU cannot compute in it or no source says how fast."""
    return "bf16" if peak(gpu, name) is None else name


def quantized(model: Transformer, gpu: Gpu, name: str) -> Formats:
    """NVIDIA's own checkpoints: fp8 scaled by tensor, but for latent attention; cache in fp8. Of
    4 bits throughout, where they do not leave attention as it was."""
    low = computed(gpu, name)
    usual = formats(model, low, "auto" if low in ("bf16", "int4", "int8") else "fp8")
    if low == "fp8" and model.latent is None:
        return Formats(matmul="fp8", experts="fp8", kv="fp8")
    kept = model.latent or model.kept_parameters or model.architecture.startswith(ATTENTION_KEPT)
    return usual if low != "nvfp4" or kept else Formats(matmul="nvfp4", experts="nvfp4", kv="fp8")
