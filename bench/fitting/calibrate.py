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
from types import MappingProxyType

import numpy as np

from bench.fitting.fit import DATE, by_cell, each_left_out, fit, summary, table, write
from gpuplan.accuracy.fit.calibrate import starting
from gpuplan.accuracy.metrics.serving import Served, served
from gpuplan.accuracy.points.points import Case, Point, read_points
from gpuplan.sizing.calibration.served import TUNED
from gpuplan.sizing.hardware.measured import NotMeasured
from gpuplan.sizing.physics.serving.releases import asynchronous, scaled_within
from gpuplan.sizing.physics.serving.replica import Replica
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
ENGINES = ("vllm", "sglang", "tensorrt-llm")
Constants = Mapping[str | tuple[str, str], float]  # shared, or of an engine, a vendor, a source
Firsts = Mapping[str, Mapping[str, float]]
# The kernels of a factor, as `gpuplan.sizing.physics.serving.steps` adds them up.
KERNELS = {
    "matmul_factor": ("projection", "dense"),
    "attention_factor": ("attention", "state", "index", "gathered"),
    "expert_factor": ("expert",),
    "link_factor": ("all_reduce", "exchange", "transfer"),
    "elementwise_factor": ("elementwise",),
}
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
# Of each engine, in their order; `interference` is a part of a prompt's work, `captured` of the
# host's launches (CUDA graphs of prompts).
BY_ENGINE = {
    "layer_overhead": ([18e-6, 11e-6, 5e-6], 0.5),
    "routing_overhead": ([4e-6, 15e-6, 5e-6], 0.7),
    "step_overhead": ([2e-4, 6e-4, 4e-4], 0.5),
    "sequence_overhead": ([28e-6, 38e-6, 19e-6], 0.5),
    "scaling_overhead": ([12e-6, 1e-6, 3.5e-6], 0.7),
    "interference": ([1.2, 0.8, 1.1], 0.3),
    "eager_seconds": ([3e-4, 8e-4, 5e-4], 0.4),
    "captured": ([0.5, 0.5, 0.5], 0.7),
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


def _in_step(replica: Replica) -> tuple[float, float, float]:
    """Whether answers have one length, prompts of a full step, the part of it that tokens fill."""
    at_once = replica.modelled(1.0)
    part = min(1.0, at_once["default_step_tokens"] / at_once["input_mean"])
    return at_once["in_step"], at_once["step_prompts"], part


def _parts(step: dict[str, float]) -> list[float]:
    parts = (*KERNELS.values(), ("head",), ("roofline",))
    return [sum(step.get(f"{k}_seconds", 0.0) for k in p) for p in parts]


def _growth(
    step: tuple[dict[str, float], dict[str, float], dict[str, float] | None],
    decode: np.ndarray,
    prefill: np.ndarray,
) -> np.ndarray:
    """The kernels for which a prompt makes a decode step longer, as `steps.beside` of the sizing
    adds them up: those of its own, and what products of all prompts add, for each of them."""
    _, _, mixed = step
    if mixed is None:
        return prefill
    own = np.isin([*KERNELS, "", ""], ("attention_factor", "elementwise_factor"))
    products = (np.array(_parts(mixed)) - decode) / mixed["prompts_beside"]
    return np.where(own, prefill, products) * ([1.0] * (len(own) - 1) + [0.0])


class Points:
    """Features of served points, as arrays."""

    def __init__(self, pairs: list[tuple[Point, Served]]) -> None:
        points = [served for _, served in pairs]
        steps = [p.replica.steps(p.sequences) for p in points]
        decode, prefill = ([step for step, _, _ in steps], [step for _, step, _ in steps])
        self.engine = np.array([ENGINES.index(p.case.engine) for p in points])
        self.model = np.array([str(p.features["model"]) for p in points])
        self.gpu = np.array([p.case.gpu.identifier for p in points])
        self.source = np.array([str(p.features["source"]) for p in points])
        self.amd = np.array([p.case.gpu.vendor == "amd" for p in points])
        self.tuned = np.array([p.features["source"] in TUNED for p in points])
        self.beyond = np.array([d.get("beyond_graphs", 1.0) for d in prefill])
        self.unfused = np.array([d.get("unfused_exchanges", 0.0) for d in decode])
        engines, makers = zip(*((p.case.engine, p.case.gpu.vendor) for p in points), strict=True)
        releases = [str(p.features["version"]) for p in points]
        self.pieced = np.array([d.get("beyond_whole", 0.0) for d in decode])
        self.within = np.array([*map(scaled_within, engines, releases, makers)])
        self.untuned = np.array(["prompt_factor" in p.replica.scope for p in points])
        self.overlapped = np.array([*map(asynchronous, engines, releases)])
        self.dense = np.array([not d.get("expert_layers") for d in decode])
        self.latent = np.array([float("kv_rank" in d) for d in decode])
        self.seconds = np.array([point.value / 1e3 for point, _ in pairs])
        self.batch = np.array([p.sequences for p in points])
        self.stalled = self.batch * np.array([d["stalling_ranks"] for d in decode])
        self.share, self.uncached = (
            np.array([p.replica.scope[name].value for p in points])
            for name in ("burst_share", "uncached_burst")
        )
        self.at_random = np.array([p.replica.service.start.at_random for p in points])
        self.in_step, self.step_prompts, self.step_part = (
            np.array(values)
            for values in zip(*((_in_step(p.replica)) for p in points), strict=True)
        )
        self.output = np.array([p.replica.service.tokens.output_mean.value for p in points])
        self.decode = self._kernels(decode)
        self.prefill = self._kernels(prefill)
        self.full = self._kernels([p.replica.full_step for p in points])
        self.mixed = np.array([mixed is not None for _, _, mixed in steps])
        self.growth = np.array([*map(_growth, steps, self.decode, self.prefill)])
        counts = ("layer_pairs", "expert_layers", "", "sequences", "scaled_inputs")
        shared = ("block_inputs", "linear_layers")
        self.shared = np.array([[d.get(c, 0.0) for c in shared] for d in decode])
        launched = ("cached_layers", "expert_layers", "linear_layers", "index_layers")
        self.launched = np.array([[d.get(c, 0.0) for c in launched] for d in decode])
        self.counts = np.array([[d.get(c, 0.0) if c else 1.0 for c in counts] for d in decode])
        cells = by_cell([str(p.features["cell"]) for p in points], 0.25)
        self.weight = np.where([old(p) for p in points], 0.0, cells)

    @staticmethod
    def _kernels(steps: list[dict[str, float]]) -> np.ndarray:
        return np.array([*map(_parts, steps)])

    def times(
        self, constants: Constants, at: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Time per output token; a prefill's work, the same with overhead, and as the host lets it
        be; the work of a full step."""
        amd = self.amd[at]
        of_amd = {name: constants.get(("amd", name), 1.0) for name in KERNELS}
        factors = np.array([constants[n] * np.where(amd, own, 1.0) for n, own in of_amd.items()]).T
        shared = [constants["block_overhead"], constants["state_overhead"]]
        engine = {
            name: np.array([constants[name, e] for e in ENGINES])[self.engine[at]]
            for name in BY_ENGINE
        }
        slow = np.where(self.untuned[at], constants["amd", "untuned_prompts"], 1.0)
        works = [
            np.maximum(((k[at, :5] * factors).sum(1) + k[at, 5]) * times, k[at, 6])
            for k, times in (
                (self.decode, 1.0),
                (self.prefill, slow),
                (self.full, slow),
                (self.growth, slow),
            )
        ]
        eager = engine["eager_seconds"] * np.where(self.tuned[at], engine["captured"], 1.0)
        kinds = [1.0, *(constants[f"eager_{kind}"] for kind in ("experts", "state", "index"))]
        latent = constants["eager_latent"] * self.latent[at] * self.launched[at, 0]
        launch = eager * (self.launched[at] @ kinds + latent)
        started = constants["piece_seconds"] * self.launched[at] @ [1, 0, 1, 0]
        launch = np.minimum(launch, started + self.beyond[at] * launch)
        ending = np.maximum(self.stalled[at] / np.maximum(self.output[at], 1), 1e-4)
        together = -np.expm1(-ending) / ending
        counts = self.counts[at].T
        names = [name for name in BY_ENGINE if name.endswith("overhead")]
        slower = np.where(amd, constants["amd", "overhead"], 1.0)
        each = {name: slower * engine[name] for name in names}
        each["sequence_overhead"] = each["sequence_overhead"] * np.where(
            self.overlapped[at], constants["overlapped"], 1.0
        )
        scaling = constants["amd", "scaling_overhead"]
        scaling = np.where(amd, scaling, engine["scaling_overhead"])
        scaling = scaling * np.where(self.within[at], constants["scaled_within"], 1.0)
        each["scaling_overhead"] = scaling
        own = sum(each[name] * count for name, count in zip(names, counts, strict=True))
        own = own + self.shared[at] @ shared
        own = own + constants["latent_overhead"] * self.latent[at] * counts[0]
        own = own + slower * constants["unfused_seconds"] * self.unfused[at]
        host = each["sequence_overhead"] * counts[3]
        busy = works[1] + own - host
        decode, prefill = works[0] + own, np.maximum(busy, launch)
        decode = np.maximum(decode, self.pieced[at] * started + host)
        longer = together * np.maximum(launch - decode, 0)
        beside = engine["interference"] * np.where(amd, constants["amd", "interference"], 1.0)
        prompt = np.maximum(beside * works[3], longer)
        stall = (1 - self.share[at] / 2) * self.stalled[at] * prompt
        output = self.output[at]
        excess = stall + output * decode - prefill  # as `latency.TOKEN` of the sizing solves it
        token = (excess + np.sqrt(excess**2 + 4 * output * decode * prefill)) / (2 * output)
        return token, works[1], busy, prefill, works[2]


def fit_tokens(
    points: Points, at: np.ndarray, known: Constants = MappingProxyType({})
) -> Constants:
    """The constants of the points `at`, sought from the priors and from those `known`."""
    names, number = np.unique(points.source[at], return_inverse=True)
    sources = {("source", str(name)): (1.0, TOKEN_SOURCES) for name in names}

    def errors(constants: Constants) -> np.ndarray:
        own = np.log([constants[key] for key in sources])[number]
        logs = np.log(points.times(constants, at)[0] / points.seconds[at])
        return points.weight[at] * (logs + own)

    return fit(PRIORS | sources, errors, scale=0.1, starts=({}, known))


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
