"""How wide intervals of served times are, written by bench/widths.py.

Ends of 90 % intervals in standard deviations, for each `spread` of the features: where a point of
the same site is near, and where none is. Of whole sources that were left out.
"""

from __future__ import annotations

Ends = tuple[float, float]
WIDTHS: dict[str, dict[str, tuple[Ends, Ends]]] = {
    "time_per_output_token": {
        "usual settings, dense": ((-1.451, 1.451), (-0.8315, 0.8315)),
        "usual settings, mixture": ((-1.152, 1.152), (-0.9964, 0.9964)),
        "usual settings, amd": ((-1.162, 1.162), (-0.9907, 0.9907)),
    },
    "time_to_first_token": {
        "usual settings, dense": ((-1.329, 1.329), (-1.076, 1.076)),
        "usual settings, mixture": ((-1.088, 1.088), (-0.8934, 0.8934)),
        "usual settings, amd": ((-1.369, 1.369), (-1.199, 1.199)),
    },
}
