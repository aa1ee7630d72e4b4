"""How wide intervals of served times are, written by bench/widths.py.

Ends of 90 % intervals in standard deviations, for each `spread` of the features: where a point of
the same site is near, and where none is. Of whole sources that were left out.
"""

from __future__ import annotations

Ends = tuple[float, float]
WIDTHS: dict[str, dict[str, tuple[Ends, Ends]]] = {
    "time_per_output_token": {
        "usual settings, amd": ((-1.18, 1.383), (-1.027, 1.294)),
        "usual settings, dense": ((-1.583, 1.735), (-1.202, 1.672)),
        "usual settings, mixture": ((-1.659, 2.458), (-1.366, 1.806)),
    },
    "time_to_first_token": {
        "usual settings, amd": ((-1.374, 1.596), (-1.26, 1.465)),
        "usual settings, dense": ((-1.379, 1.428), (-1.185, 1.165)),
        "usual settings, mixture": ((-1.167, 1.362), (-0.9995, 1.256)),
    },
}
