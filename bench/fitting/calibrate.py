"""Public served points → gpuplan/sizing/data/serving.py: the constants of the serving model.

    python -m bench.fitting.calibrate INFERENCE_CSV...

Each cell (model, GPU, engine, precision) weighs less the more points it has. Every source has a
factor of its own beside the constants, which none of them takes to a prediction. Prints the errors
of models, GPUs and sources that were left out of the fit. Needs numpy and scipy.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from bench.fitting.fit import DATE, each_left_out, fit, summary, table, write
from bench.fitting.served import BY_ENGINE, ENGINES, Constants, Points
from gpuplan.accuracy.fit.calibrate import starting
from gpuplan.accuracy.metrics.serving import Served, served
from gpuplan.accuracy.points.points import Case, Point, read_points
from gpuplan.sizing.hardware.measured import NotMeasured
from gpuplan.sizing.physics.serving.scopes import HALF_A_STEP

ABOUT = """Constants of the serving model

Overheads are seconds. `VENDOR`: factors on the constants of another maker's GPUs, `overhead` on all
of an engine's but `scaling_overhead`, which has a value of its own, `interference` on an engine's,
`untuned_prompts` on the kernels of prompts whose inputs are scaled in blocks in shapes that nobody
tuned. `PIECE_SECONDS`: for which the host starts a layer of a step that is CUDA graphs between its
attention. `eager_seconds`: for which it starts the kernels of a prompt's layer with attention;
`eager_experts` and `eager_state`: those of its experts and of linear attention, `eager_index` those
of choosing tokens, `eager_latent`: what latent attention takes more, as parts of that; of it, tuned
settings leave `captured`. `UNFUSED_SECONDS`: what an exchange takes more whose norm is a kernel of
its own; `OVERLAPPED`: the part of `sequence_overhead` that is left where the host works while the
GPU does; `SCALED_WITHIN`: the part of `scaling_overhead` that is where other kernels scale.
`FIRST_TOKEN`: what stands after `first_overhead` grows from nothing with the load; of what an
engine's own work takes of it, those who start no server for each measurement see `settled`. Half of
the others' part is there at `gathering` requests; `burst_factor` is of the requests that a closed
loop starts with, `line_steps` of those that follow in step where answers have one length.
`prompt_routing` is how much longer prompts of mixtures take than kernels whose tokens are routed
evenly.
"""
Firsts = Mapping[str, Mapping[str, float]]
# Start and width (of the logarithm) of each constant; overheads in seconds.
SHARED = {
    "matmul_factor": (0.89, 0.15),
    "attention_factor": (0.9, 0.15),
    "expert_factor": (0.79, 0.15),
    "link_factor": (0.75, 0.15),
    "elementwise_factor": (1.5, 0.1),
    "block_overhead": (2e-6, 0.7),
    "state_overhead": (5e-6, 0.7),
    "latent_overhead": (2e-6, 0.7),
    "eager_experts": (0.5, 0.5),
    "eager_state": (1.0, 0.5),
    "eager_latent": (0.7, 0.5),
    "eager_index": (0.7, 0.5),
}
VENDORS = {
    ("amd", "matmul_factor"): (1.0, 0.5),
    ("amd", "expert_factor"): (1.0, 0.5),
    ("amd", "overhead"): (1.5, 0.7),
    ("amd", "scaling_overhead"): (3e-5, 1.0),
    ("amd", "interference"): (1.5, 0.5),
    ("amd", "untuned_prompts"): (1.5, 0.5),
}
PRIORS = (
    SHARED
    | {
        (name, engine): (start, width)
        for name, (starts, width) in BY_ENGINE.items()
        for engine, start in zip(ENGINES, starts, strict=True)
    }
    | VENDORS
    | {
        "piece_seconds": (1.3e-4, 0.3),
        "unfused_seconds": (6e-6, 0.5),
        "overlapped": (0.5, 0.5),
        "scaled_within": (0.5, 0.7),
    }
)
# Widths of the factors of sources.
TOKEN_SOURCES, FIRST_SOURCES = 0.15, 0.3
# `settled`: a part of what others add, elsewhere than at sites that start a server for each
# measurement; half of it is there at `gathering` requests. Of a burst, a request waits for its own
# step and half of the others on average; in a line for the step that runs, and a prompt.
FIRST = {
    "settled": (0.3, 1.0),
    "gathering": (16.0, 0.7),
    "first_overhead": (0.006, 0.3),
    "contended_overhead": (0.03, 1.5),
    "contended_prefill": (0.3, 1.0),
    "first_step_factor": (2.0, 1.2),
    "burst_factor": (1.0, 0.4),
    "line_steps": (1.0, 0.5),
    "prompt_routing": (1.0, 0.3),
    "first_sequence_overhead": (3e-4, 1.2),
}
QUEUED_SECONDS = 3.0  # above it the queue of a closed loop decides, not the engine


def expressed(points: list[Point], metric: str) -> list[tuple[Point, Served]]:
    """The points of confidence A or B that the engine can express."""
    pairs = []
    for point in points:
        if point.metric == metric and isinstance(point.case, Case):
            if point.confidence not in ("A", "B"):
                continue
            with suppress(NotMeasured):  # kernels of its GPU
                answer = served(point.case)
                if isinstance(answer, Served):
                    pairs.append((point, answer))
    if metric == "tpot":
        return pairs
    started = starting([(point, answer.features) for point, answer in pairs])
    return [
        (point, answer)
        for point, answer in pairs
        if point.group not in started and not answer.waiting
    ]


def fit_tokens(points: Points, at: np.ndarray, *known: Constants) -> Constants:
    """The constants of the points `at`, sought from the priors and from those `known`."""
    names, number = np.unique(points.source[at], return_inverse=True)
    sources = {("source", str(name)): (1.0, TOKEN_SOURCES) for name in names}

    def errors(constants: Constants) -> np.ndarray:
        own = np.log([constants[key] for key in sources])[number]
        logs = np.log(points.times(constants, at)[0] / points.seconds[at])
        return points.weight[at] * (logs + own)

    return fit(PRIORS | sources, errors, scale=0.1, starts=({}, *known))


def first_token(
    points: Points, constants: Constants, first: Mapping[str, float], at: np.ndarray
) -> np.ndarray:
    """Mean TTFT of a closed loop, which starts with a burst of all its requests."""
    token, work, busy, prefill, full = points.times(constants, at)
    contended = 1 - 1 / np.maximum(points.batch[at], 1)
    many = np.maximum(points.batch[at], 1)
    grown = first["settled"] * many / (many + first["gathering"])
    part = np.where(points.tuned[at], 1.0, grown)
    others = part * first["contended_overhead"]
    others = others + part * first["first_sequence_overhead"] * points.batch[at]
    others = others + np.maximum(part * first["first_step_factor"], HALF_A_STEP) * token
    routing = np.where(points.dense[at], 1.0, first["prompt_routing"])
    prompt = np.maximum(prefill, busy + (routing - 1) * work)
    work, full = routing * work, routing * full
    prompts, crowd = points.step_prompts[at], np.maximum(points.stalled[at], 1)
    together = np.minimum(crowd, prompts)
    step = work + (together - 1) / np.maximum(prompts - 1, 1e-3) * (full - work)
    wait = first["burst_factor"] * (step * (crowd / together + 1) / 2 - work)
    line = np.minimum(wait, first["line_steps"] * (work + points.step_part[at] * full))
    line = points.in_step[at] * (1 - points.share[at]) * line
    load = np.minimum(0.8, crowd * work / (prefill + points.output[at] * token))
    others = others + points.at_random[at] * work * load / (1 - load)
    beside = np.where(points.at_random[at], 0, first["contended_prefill"]) * prompt
    others = others + np.maximum(beside, line) + points.uncached[at] * wait
    alone = first["first_overhead"] + prompt
    return alone + contended * others


def fit_first(points: Points, constants: Constants, at: np.ndarray) -> Firsts:
    """Constants of the first token, by engine, and beside them a factor of every source."""
    of = at & (points.seconds < QUEUED_SECONDS)
    names, number = np.unique(points.source[of], return_inverse=True)
    priors = {("source", str(name)): (1.0, FIRST_SOURCES) for name in names}
    priors |= {(name, e): held for e in ENGINES for name, held in FIRST.items()}
    by_engine = [np.flatnonzero(points.engine[of] == n) for n in range(len(ENGINES))]

    def errors(logs: Mapping[tuple[str, str], float]) -> np.ndarray:
        predicted = np.zeros(len(number))
        for engine, places in zip(ENGINES, by_engine, strict=True):
            chosen = np.zeros(len(points.seconds), bool)
            chosen[np.flatnonzero(of)[places]] = True
            first = {name: logs[name, engine] for name in FIRST}
            predicted[places] += first_token(points, constants, first, chosen)
        own = np.log([logs["source", str(name)] for name in names])[number]
        return points.weight[of] * (np.log(predicted / points.seconds[of]) + own)

    fitted = fit(priors, errors, scale=0.2)
    return {engine: {name: fitted[name, engine] for name in FIRST} for engine in ENGINES}


def first_of(points: Points, constants: Constants, firsts: Firsts, at: np.ndarray) -> np.ndarray:
    predicted = np.zeros(len(points.seconds))
    for number, engine in enumerate(ENGINES):
        of = at & (points.engine == number)
        predicted[of] = first_token(points, constants, firsts[engine], of)
    return predicted[at]


def left_out(
    tokens: Points, firsts: Points, by: str, known: Constants
) -> tuple[np.ndarray, np.ndarray]:
    """Log errors of both quantities, with every point's model (or GPU) left out of its fit; `known`
    are the constants of all points."""
    errors = np.zeros(len(tokens.seconds)), np.zeros(len(firsts.seconds))
    keys = [getattr(p, by) for p in (tokens, firsts)]
    for out in each_left_out(keys[0]):
        out_first = keys[1] == keys[0][out][0]
        constants = fit_tokens(tokens, ~out, known)
        first = fit_first(firsts, constants, ~out_first)
        errors[0][out] = np.log(tokens.times(constants, out)[0] / tokens.seconds[out])
        seen = first_of(firsts, constants, first, out_first)
        errors[1][out_first] = np.log(seen / firsts.seconds[out_first])
    return errors


def main(paths: list[str]) -> None:
    points = read_points([Path(path) for path in paths])
    tokens, firsts = (Points(expressed(points, m)) for m in ("tpot", "ttft"))
    constants = fit_tokens(tokens, np.ones(len(tokens.seconds), bool))
    first = fit_first(firsts, constants, np.ones(len(firsts.seconds), bool))
    short = firsts.seconds < QUEUED_SECONDS
    unseen = {by: left_out(tokens, firsts, by, constants) for by in ("model", "gpu", "source")}
    classes = [("time_per_output_token dense", 0, tokens.dense)]
    classes += [("time_per_output_token moe", 0, ~tokens.dense)]
    engines = enumerate(ENGINES)
    classes += [(f"time_to_first_token {n}", 1, (firsts.engine == i) & short) for i, n in engines]
    for name, column, of in classes:
        for by, errors in unseen.items():
            print(f"{name:34} {by:6} left out: {summary(errors[column][of])}")
    lines = module(constants, first, len(tokens.seconds), int(short.sum()))
    write("sizing/data/serving.py", ABOUT, lines)


def module(constants: Constants, firsts: Firsts, tokens: int, shorts: int) -> Iterator[str]:
    calibrated = "calibrated on {:,} public points of time {} token (" + DATE + ")"
    yield f"SOURCE = {calibrated.format(tokens, 'per output')!r}"
    yield f"FIRST_SOURCE = {calibrated.format(shorts, 'to first')!r}"
    factors = {name: constants[name] for name in SHARED if name != "latent_overhead"}
    yield from table("FACTORS", factors)
    yield f"LATENT_OVERHEAD = {constants['latent_overhead']:.4g}  # a layer"
    engines = {e: {name: constants[name, e] for name in BY_ENGINE} for e in ENGINES}
    yield from table("ENGINE", engines)
    yield from table("VENDOR", {"amd": {name: constants["amd", name] for _, name in VENDORS}})
    yield f"UNFUSED_SECONDS = {constants['unfused_seconds']:.4g}  # an exchange"
    yield f"OVERLAPPED = {constants['overlapped']:.4g}  # of `sequence_overhead`, vLLM from 0.14 on"
    within = "of `scaling_overhead`, vLLM from 0.18 on"
    yield f"SCALED_WITHIN = {constants['scaled_within']:.4g}  # {within}"
    yield f"PIECE_SECONDS = {constants['piece_seconds']:.4g}  # a layer, graphs between attention"
    yield from table("FIRST_TOKEN", firsts)


if __name__ == "__main__":
    main(sys.argv[1:])
