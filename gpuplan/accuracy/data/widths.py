"""How wide intervals of served times are, written by bench/widths.py.

Ends of 90 % intervals in standard deviations, of 89 % where no point of the same site is near, for
each `spread` of the features: where one is near, and where none is. Of whole sources that were left
out.
"""

from __future__ import annotations

from gpuplan.accuracy.reckon import Ends

WIDTHS: dict[str, dict[str, tuple[Ends, Ends]]] = {
    "time_per_output_token": {
        "usual settings, dense": ((-1.451, 1.451), (-0.8315, 0.8315)),
        "usual settings, mixture": ((-1.152, 1.152), (-0.9964, 0.9964)),
        "usual settings, amd": ((-1.162, 1.162), (-0.9907, 0.9907)),
    },
    "time_to_first_token": {
        "usual settings, dense": ((-1.347, 1.347), (-1.17, 1.17)),
        "usual settings, mixture": ((-1.129, 1.129), (-1.009, 1.009)),
        "usual settings, amd": ((-1.417, 1.417), (-1.285, 1.285)),
    },
}
