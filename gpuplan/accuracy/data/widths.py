"""How wide intervals of served times are, written by bench/accuracy/widths.py.

Ends of 90 % intervals in standard deviations, of 89 % where no point of the same site is near, for
each `spread` of the features: where one is near, where none is, and where nobody measured the GPU.
Of whole sources that were left out, and of whole generations of GPUs.
"""

from __future__ import annotations

from gpuplan.accuracy.reckon import Ends

WIDTHS: dict[str, dict[str, tuple[Ends, Ends, Ends]]] = {
    "time_per_output_token": {
        "usual settings, dense": ((-0.788, 0.788), (-0.5642, 0.5642), (-0.5633, 0.5633)),
        "usual settings, mixture": ((-1.283, 1.283), (-0.6764, 0.6764), (-0.861, 0.861)),
        "usual settings, amd": ((-1.002, 1.002), (-0.7497, 0.7497), (-1.074, 1.074)),
    },
    "time_to_first_token": {
        "usual settings, dense": ((-1.014, 1.014), (-0.7167, 0.7167), (-0.789, 0.789)),
        "usual settings, mixture": ((-1.009, 1.009), (-0.9268, 0.9268), (-1.043, 1.043)),
        "usual settings, amd": ((-1.447, 1.447), (-1.323, 1.323), (-1.656, 1.656)),
    },
}
