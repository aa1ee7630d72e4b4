"""How wide intervals of served times are, written by bench/widths.py.

Ends of 90 % intervals in standard deviations, of 89 % where no point of the same site is near, for
each `spread` of the features: where one is near, and where none is. Of whole sources that were left
out.
"""

from __future__ import annotations

from gpuplan.accuracy.reckon import Ends

WIDTHS: dict[str, dict[str, tuple[Ends, Ends]]] = {
    "time_per_output_token": {
        "usual settings, dense": ((-0.9836, 0.9836), (-0.7606, 0.7606)),
        "usual settings, mixture": ((-1.339, 1.339), (-1.131, 1.131)),
        "usual settings, amd": ((-1.037, 1.037), (-0.9809, 0.9809)),
    },
    "time_to_first_token": {
        "usual settings, dense": ((-1.027, 1.027), (-0.7562, 0.7562)),
        "usual settings, mixture": ((-1.114, 1.114), (-0.9135, 0.9135)),
        "usual settings, amd": ((-1.385, 1.385), (-1.243, 1.243)),
    },
}
