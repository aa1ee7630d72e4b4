"""Many serving configurations at once: the sheets of `Replica` on arrays of numpy.

A row is a replica (GPU, tensor-parallel size), a column a point (sequences, lengths). Values are
those of `Replica.times` and `Replica.needs`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpuplan.plan.times import PLAIN
from gpuplan.sizing.evidence.sheet import floats
from gpuplan.sizing.physics.serving.percentiles import FULLER
from gpuplan.sizing.physics.serving.replica import BUSIEST, UNCORRECTED, Replica
from gpuplan.sizing.physics.serving.scopes import (
    LONG_PROMPT,
    MEAN_PROMPT,
    decode_scope,
    prefill_scope,
    prefilled,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

POINTS = ("sequences", "input_mean", "input_p95", "output_mean", "output_p95", "max_model_len")
WANTED = (
    *PLAIN,
    "request_seconds",
    "replica_rate",
    "used_bytes",
    "usable_bytes",
    "running",
)
NEAR = 1 + 1e-9  # what `canonical` rounds away


def predict(replicas: Sequence[Replica], points: Mapping[str, Array]) -> dict[str, Array]:
    """`WANTED`, whether memory `holds` it and it `fits` all limits as 0 or 1, each replicas ×
    points. `points` has `sequences`, and others
    of `POINTS` that replace those of the replicas."""
    import numpy as np

    assert set(points) <= set(POINTS)
    columns = np.broadcast(*points.values()).size
    predicted = {name: np.empty((len(replicas), columns)) for name in (*WANTED, "holds", "fits")}
    kinds: dict[tuple[int, ...], list[int]] = {}
    for number, one in enumerate(replicas):
        sheets = (
            one.shape,
            one.decode,
            one.prefill,
            one.beside,
            one.latency,
            one.running,
            one.step,
            one.memory,
        )
        kinds.setdefault(tuple(map(id, sheets)), []).append(number)
    for rows in kinds.values():
        group = [replicas[n] for n in rows]
        scope = _evaluated(group, points)
        for name in WANTED:
            predicted[name][rows] = scope[name]
        predicted["holds"][rows] = holds = _holds(group, scope)
        keeps_up = (scope["prefill_load"] <= BUSIEST) | (not group[0].service.random)
        predicted["fits"][rows] = holds & keeps_up & _meets(scope, _limited(group))
    return predicted


def _evaluated(group: Sequence[Replica], points: Mapping[str, Array]) -> dict[str, Any]:
    """All sheets of replicas that share them."""
    import numpy as np

    one = group[0]
    scopes = [floats(r.scope) for r in group]
    names = set(scopes[0]).intersection(*scopes)
    scope: dict[str, Any] = {n: np.array([[s[n]] for s in scopes]) for n in sorted(names)}
    scope |= {name: np.asarray(values, dtype=float)[None, :] for name, values in points.items()}
    scope |= _corrections(group, points)
    scope = one.shape.over(scope)
    for prefix, prompt in (("", MEAN_PROMPT), ("longest_", LONG_PROMPT)):
        done = one.prefill.over(prefill_scope(scope, prompt, 1.0))
        scope |= prefilled(done, f"{prefix}prefill")
    sequences = scope["sequences"]
    steps = dict[str, Any]()
    if one.fuller:
        more = FULLER.over({"sequences": sequences})["fuller_sequences"]
        fuller = one.decode.over(decode_scope(scope | {"sequences": more}))
        steps["fuller_seconds"] = fuller["seconds"]
    done = one.decode.over(decode_scope(scope | {"sequences": np.maximum(sequences, 1.0)}))
    steps |= {"decode_seconds": done["seconds"], "sequences": sequences}
    mixed = one.beside.over(dict(done)) if one.beside else {}
    steps["growth_seconds"] = mixed.get("growth_seconds", scope["prefill_work_seconds"])
    scope = one.latency.over(done | steps)
    scope["sequences"] = scope["sequences"] * scope["pipeline_stages"]
    scope = one.running.over(scope)
    scope["running"] = scope.get("running_requests", scope["max_num_seqs"])
    scope["max_num_seqs"] = _or_chosen(scope["max_num_seqs"], [r.max_num_seqs for r in group])
    scope = one.step.over(scope)
    chosen = [r.service.max_num_batched_tokens for r in group]
    scope["max_num_batched_tokens"] = _or_chosen(scope["max_num_batched_tokens"], chosen)
    return one.memory.over(scope)


def _or_chosen(derived: Any, chosen: Sequence[float | None]) -> Any:
    """The override of each replica, where it has one."""
    import numpy as np

    column = np.array([[math.nan if value is None else value] for value in chosen])
    return np.where(np.isnan(column), derived, column)


def _corrections(group: Sequence[Replica], points: Mapping[str, Array]) -> dict[str, Any]:
    """`Replica.corrections`, and the limit of each objective as `NAME_limit`; loads of the same
    lengths share what was evaluated."""
    import numpy as np

    columns = np.broadcast_arrays(*points.values())
    rows = [dict(zip(points, map(float, row), strict=True)) for row in zip(*columns, strict=True)]
    limits = [f"{name}_limit" for name in _limited(group)]
    corrections: dict[str, Any] = {
        name: np.full((len(group), len(rows)), math.inf) for name in (*UNCORRECTED, *limits)
    }
    for place, replica in enumerate(group):
        known: dict[tuple[float, ...], Replica] = {}
        for column, row in enumerate(rows):
            lengths = {n: v for n, v in row.items() if n != "sequences"}
            one = known.get(key := tuple(lengths.values()))
            if one is None:
                one = known[key] = replica.at_lengths(lengths) if lengths else replica
            for name, value in one.corrections(row["sequences"]).items():
                corrections[name][place, column] = value
            for name, limit, slow in one.limits:
                corrections[f"{name}_limit"][place, column] = limit / slow
    return corrections


def _holds(group: Sequence[Replica], scope: Mapping[str, Any]) -> Any:
    """Whether memory and the engine's limit of sequences allow as many, as in `Replica.fits`."""
    import numpy as np

    most = np.array([[r.places] for r in group])
    room = scope["used_bytes"] <= scope["usable_bytes"]
    return room & (scope["running"] <= most)


def _limited(group: Sequence[Replica]) -> list[str]:
    """The times that some of `group` have an objective for."""
    return sorted({name for one in group for name, _, _ in one.limits})


def _meets(scope: Mapping[str, Any], limited: Iterable[str]) -> Any:
    """Whether every objective is met with the wanted confidence."""
    met: Any = True
    for name in limited:
        met = met & (scope[name] <= scope[f"{name}_limit"] * NEAR)
    return met
