"""How wide intervals of served times are, written by bench/accuracy/widths.py.

Ends of 90 % intervals in standard deviations, of 89 % where no point of the same site is near, for
each `spread` of the features: where one is near, where none is, and where nobody measured the GPU.
Of whole sources that were left out, and of whole generations of GPUs.
"""

from __future__ import annotations

from gpuplan.accuracy.reckon import Ends

WIDTHS: dict[str, dict[str, tuple[Ends, Ends, Ends]]] = {
    "time_per_output_token": {
        "usual settings, dense": ((-0.8752, 0.8752), (-0.6201, 0.6201), (-0.6239, 0.6239)),
        "usual settings, mixture": ((-1.331, 1.331), (-1.065, 1.065), (-1.086, 1.086)),
        "usual settings, amd": ((-1.042, 1.042), (-0.7881, 0.7881), (-1.137, 1.137)),
    },
    "time_to_first_token": {
        "usual settings, dense": ((-1.011, 1.011), (-0.7096, 0.7096), (-0.7768, 0.7768)),
        "usual settings, mixture": ((-1.055, 1.055), (-0.9792, 0.9792), (-1.094, 1.094)),
        "usual settings, amd": ((-1.554, 1.554), (-1.573, 1.573), (-1.721, 1.721)),
    },
}
