"""What sets the speed of a vision network apart among measured points."""

from __future__ import annotations

import math

from gpuplan.models.images.networks import Profile, VisionNetwork
from gpuplan.sizing.calibration.anchors import Features

QUANTITY = "vision_inference"
# Structures whose sizes differ more than their dimensions tell.
UNEVEN = ("resnet", "depthwise", "swin-v2")


def features(network: VisionNetwork, profile: Profile, run: str) -> Features:
    """`run`: the GPU, how the network runs and the release of PyTorch."""
    size = math.log2(network.parameters)
    own = f"{network.identifier} {profile.pixels}"
    return {
        "model": network.identifier,
        "gpu": run.split(maxsplit=1)[0],
        "structure": network.structure,
        "variant": network.variant,
        "network": f"{network.structure} {network.width} {network.patch} {round(4 * size)}",
        "patch": str(network.patch),
        "uneven": own if network.structure in UNEVEN else "",
        "run": run,
        "width": math.log2(network.width) if network.width else size / 2 - 4,
        "pixels": math.log2(profile.pixels),
        "macs": math.log2(profile.macs),
        "intensity": math.log2(profile.macs / profile.activations),
    }
