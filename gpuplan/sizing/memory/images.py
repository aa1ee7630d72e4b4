"""Memory of a diffusion pipeline on one GPU: all its modules, and the decoder at its peak."""

from __future__ import annotations

from gpuplan.models.model import Diffusion
from gpuplan.sizing.data import images as measured
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.sheet import Scope, sheet
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.model.checkpoints import WEIGHT_BYTES

USABLE = constant(0.9, "1", "the allocator keeps the rest in fragments")
_MEMORY = """
    weights_bytes: B = ceil(denoiser_parameters * weight_bytes + other_parameters * bf16_bytes)
        # every module stays resident; text encoders and decoder in bf16
    activations_bytes: B = ceil({peak}
    overhead_bytes: B = context_bytes  # CUDA context and allocator
    used_bytes: B = weights_bytes + activations_bytes + overhead_bytes  # at the worst moment
    usable_bytes: B = floor(memory_bytes * usable_fraction)  # what tensors may fill
"""
OF_IMAGES = "batch * largest_pixels * pixel_bytes)  # the decoder's peak for the largest images"
OF_VIDEOS = "batch * video_memory)  # what was measured of the largest videos"
MEMORY = sheet(_MEMORY.format(peak=OF_IMAGES))
VIDEO_MEMORY = sheet(_MEMORY.format(peak=OF_VIDEOS))


def memory_scope(model: Diffusion, device: Device, precision: str) -> Scope:
    """Numbers of a pipeline's modules on a device, without what is made."""
    denoisers = sum(m.parameters for m in model.modules if m.kind in ("transformer", "unet"))
    return {
        "denoiser_parameters": Quantity(float(denoisers), "1", model.source),
        "other_parameters": Quantity(float(model.parameters - denoisers), "1", model.source),
        "weight_bytes": constant(WEIGHT_BYTES[precision], "B", f"a denoiser's {precision} weight"),
        "context_bytes": constant(measured.CONTEXT_BYTES, "B", "CUDA context and allocator"),
        "memory_bytes": device.memory_bytes,
        "usable_fraction": USABLE,
    }


def peak_scope(largest_pixels: Quantity, of_video: Quantity | None) -> Scope:
    """What the largest image takes above the weights, or a video as it was measured."""
    if of_video is not None:
        return {"largest_pixels": largest_pixels, "video_memory": of_video}
    of_pixel = constant(measured.PIXEL_BYTES, "B", "decoder and activations of a pixel")
    return {"largest_pixels": largest_pixels, "pixel_bytes": of_pixel}
