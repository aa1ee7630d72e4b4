"""What images cost before a GPU sees them: their bytes, and decoding them on the host's cores."""

from __future__ import annotations

# Pixels of a mean image of ImageNet: 788.97 GB of 1,281,167 images, uncompressed at their own
# sizes, of three bytes a pixel (docs.ffcv.io/benchmarks.html, read 2026-11-23).
IMAGENET_PIXELS = 788.97e9 / 1281167 / 3
# Images of ImageNet's validation set that Pillow decodes in a second on one core of an AMD EPYC
# 9B14, the slower of the x86 hosts that were measured (577 on a Xeon 8581C).
DECODED = 537.0
DECODE_RATE = DECODED * IMAGENET_PIXELS
DECODE_SOURCE = (
    "Pillow on one core of an EPYC 9B14, 537 images/s of ImageNet (arXiv:2605.08731, 2026-05-20),"
    " of 205,000 pixels each (docs.ffcv.io)"
)
# The slowest and the fastest of five hosts, a Neoverse N1 and an EPYC 9B45, as parts of it.
DECODE_FACTORS = (360 / DECODED, 726 / DECODED)
# Bytes of a sample of MLPerf Storage's ResNet-50, whose data are ImageNet's.
FILE_BYTES_PER_PIXEL = 114660.07 / IMAGENET_PIXELS
FILE_SOURCE = (
    "114,660 bytes a JPEG of ImageNet (mlcommons/storage, 2025-06-13) over its 205,000 pixels"
)
