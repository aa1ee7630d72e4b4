"""Public points of offline throughput → gpuplan/accuracy/data/offline.py.

    python -m bench.fitting.offline INFERENCE_CSV… [PROTOCOL…]

A cell (model, GPU, precision) weighs less the more points it has. Protocols that are not named keep
their constants. Needs numpy and scipy.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np

from bench.fitting.fit import DATE, by_cell, fit, rounded, summary, table, write
from gpuplan.accuracy.data import offline as stored
from gpuplan.accuracy.metrics import alone, mlperf, offline
from gpuplan.accuracy.points.points import Case, Point, read_points
from gpuplan.accuracy.reckon import Reckoned

ABOUT = """Constants of offline throughput

Overheads are seconds; factors multiply measured kernels. `ALONE` is by engine, `ALONE_FORMATS` by
engine and quantization; `LATENCY` scales the latencies that MLPerf's limits leave.
"""
SOFT = 0.1
Start = dict[str, tuple[float, float]]  # constant: start, width of the logarithm
Answer = Callable[[Case, dict[str, float]], Reckoned | str]
Rows = list[tuple[Case, float]]

STEP: Start = {
    "matmul_factor": (1.1, 0.2),
    "attention_factor": (0.95, 0.3),
    "expert_factor": (1.0, 0.4),
    "link_factor": (0.6, 0.5),
    "bridge_factor": (0.7, 0.7),  # links over PCIe
    "elementwise_factor": (2.0, 0.4),
    "layer_overhead": (8e-6, 0.5),
    "routing_overhead": (3.5e-6, 0.7),
    "step_overhead": (3e-4, 0.5),
    "sequence_overhead": (3e-6, 0.7),
    "scaling_overhead": (1e-6, 0.7),
    "block_overhead": (1.5e-6, 0.7),
    "state_overhead": (1e-5, 0.01),
}
QUEUED: Start = {"interference": (0.85, 0.2), "bubble": (1.15, 0.1)}
PREFILL: Start = {"prefill_attention": (0.8, 0.4)}
STARTS: dict[str, Start] = {
    "maximum": STEP | QUEUED | {"sequence_overhead": (1e-5, 1.0), "link_factor": (0.8, 0.3)},
    "static": STEP
    | PREFILL
    | {
        "prefill_factor": (0.85, 0.2),
        "layer_overhead": (14e-6, 0.5),
        "link_factor": (1.5, 0.5),
        "grouped_elements": (32.0, 0.7),  # a clock of an SM: four instructions each on 128 cores
    },
    "first_token": STEP
    | PREFILL
    | {"layer_overhead": (40e-6, 0.5), "step_overhead": (7e-4, 0.5), "link_factor": (1.5, 0.5)},
    "mlperf": STEP
    | QUEUED
    | {
        "link_factor": (0.5, 0.2),
        "four_bit_factor": (0.9, 0.4),
        "pacing": (0.8, 0.1),
        "waiting": (1.0, 0.5),
        "server": (0.9, 0.2),
        "interactive": (0.9, 0.2),
        "round_gain": (1.0, 0.05),  # on the rate, a round
    },
}
ANSWERS: dict[str, Answer] = {
    "maximum": offline.maximum,
    "static": offline.static,
    "first_token": offline.batch_one,
}
LAUNCHED: Start = {
    "layer_overhead": (6e-4, 0.5),
    "expert_overhead": (1e-4, 1.5),
    "long_attention": (10.0, 1.0),
}
REPLAYED: Start = {
    "layer_overhead": (1.2e-5, 0.5),
    "expert_overhead": (1e-7, 0.01),
    "long_attention": (1.0, 0.4),
}
ENGINE: Start = {
    "attention_factor": (1.2, 0.4),
    "expert_factor": (1.0, 0.6),
    "link_factor": (1.0, 0.3),
    "bridge_factor": (1.0, 0.01),
    "elementwise_factor": (1.5, 0.1),
    "routing_overhead": (4e-6, 0.5),
    "step_overhead": (4e-4, 1.0),
    "sequence_overhead": (1e-5, 0.1),
    "scaling_overhead": (1e-6, 0.1),
    "block_overhead": (1e-6, 0.1),
    "state_overhead": (1e-5, 0.01),
}
# As multiples of the engine's own.
OF_FORMAT: Start = {
    "matmul_factor": (1.0, 0.4),
    "expert_factor": (1.0, 1.0),
    "layer_overhead": (1.0, 0.5),
}


def fitted(rows: Rows, start: Start, answer: Answer) -> dict[str, float]:
    """The constants, from cases with their measured values."""
    measured = np.log([value for _, value in rows])
    weights = by_cell(
        [f"{c.model.identifier}|{c.gpu.identifier}|{c.precision}" for c, _ in rows], 0.25
    )

    def errors(constants: dict[str, float]) -> np.ndarray:
        answers = [answer(case, constants) for case, _ in rows]
        return np.log([a.value for a in answers if isinstance(a, Reckoned)]) - measured

    constants = fit(start, lambda c: weights * errors(c), scale=SOFT, most=20)
    print(f"  {summary(errors(constants))}")
    return rounded(constants)


def usable(points: Sequence[Point], metrics: tuple[str, ...]) -> Iterator[tuple[Case, float]]:
    for point in points:
        if point.metric in metrics and isinstance(point.case, Case) and point.confidence != "C":
            yield point.case, point.value


def answered(rows: Rows, answer: Answer, start: Start) -> Rows:
    """The cases that can be predicted."""
    constants = {name: value for name, (value, _) in start.items()}

    def can(case: Case) -> bool:
        try:
            return isinstance(answer(case, constants), Reckoned)
        except ValueError:
            return False

    return [(case, value) for case, value in rows if can(case)]


def submissions(rows: Rows) -> Rows:
    """Submissions of the same system: their median, as often as the root of their number."""
    same: dict[tuple[str, ...], Rows] = defaultdict(list)
    columns = ("model", "gpu", "n_gpus", "precision")
    for case, value in rows:
        if case.row["precision"] != "fp32":
            same[(case.metric, *(case.row[c] for c in columns))].append((case, value))
    return [
        (group[0][0], median(v for _, v in group))
        for group in same.values()
        for _ in range(math.isqrt(len(group)))
    ]


def mlperf_answer(case: Case, constants: dict[str, float]) -> Reckoned | str:
    named = mlperf.samples if "samples" in case.metric else mlperf.tokens
    return named(case, constants)


def protocols(points: Sequence[Point]) -> Iterator[tuple[str, Rows, Answer]]:
    metrics = {
        "maximum": ("max_output_tokens_per_s_per_gpu",),
        "static": ("output_tokens_per_s_per_gpu",),
        "first_token": ("ttft",),
    }
    for name, wanted in metrics.items():
        rows = list(usable(points, wanted))
        if name == "first_token":
            rows = [(c, v) for c, v in rows if offline.ONE_REQUEST in c.row["notes"]]
        yield name, rows, ANSWERS[name]
    wanted = tuple(
        f"mlperf_{scenario}_{unit}_per_s"
        for scenario in ("offline", "server", "interactive")
        for unit in ("tokens", "samples")
    )
    yield "mlperf", submissions(list(usable(points, wanted))), mlperf_answer


def alone_answer(engine: str, methods: Sequence[str]) -> Answer:
    """Constants named "name" or "name method" as the tables of `alone.speed`."""

    def answer(case: Case, constants: dict[str, float]) -> Reckoned | str:
        own, formats = tables(engine, methods, constants)
        return alone.speed(case, {engine: own}, formats)

    return answer


def tables(
    engine: str, methods: Sequence[str], constants: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    own = {n: v for n, v in constants.items() if " " not in n}
    own["matmul_factor"] = 1.0
    formats = {
        f"{engine}|{m}": {n: own[n] * constants[f"{n} {m}"] for n in OF_FORMAT} for m in methods
    }
    return own, formats


def engines(points: Sequence[Point]) -> Iterator[tuple[str, Rows]]:
    wanted = ("speed_in_plus_out_tokens_per_s_bs1", "decode_tokens_per_s_bs1")
    rows: dict[str, Rows] = defaultdict(list)
    for case, value in usable(points, wanted):
        engine, _ = alone.constants_of(case, case.number("input_len") + case.number("output_len"))
        rows[engine].append((case, value))
    yield from sorted(rows.items())


def fit_alone(points: Sequence[Point]) -> tuple[alone.Table, alone.Table]:
    owns, formats = {}, {}
    for engine, rows in engines(points):
        print(engine)
        eager = engine.startswith((*alone.EAGER, "vllm uncaptured"))
        start = ENGINE | (LAUNCHED if eager else REPLAYED)
        methods = sorted({alone.method(case.precision) for case, _ in rows})
        start |= {f"{n} {m}": s for m in methods for n, s in OF_FORMAT.items()}
        answer = alone_answer(engine, methods)
        constants = fitted(answered(rows, answer, start), start, answer)
        owns[engine], own_formats = tables(engine, methods, constants)
        formats |= {method: rounded(row) for method, row in own_formats.items()}
    return owns, formats


def fit_latency(points: Sequence[Point]) -> dict[str, float]:
    """Scales of the latencies: medians of measured over paced."""
    scales = {}
    for kind, answer in (("token", mlperf.token_latency), ("first", mlperf.first_latency)):
        for statistic in ("mean", "p99"):
            metric = f"mlperf_server_{'tpot' if kind == 'token' else 'ttft'}_{statistic}"
            rows = list(usable(points, (metric,)))
            paced = {id(case): _reckoned(case, answer) for case, _ in rows}
            ratios = [
                value / paced[id(case)] * stored.LATENCY[f"{kind}_{statistic}"]
                for case, value in submissions([row for row in rows if paced[id(row[0])]])
            ]
            scales[f"{kind}_{statistic}"] = float(f"{median(ratios):.3g}")
    return stored.LATENCY | scales


def _reckoned(case: Case, answer: Callable[[Case], Reckoned | str]) -> float:
    """0 where it cannot be predicted."""
    try:
        paced = answer(case)
    except ValueError:
        return 0.0
    return paced.value if isinstance(paced, Reckoned) else 0.0


def main() -> None:
    points = read_points([Path(a) for a in sys.argv[1:] if a.endswith(".csv")])
    chosen = [a for a in sys.argv[1:] if not a.endswith(".csv")]
    constants, owns, formats = dict(stored.CONSTANTS), stored.ALONE, stored.ALONE_FORMATS
    for name, rows, answer in protocols(points):
        if not chosen or name in chosen:
            print(name)
            start = STARTS[name]
            constants[name] = fitted(answered(rows, answer, start), start, answer)
    if not chosen or "alone" in chosen:
        owns, formats = fit_alone(points)
    latency = fit_latency(points) if not chosen or "latency" in chosen else stored.LATENCY
    lines = [
        f"SOURCE = 'calibrated on public points of offline throughput ({DATE})'",
        *table("CONSTANTS: dict[str, dict[str, float]]", constants),
        *table("ALONE: dict[str, dict[str, float]]", owns),
        *table("ALONE_FORMATS: dict[str, dict[str, float]]", formats),
        *table("LATENCY: dict[str, float]", latency),
    ]
    write("accuracy/data/offline.py", ABOUT, lines)


if __name__ == "__main__":
    main()
