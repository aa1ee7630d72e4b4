"""Public served points → gpuplan/sizing/data/serving.py: the constants of the serving model.

    PYTHONPATH=. python bench/calibrate.py INFERENCE_CSV

Least squares on the log error with prior widths; each cell (model, GPU, engine, precision) weighs
less the more points it has. Prints the errors of models and GPUs that were left out of the fit.
Needs numpy and scipy.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from gpuplan.accuracy.metrics.serving import Served, served
from gpuplan.accuracy.points.points import Case, Point, read_points

OUTPUT = Path(__file__).parent.parent / "gpuplan/sizing/data/serving.py"
DATE = "2026-11-21"
ENGINES = ("vllm", "sglang", "tensorrt-llm")
CLIENTS = ("spread", "fixed")
# The kernels of a factor, as `physics.serving.steps` adds them up.
KERNELS = (
    ("projection", "dense"),
    ("attention", "state", "index", "gathered"),
    ("expert",),
    ("all_reduce", "exchange", "transfer"),
    ("elementwise",),
)
FACTORS = (
    "matmul_factor",
    "attention_factor",
    "expert_factor",
    "link_factor",
    "elementwise_factor",
    "block_overhead",
    "state_overhead",
    "latent_overhead",
)
OVERHEADS = ("layer", "routing", "step", "sequence", "scaling")
# Start and width (of the logarithm) of each constant; overheads in seconds, by engine.
START = [0.89, 0.9, 0.79, 0.75, 1.6, 2e-6, 5e-6, 2e-6]
WIDTH = [0.15, 0.15, 0.15, 0.15, 0.5, 0.7, 0.7, 0.7]
BY_ENGINE = [
    ([18e-6, 11e-6, 5e-6], 0.5),
    ([4e-6, 15e-6, 5e-6], 0.7),
    ([2e-4, 6e-4, 4e-4], 0.5),
    ([28e-6, 38e-6, 19e-6], 0.5),
    ([12e-6, 1e-6, 3.5e-6], 0.7),
    ([1.2, 0.8, 1.1], 0.3),
]
FIRST = (
    "first_overhead",
    "first_prefill_factor",
    "first_step_factor",
    "burst_factor",
    "first_sequence_overhead",
)
FIRST_START = [0.03, 1.2, 2.0, 0.06, 3e-4]
FIRST_WIDTH = [1.5, 0.6, 1.5, 0.8, 1.5]
QUEUED_SECONDS = 3.0  # above it the queue of a closed loop decides, not the engine


def old(point: Served) -> bool:
    """Block-scaled products of vLLM before 0.13 took kernels that it has since replaced."""
    version = str(point.features["version"])
    return (
        point.case.engine == "vllm"
        and version == "0.12.0"
        and point.replica.modelled(point.sequences)["scaled_inputs"] > 0
    )


def expressed(points: list[Point], metric: str) -> list[tuple[Point, Served]]:
    """The points of confidence A or B that the engine can express."""
    found = []
    for point in points:
        if point.metric == metric and isinstance(point.case, Case):
            answer = served(point.case)
            if isinstance(answer, Served) and point.case.row["confidence"] in ("A", "B"):
                found.append((point, answer))
    return found


class Points:
    """Features of served points, as arrays."""

    def __init__(self, found: list[tuple[Point, Served]]) -> None:
        points = [served for _, served in found]
        steps = [p.replica.steps(p.sequences) for p in points]
        decode, prefill = ([of[i] for of in steps] for i in (0, 1))
        self.engine = np.array([ENGINES.index(p.case.engine) for p in points])
        self.model = np.array([str(p.features["model"]) for p in points])
        self.gpu = np.array([p.case.gpu.identifier for p in points])
        self.client = np.array([CLIENTS.index(str(p.features["client"])) for p in points])
        self.group = np.array([point.group for point, _ in found])
        self.dense = np.array([not d.get("expert_layers") for d in decode])
        self.latent = np.array([float("kv_rank" in d) for d in decode])
        self.seconds = np.array([point.value / 1e3 for point, _ in found])
        self.batch = np.array([p.sequences for p in points])
        self.stalled = self.batch * np.array([d["stalling_ranks"] for d in decode])
        self.output = np.array([p.replica.service.tokens.output_mean.value for p in points])
        self.decode = self._kernels(decode)
        self.prefill = self._kernels(prefill)
        counts = ("layers", "expert_layers", "", "sequences", "scaled_inputs")
        shared = ("block_inputs", "linear_layers")
        self.shared = np.array([[d.get(c, 0.0) for c in shared] for d in decode])
        self.counts = np.array([[d.get(c, 0.0) if c else 1.0 for c in counts] for d in decode])
        cells = Counter(str(p.features["cell"]) for p in points)
        self.weight = np.array(
            [0 if old(p) else cells[str(p.features["cell"])] ** -0.25 for p in points]
        )

    @staticmethod
    def _kernels(steps: list[dict[str, float]]) -> np.ndarray:
        parts = (*KERNELS, ("head",), ("roofline",))
        return np.array(
            [[sum(s.get(f"{k}_seconds", 0.0) for k in p) for p in parts] for s in steps]
        )

    def times(self, c: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Time per output token, prefill work, prefill with overhead."""
        engine = c[len(START) :].reshape(6, 3)[:, self.engine[at]]
        works = [
            np.maximum(k[at, :5] @ c[:5] + k[at, 5], k[at, 6]) for k in (self.decode, self.prefill)
        ]
        counts = self.counts[at].T
        own = (engine[:5] * counts).sum(0) + self.shared[at] @ c[5:7]
        own += c[7] * self.latent[at] * counts[0]
        host = engine[3] * counts[3]
        decode, prefill = works[0] + own, works[1] + own - host
        stall, output = engine[5] * self.stalled[at] * works[1], self.output[at]
        excess = stall + output * decode - prefill  # as the latency sheet solves it
        token = (excess + np.sqrt(excess**2 + 4 * output * decode * prefill)) / (2 * output)
        return token, works[1], prefill


