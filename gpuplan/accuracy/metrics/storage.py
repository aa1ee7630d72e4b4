"""Points of MLPerf Storage: what emulated accelerators read, in MiB/s each.

An accelerator reads a batch while it computes on the one before; submitters add accelerators until
storage just keeps each of them as busy as the benchmark demands.
"""

from __future__ import annotations

import math

from gpuplan.accuracy.data import loading as measured
from gpuplan.accuracy.points.readings import DataReading
from gpuplan.accuracy.reckon import Prior, Reckoned
from gpuplan.sizing.calibration.anchors import Term
from gpuplan.sizing.evidence.formula import Formula
from gpuplan.units import MIB

QUANTITY = "storage_reading"
BUSY = Formula(
    "batch * sample_bytes / computation_seconds", "B/s", f"never waiting; {measured.SOURCE}"
)
USUAL = Formula("busy * (wanted + room * (1 - wanted))", "B/s", "waiting as much as is allowed")
_PRIOR = Prior(
    quantity=QUANTITY,
    terms=(
        Term(amplitude=0.02, same=("gpu",)),
        Term(amplitude=0.03, same=("model", "gpu")),
        Term(amplitude=0.05, same=("model", "gpu"), scales=(("accelerators", 2.0),)),
    ),
    noise=0.03,
    reaches=((("model", "gpu"), True), ((), False)),
)
PRIORS = {QUANTITY: _PRIOR}


def read_rate(case: DataReading) -> Reckoned | str:
    """MiB/s of one accelerator."""
    seconds = measured.SECONDS.get((case.workload, case.accelerator))
    if seconds is None:
        named = f"{case.workload} on {case.accelerator or 'an unknown accelerator'}"
        return f"data loading of {named} is not known"
    sample, batch, wanted = measured.WORKLOADS[case.workload]
    busy = BUSY(batch=batch, sample_bytes=sample, computation_seconds=seconds)
    usual = USUAL(busy=busy, wanted=wanted, room=measured.ROOM)
    return Reckoned(
        value=usual / MIB,
        quantity=QUANTITY,
        features={
            "model": case.workload,
            "gpu": case.accelerator,
            "accelerators": math.log2(max(1.0, case.accelerators)),
        },
        best=busy / MIB,
        sense="rate",
    )
