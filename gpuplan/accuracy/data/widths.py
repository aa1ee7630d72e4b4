"""How wide intervals of served times are, written by bench/widths.py.

Ends of 90 % intervals in standard deviations, for each `spread` of the features: where a point of
the same site is near, and where none is. Of whole sources that were left out.
"""

from __future__ import annotations

Ends = tuple[float, float]
WIDTHS: dict[str, dict[str, tuple[Ends, Ends]]] = {
    "time_per_output_token": {
        "usual settings, dense": ((-1.744, 1.774), (-0.962, 1.451)),
        "usual settings, mixture": ((-1.67, 2.444), (-1.258, 1.657)),
        "usual settings, amd": ((-1.189, 1.356), (-0.8974, 1.091)),
    },
    "time_to_first_token": {
        "usual settings, dense": ((-1.352, 1.398), (-1.097, 1.086)),
        "usual settings, mixture": ((-1.135, 1.335), (-0.921, 1.133)),
        "usual settings, amd": ((-1.32, 1.559), (-1.123, 1.373)),
    },
}
