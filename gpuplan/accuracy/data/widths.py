"""How wide intervals of served times are, written by bench/widths.py.

Ends of 90 % intervals in standard deviations, for each `spread` of the features: where a point of
the same site is near, and where none is. Of whole sources that were left out.
"""

from __future__ import annotations

Ends = tuple[float, float]
WIDTHS: dict[str, dict[str, tuple[Ends, Ends]]] = {
    "time_per_output_token": {
        "usual settings, dense": ((-1.703, 1.703), (-1.17, 1.17)),
        "usual settings, mixture": ((-1.782, 1.782), (-1.331, 1.331)),
        "usual settings, amd": ((-1.231, 1.231), (-0.9577, 0.9577)),
    },
    "time_to_first_token": {
        "usual settings, dense": ((-1.354, 1.354), (-1.096, 1.096)),
        "usual settings, mixture": ((-1.209, 1.209), (-1.04, 1.04)),
        "usual settings, amd": ((-1.437, 1.437), (-1.285, 1.285)),
    },
}
