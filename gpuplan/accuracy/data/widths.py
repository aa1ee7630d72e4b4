"""How wide intervals of served times are, written by bench/accuracy/widths.py.

Ends of 90 % intervals in standard deviations, of 89 % where no point of the same site is near, for
each `spread` of the features: where one is near, where none is, and where nobody measured the GPU.
Of whole sources that were left out, and of whole generations of GPUs.
"""

from __future__ import annotations

from gpuplan.accuracy.reckon import Ends

WIDTHS: dict[str, dict[str, tuple[Ends, Ends, Ends]]] = {
    "time_per_output_token": {
        "usual settings, dense": ((-0.9588, 0.9588), (-0.7453, 0.7453), (-0.775, 0.775)),
        "usual settings, mixture": ((-1.362, 1.362), (-1.088, 1.088), (-1.255, 1.255)),
        "usual settings, amd": ((-1.157, 1.157), (-0.9991, 0.9991), (-1.373, 1.373)),
    },
    "time_to_first_token": {
        "usual settings, dense": ((-1.01, 1.01), (-0.7301, 0.7301), (-0.8319, 0.8319)),
        "usual settings, mixture": ((-1.095, 1.095), (-0.9713, 0.9713), (-1.071, 1.071)),
        "usual settings, amd": ((-1.422, 1.422), (-1.357, 1.357), (-1.672, 1.672)),
    },
}
