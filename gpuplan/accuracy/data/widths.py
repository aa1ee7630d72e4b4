"""How wide intervals of served times are, written by bench/accuracy/widths.py.

Ends of 90 % intervals in standard deviations, of 89 % where no point of the same site is near, for
each `spread` of the features: where one is near, where none is, and where nobody measured the GPU.
Of whole sources that were left out, and of whole generations of GPUs.
"""

from __future__ import annotations

from gpuplan.accuracy.reckon import Ends

WIDTHS: dict[str, dict[str, tuple[Ends, Ends, Ends]]] = {
    "time_per_output_token": {
        "usual settings, dense": ((-0.917, 0.917), (-0.6489, 0.6489), (-0.6788, 0.6788)),
        "usual settings, mixture": ((-1.331, 1.331), (-1.065, 1.065), (-1.086, 1.086)),
        "usual settings, amd": ((-1.063, 1.063), (-0.792, 0.792), (-1.137, 1.137)),
    },
    "time_to_first_token": {
        "usual settings, dense": ((-1.022, 1.022), (-0.7533, 0.7533), (-0.8263, 0.8263)),
        "usual settings, mixture": ((-1.06, 1.06), (-0.9758, 0.9758), (-1.107, 1.107)),
        "usual settings, amd": ((-1.479, 1.479), (-1.491, 1.491), (-1.66, 1.66)),
    },
}
