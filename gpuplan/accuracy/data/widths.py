"""How wide intervals of served times are, written by bench/accuracy/widths.py.

Ends of 90 % intervals in standard deviations, of 89 % where no point of the same site is near, for
each `spread` of the features: where one is near, where none is, and where nobody measured the GPU.
Of whole sources that were left out, and of whole generations of GPUs.
"""

from __future__ import annotations

from gpuplan.accuracy.reckon import Ends

WIDTHS: dict[str, dict[str, tuple[Ends, Ends, Ends]]] = {
    "time_per_output_token": {
        "usual settings, dense": ((-0.7863, 0.7863), (-0.5675, 0.5675), (-0.5833, 0.5833)),
        "usual settings, mixture": ((-1.263, 1.263), (-0.6834, 0.6834), (-0.8605, 0.8605)),
        "usual settings, amd": ((-0.999, 0.999), (-0.7465, 0.7465), (-1.068, 1.068)),
    },
    "time_to_first_token": {
        "usual settings, dense": ((-1.014, 1.014), (-0.7157, 0.7157), (-0.7919, 0.7919)),
        "usual settings, mixture": ((-1.01, 1.01), (-0.9258, 0.9258), (-1.042, 1.042)),
        "usual settings, amd": ((-1.45, 1.45), (-1.323, 1.323), (-1.655, 1.655)),
    },
}
