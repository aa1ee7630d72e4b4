"""How wide intervals of served times are, written by bench/widths.py.

Ends of 90 % intervals in standard deviations, of 89 % where no point of the same site is near, for
each `spread` of the features: where one is near, and where none is. Of whole sources that were left
out.
"""

from __future__ import annotations

from gpuplan.accuracy.reckon import Ends

WIDTHS: dict[str, dict[str, tuple[Ends, Ends]]] = {
    "time_per_output_token": {
        "usual settings, dense": ((-1.029, 1.029), (-0.7433, 0.7433)),
        "usual settings, mixture": ((-1.346, 1.346), (-1.134, 1.134)),
        "usual settings, amd": ((-1.172, 1.172), (-1.129, 1.129)),
    },
    "time_to_first_token": {
        "usual settings, dense": ((-1.601, 1.601), (-1.257, 1.257)),
        "usual settings, mixture": ((-1.372, 1.372), (-1.546, 1.546)),
        "usual settings, amd": ((-1.561, 1.561), (-1.418, 1.418)),
    },
}
