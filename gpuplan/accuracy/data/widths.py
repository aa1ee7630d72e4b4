"""How wide intervals of served times are, written by bench/accuracy/widths.py.

Ends of 90 % intervals in standard deviations, of 89 % where no point of the same site is near, for
each `spread` of the features: where one is near, and where none is. Of whole sources that were left
out.
"""

from __future__ import annotations

from gpuplan.accuracy.reckon import Ends

WIDTHS: dict[str, dict[str, tuple[Ends, Ends, Ends]]] = {
    "time_per_output_token": {
        "usual settings, dense": ((-0.9801, 0.9801), (-0.7496, 0.7496), (-0.9801, 0.9801)),
        "usual settings, mixture": ((-1.322, 1.322), (-1.118, 1.118), (-1.322, 1.322)),
        "usual settings, amd": ((-1.132, 1.132), (-0.97, 0.97), (-1.132, 1.132)),
    },
    "time_to_first_token": {
        "usual settings, dense": ((-1.029, 1.029), (-0.7622, 0.7622), (-1.029, 1.029)),
        "usual settings, mixture": ((-1.101, 1.101), (-0.9395, 0.9395), (-1.101, 1.101)),
        "usual settings, amd": ((-1.328, 1.328), (-1.163, 1.163), (-1.328, 1.328)),
    },
}
