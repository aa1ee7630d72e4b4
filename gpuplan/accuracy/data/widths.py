"""How wide intervals of served times are, written by bench/accuracy/widths.py.

Ends of 90 % intervals in standard deviations, of 89 % where no point of the same site is near, for
each `spread` of the features: where one is near, where none is, and where nobody measured the GPU.
Of whole sources that were left out, and of whole generations of GPUs.
"""

from __future__ import annotations

from gpuplan.accuracy.reckon import Ends

WIDTHS: dict[str, dict[str, tuple[Ends, Ends, Ends]]] = {
    "time_per_output_token": {
        "usual settings, dense": ((-0.9601, 0.9601), (-0.7447, 0.7447), (-0.7633, 0.7633)),
        "usual settings, mixture": ((-1.357, 1.357), (-1.09, 1.09), (-1.199, 1.199)),
        "usual settings, amd": ((-1.156, 1.156), (-0.9983, 0.9983), (-1.373, 1.373)),
    },
    "time_to_first_token": {
        "usual settings, dense": ((-1.02, 1.02), (-0.751, 0.751), (-0.8279, 0.8279)),
        "usual settings, mixture": ((-1.095, 1.095), (-0.9358, 0.9358), (-1.057, 1.057)),
        "usual settings, amd": ((-1.412, 1.412), (-1.363, 1.363), (-1.667, 1.667)),
    },
}