def robust(error: np.ndarray, scale: float) -> np.ndarray:
    r = error / scale
    return np.sign(r) * np.sqrt(2 * (np.sqrt(1 + r * r) - 1))


def fit_tokens(points: Points, at: np.ndarray) -> np.ndarray:
    start = np.log(np.array(START + [v for values, _ in BY_ENGINE for v in values]))
    width = np.array(WIDTH + [w for _, w in BY_ENGINE for _ in range(3)])

    def residual(log: np.ndarray) -> np.ndarray:
        token, _, _ = points.times(np.exp(log), at)
        error = points.weight[at] * np.log(token / points.seconds[at])
        return np.concatenate([robust(error, 0.1), (log - start) / width])

    return np.exp(least_squares(residual, start).x)


def first_token(points: Points, constants: np.ndarray, c: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Mean TTFT of a closed loop, which starts with a burst of all its requests."""
    token, work, prefill = points.times(constants, at)
    burst = c[3] * points.stalled[at] * work
    return c[0] + c[1] * prefill + c[2] * token + burst + c[4] * points.batch[at]


def fit_first(points: Points, constants: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Constants of the first token, (client, engine, constant)."""
    fitted = np.zeros((len(CLIENTS), len(ENGINES), len(FIRST)))
    start, width = np.log(FIRST_START), np.array(FIRST_WIDTH)
    for place in np.ndindex(len(CLIENTS), len(ENGINES)):
        of = at & among(points, place) & (points.seconds < QUEUED_SECONDS)

        def residual(log: np.ndarray, of: np.ndarray = of) -> np.ndarray:
            predicted = first_token(points, constants, np.exp(log), of)
            error = points.weight[of] * np.log(predicted / points.seconds[of])
            return np.concatenate([robust(error, 0.2), (log - start) / width])

        fitted[place] = np.exp(least_squares(residual, start).x)
    return fitted


def among(points: Points, place: tuple[int, ...]) -> np.ndarray:
    """The points of a client and engine."""
    return (points.client == place[0]) & (points.engine == place[1])


def first_of(points: Points, constants: np.ndarray, rows: np.ndarray, at: np.ndarray) -> np.ndarray:
    predicted = np.zeros(len(points.seconds))
    for place in np.ndindex(len(CLIENTS), len(ENGINES)):
        of = at & among(points, place)
        predicted[of] = first_token(points, constants, rows[place], of)
    return predicted[at]


def left_out(tokens: Points, firsts: Points, by: str) -> tuple[np.ndarray, np.ndarray]:
    """Log errors of both quantities, with every point's model (or GPU) left out of its fit."""
    errors = np.zeros(len(tokens.seconds)), np.zeros(len(firsts.seconds))
    keys = [getattr(p, by) for p in (tokens, firsts)]
    for key in sorted(set(keys[0])):
        out, out_first = keys[0] == key, keys[1] == key
        constants = fit_tokens(tokens, ~out)
        rows = fit_first(firsts, constants, ~out_first)
        errors[0][out] = np.log(tokens.times(constants, out)[0] / tokens.seconds[out])
        seen = first_of(firsts, constants, rows, out_first)
        errors[1][out_first] = np.log(seen / firsts.seconds[out_first])
    return errors


def summary(errors: np.ndarray) -> str:
    size = np.abs(np.expm1(errors))
    return f"MdAPE {np.median(size):.1%} P90 {np.percentile(size, 90):.1%} n {len(errors)}"


def main(path: str) -> None:
    points = read_points([Path(path)])
    tokens, firsts = (Points(expressed(points, m)) for m in ("tpot", "ttft"))
    everything = np.ones(len(tokens.seconds), bool)
    constants = fit_tokens(tokens, everything)
    rows = fit_first(firsts, constants, np.ones(len(firsts.seconds), bool))
    short = firsts.seconds < QUEUED_SECONDS
    by_model, by_gpu = (left_out(tokens, firsts, by) for by in ("model", "gpu"))
    classes = [("time_per_output_token", "dense", 0, tokens.dense)]
    classes += [("time_per_output_token", "moe", 0, ~tokens.dense)]
    classes += [
        ("time_to_first_token", name, 1, (firsts.engine == i) & short)
        for i, name in enumerate(ENGINES)
    ]
    for name, of_class, column, of in classes:
        near, far = by_model[column][of], by_gpu[column][of]
        print(name, of_class, "| model left out:", summary(near), "| GPU left out:", summary(far))
    OUTPUT.write_text(module(constants, rows, len(everything), int(short.sum())), "utf-8")


def module(
    constants: np.ndarray,
    rows: np.ndarray,
    tokens: int,
    firsts: int,
) -> str:
    lines = [
        '"""Constants of the serving model, written by bench/calibrate.py.',
        "",
        "Overheads are seconds. `FIRST_TOKEN` is by client: prompts of spread or of fixed lengths.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        f'SOURCE = "calibrated on {tokens:,} public points of time per output token ({DATE})"',
        f'FIRST_SOURCE = "calibrated on {firsts:,} public points of time to first token ({DATE})"',
        "FACTORS = {",
    ]
    shared = zip(FACTORS, constants, strict=False)
    lines += [f'    "{n}": {v:.4g},' for n, v in shared if n != "latent_overhead"]
    lines += ["}", f"LATENT_OVERHEAD = {constants[7]:.4g}  # a layer", "ENGINE = {"]
    engine = constants[len(START) :].reshape(6, 3)
    for i, name in enumerate(ENGINES):
        lines.append(f'    "{name}": {{')
        lines += [f'        "{n}_overhead": {engine[j, i]:.4g},' for j, n in enumerate(OVERHEADS)]
        lines += [f'        "interference": {engine[5, i]:.4g},', "    },"]
    lines += ["}", "FIRST_TOKEN = {"]
    for i, client in enumerate(CLIENTS):
        lines.append(f'    "{client}": {{')
        for j, name in enumerate(ENGINES):
            lines.append(f'        "{name}": {{')
            pairs = zip(FIRST, rows[i, j], strict=True)
            lines += [f'            "{n}": {v:.4g},' for n, v in pairs]
            lines.append("        },")
        lines.append("    },")
    return "\n".join([*lines, "}", 'FIRST = FIRST_TOKEN["spread"]', ""])


if __name__ == "__main__":
    main(sys.argv[1])
