"""How wide intervals of served times are, written by bench/widths.py.

Ends of 90 % intervals in standard deviations, of 89 % where no point of the same site is near, for
each `spread` of the features: where one is near, and where none is. Of whole sources that were left
out.
"""

from __future__ import annotations

from gpuplan.accuracy.reckon import Ends

WIDTHS: dict[str, dict[str, tuple[Ends, Ends]]] = {
    "time_per_output_token": {
        "usual settings, dense": ((-1.017, 1.017), (-0.7439, 0.7439)),
        "usual settings, mixture": ((-1.342, 1.342), (-1.142, 1.142)),
        "usual settings, amd": ((-1.16, 1.16), (-1.091, 1.091)),
    },
    "time_to_first_token": {
        "usual settings, dense": ((-1.027, 1.027), (-0.7486, 0.7486)),
        "usual settings, mixture": ((-1.104, 1.104), (-0.8909, 0.8909)),
        "usual settings, amd": ((-1.336, 1.336), (-1.239, 1.239)),
    },
}
