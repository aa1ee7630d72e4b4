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
        "usual settings, dense": ((-1.0, 1.0), (-0.7088, 0.7088), (-0.7717, 0.7717)),
        "usual settings, mixture": ((-1.042, 1.042), (-0.9758, 0.9758), (-1.107, 1.107)),
        "usual settings, amd": ((-1.479, 1.479), (-1.491, 1.491), (-1.66, 1.66)),
    },
}
