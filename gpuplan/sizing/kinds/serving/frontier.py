"""Latency against cost of a served model: every GPU type, tensor-parallel size and batch at once.

A replica is taken as always at its number of sequences. Of all those that memory allows, the Pareto
set of the time for an output token and of what a token costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpuplan.plan.capacity import Frontier, Operation
from gpuplan.sizing.ask.demand import LanguageDemand
from gpuplan.sizing.evidence.formula import canonical
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.serving.search import replicas
from gpuplan.sizing.physics.serving.bulk import predict
from gpuplan.sizing.physics.serving.replica import MOST_SEQUENCES, Replica

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def frontier(demand: LanguageDemand, site: Site) -> Frontier:
    """Where some GPU types have a price, those without are left out; where none has, GPU-seconds
    are what a token costs."""
    import numpy as np

    all_replicas = list(replicas(demand, site))
    priced = [r for r in all_replicas if r.device.offer.usd_per_gpu_hour is not None]
    made = priced or all_replicas
    batches = np.arange(1.0, MOST_SEQUENCES + 1)
    if not made:
        return Frontier(tried=0, held=0, operations=())
    values = predict(made, {"sequences": batches})
    gpus = np.array([[r.gpus / r.device.per_gpu] for r in made])
    tokens = values["replica_rate"] * demand.lengths.output_mean.value / gpus
    rates = [r.device.offer.usd_per_gpu_hour for r in made]
    usd = np.array([[q.value if q else np.nan] for q in rates]) / (tokens * 3600) * 1e6
    held = values["holds"] > 0
    rows, columns = _front(values["time_per_output_token"], usd if priced else 1 / tokens, held)
    operations = [
        _operation(
            made[row],
            int(batches[column]),
            {name: float(table[row, column]) for name, table in values.items()},
            float(tokens[row, column]),
            float(usd[row, column]) if priced else None,
        )
        for row, column in zip(rows, columns, strict=True)
    ]
    return Frontier(tried=held.size, held=int(held.sum()), operations=tuple(operations))


def _front(
    times: NDArray[np.float64], costs: NDArray[np.float64], held: NDArray[np.bool_]
) -> tuple[Sequence[int], Sequence[int]]:
    """Rows and columns of the held points that none beats in both, by time."""
    import numpy as np

    rows, columns = np.nonzero(held)
    order = np.lexsort((costs[rows, columns], times[rows, columns]))
    rows, columns = rows[order], columns[order]
    paid = costs[rows, columns]
    before = np.concatenate(([np.inf], np.minimum.accumulate(paid)[:-1]))
    kept = paid < before
    return rows[kept].tolist(), columns[kept].tolist()


def _operation(
    one: Replica, sequences: int, values: dict[str, float], tokens: float, usd: float | None
) -> Operation:
    return Operation(
        gpu=one.device.gpu.identifier,
        partition=one.device.partition,
        tensor_parallel_size=one.gpus,
        sequences=sequences,
        time_per_output_token=canonical(values["time_per_output_token"]),
        time_to_first_token=canonical(values["time_to_first_token"]),
        requests_per_second=canonical(values["replica_rate"]),
        tokens_per_second_per_gpu=canonical(tokens),
        usd_per_million_tokens=None if usd is None else canonical(usd),
        meets=bool(values["fits"]),
    )
