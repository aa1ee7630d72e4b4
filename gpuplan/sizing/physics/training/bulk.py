"""Many layouts of a training run at once: the sheets of `Run` on arrays of numpy.

A row is a division with its micro-batch. Memory is that of `Run.needs`; steps are those of
`Run.modelled`, before measured points correct them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpuplan.sizing.calibration.trained import MEMORY
from gpuplan.sizing.physics.training.division import COLUMNS, Division, Recompute, Sharding, sizes
from gpuplan.sizing.physics.training.prepared import Prepared
from gpuplan.sizing.physics.training.run import UNCORRECTED, Run, sheets

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

WANTED = ("used_bytes", "usable_bytes", "modelled_step_seconds")


def evaluate(
    prepared: Prepared,
    columns: Mapping[str, Array],
    sharding: Sharding,
    recompute: Recompute,
    confidence: float,
) -> dict[str, Array]:
    """`WANTED` of each row. `columns` are those of `COLUMNS` and the `micro_batch`."""
    import numpy as np

    rows = columns["gpus"].size
    results = {name: np.empty(rows) for name in WANTED}
    corrected = _corrected(prepared, columns["gpus"], sharding, recompute, confidence)
    for division, members in _alike(columns, sharding, recompute):
        here = {name: values[members] for name, values in columns.items()}
        scope: dict[str, Any] = prepared.base | sizes(here, sharding, recompute)
        scope |= UNCORRECTED | {"micro_batch": here["micro_batch"]}
        scope |= {name: values[members] for name, values in corrected.items()}
        held, time = sheets(prepared, division)
        scope = time.over(held.over(scope))
        for name in WANTED:
            results[name][members] = scope[name]
    return results


def _alike(
    columns: Mapping[str, Array], sharding: Sharding, recompute: Recompute
) -> Iterator[tuple[Division, Any]]:
    """Rows whose sheets are the same ones, and a division that stands for them."""
    import numpy as np

    ranks = columns["gpus"] / (columns["tensor"] * columns["pipeline"] * columns["context"])
    parts = [columns[name] > 1 for name in ("tensor", "pipeline", "context", "expert")]
    kinds = sum((part.astype(int) << n for n, part in enumerate([*parts, ranks > 1])))
    for kind in np.unique(kinds):
        members = np.flatnonzero(kinds == kind)
        one = {name: int(columns[name][members[0]]) for name in COLUMNS}
        yield Division(sharding=sharding, recompute=recompute, **one), members


def _corrected(
    prepared: Prepared, gpus: Array, sharding: Sharding, recompute: Recompute, confidence: float
) -> dict[str, Any]:
    """What measured points say of the memory of each row: the same of all numbers of GPUs that none
    was measured on."""
    import numpy as np

    field = prepared.anchors(MEMORY)
    column = field.points.names.index("cell")
    measured = {texts[column] for texts in field.points.texts}
    counts, places = np.unique(gpus, return_inverse=True)
    inputs, elsewhere = [], None
    for count in counts:
        run = Run(prepared, Division(int(count), sharding, recompute), confidence)
        if run.memory_features["cell"] in measured:
            inputs.append(run.memory_inputs)
        else:
            elsewhere = elsewhere or run.memory_inputs
            inputs.append(elsewhere)
    return {name: np.array([one[name] for one in inputs])[places] for name in inputs[0]}
