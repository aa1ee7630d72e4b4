"""Steps with few images in them: launches of kernels, which eager PyTorch issues one by one."""

from __future__ import annotations

# Seconds of a layer of a plain vision transformer, however few images: 4.95 ms of 12 layers, 9.88
# ms of 24 with one image on an A100.
LAYER_LAUNCH = 4.95e-3 / 12
LAUNCH_SOURCE = (
    "one image in eager PyTorch 1.12 on an A100, facebookincubator/AITemplate examples/04_vit"
)
# Of a whole network of other structures: what was measured of a ResNet-50 with 1 to 16 images.
NETWORK_LAUNCH = {"resnet50": 7.68e-3}
NETWORK_SOURCE = (
    "one image in eager PyTorch 1.12 on an A100, facebookincubator/AITemplate examples/01_resnet-50"
)
# How a plan takes a network to run: as PyTorch runs it, in the last release that was measured.
MODE = "eager 2.9"
LARGEST_BATCH = 256  # timm measures with as many, fewer where they do not fit
# The GPUs on which timm's benchmark trains (benchmark-train-amp-nhwc-pt112-cu113-rtx3090.csv,
# 2026-08-08).
TRAINED = ("rtx-3090-24gb",)
