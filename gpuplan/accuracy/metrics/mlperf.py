"""Language models in MLPerf Inference, data center: throughput of the offline, server and
interactive scenarios, and the latencies of the last two.

Parallelism is not published: the fastest division that fits is taken. Submitters' logs label
engines by the precision of the reference or of the round before, so a 16-bit label of NVIDIA's says
nothing, and an 8-bit one nothing on a GPU that computes in 4.
"""

from __future__ import annotations

import re

from gpuplan.accuracy.data.mlperf import BENCHMARKS, UNKNOWN, Benchmark, Limit
from gpuplan.accuracy.data.offline import CONSTANTS, LATENCY
from gpuplan.accuracy.metrics.offline import language_model
from gpuplan.accuracy.points.formats import computed, quantized, weights
from gpuplan.accuracy.points.points import Case
from gpuplan.accuracy.protocols.ranks import Numbers, runner
from gpuplan.accuracy.protocols.throughput import Pace, queued
from gpuplan.accuracy.reckon import Prior, Reckoned
from gpuplan.models.identity import identity
from gpuplan.models.model import Transformer
from gpuplan.plan.model import record
from gpuplan.sizing.calibration.anchors import Features, Term
from gpuplan.sizing.calibration.gaussian import NOBODYS
from gpuplan.sizing.physics.serving.service import Division, Formats
from gpuplan.units import MILLISECOND
from gpuplan.vendors import NVIDIA

ENGINE = "tensorrt-llm"  # tuned submissions: its kernels
LARGEST_BATCH = 3072.0
TENSOR_PARALLEL = (1, 2, 4, 8)
LATENT_RANKS = 8  # attention data parallelism of compressed caches
INTERACTIVE = "interactive"
# Half a year apart. With each the same GPUs write faster, by their software; one factor a round is
# fitted on all, though they gain unequally: MI300X 16 % from 4.1 to 5.1, B200 2 % from 5.1 to 6.0.
ROUNDS = ("4.0", "4.1", "5.0", "5.1", "6.0")
MIDDLE = ROUNDS.index("5.1")  # the round that the other constants are of
_GPUS = re.compile(r"\d+x(MI\d{3}X|[ABH]\d{3}|L\d+S?)")  # in the name of a system
HELD = 0.6  # of the output stands in the cache on average


@record
class Run:
    """A scenario of a benchmark on a system; `pace` is of one GPU."""

    case: Case
    model: Transformer
    benchmark: Benchmark
    scenario: str
    limit: Limit | None
    formats: Formats
    output: float
    gpus: float
    pace: Pace


def tokens(case: Case, constants: Numbers = CONSTANTS["mlperf"]) -> Reckoned | str:
    """Output tokens per second of the whole system."""
    run = _run(case, constants)
    if isinstance(run, str):
        return run
    share = _share(run, constants) * run.gpus
    return _throughput(run, run.pace.rate * share, run.pace.best * run.gpus)


def samples(case: Case, constants: Numbers = CONSTANTS["mlperf"]) -> Reckoned | str:
    """Prompts per second of the whole system; all beams of a prompt are generated."""
    run = _run(case, constants)
    if isinstance(run, str):
        return run
    each = run.gpus / (run.output * run.benchmark.beams)
    return _throughput(run, run.pace.rate * _share(run, constants) * each, run.pace.best * each)


def _throughput(run: Run, value: float, best: float) -> Reckoned:
    return Reckoned(
        value=value,
        quantity="mlperf_throughput",
        features=_features(run, run.scenario),
        best=best,
        sense="rate",
    )


def token_latency(case: Case) -> Reckoned | str:
    """Milliseconds for an output token: mean, or 99th percentile. Of as many sequences as its own
    limit leaves: submissions that wait for first tokens still write near it."""
    run = _run(case, CONSTANTS["mlperf"], waits=False)
    if isinstance(run, str):
        return run
    factor = LATENCY[f"token_{_statistic(case)}"]
    return Reckoned(
        value=factor * run.pace.token_seconds / MILLISECOND,
        quantity="mlperf_token_latency",
        features=_features(run, f"{run.scenario} {_statistic(case)}"),
    )


def first_latency(case: Case) -> Reckoned | str:
    """Milliseconds to the first token: mean, or 99th percentile."""
    run = _run(case, CONSTANTS["mlperf"])
    if isinstance(run, str):
        return run
    c = LATENCY
    work = c["first_prompts"] * run.pace.prompt_seconds + c["first_steps"] * run.pace.token_seconds
    return Reckoned(
        value=c[f"first_{_statistic(case)}"] * work / MILLISECOND,
        quantity="mlperf_first_latency",
        features=_features(run, f"{run.scenario} {_statistic(case)}"),
    )


def _statistic(case: Case) -> str:
    return "p99" if case.metric.endswith("p99") else "mean"


def _run(case: Case, constants: Numbers, *, waits: bool = True) -> Run | str:
    """`waits`: the limit on first tokens holds, too."""
    model = language_model(case)
    if len(set(_GPUS.findall(case.row.get("source_path", "")))) > 1:
        return "a system of several kinds of GPU"
    if _round(case) not in ROUNDS:
        return f"no round of MLPerf Inference is named; known are {', '.join(ROUNDS)}"
    benchmark = BENCHMARKS.get(case.row["model"], UNKNOWN)
    scenario = _scenario(case)
    limit = benchmark.limits.get(scenario)
    prompt = case.number("input_len") or benchmark.input_tokens
    output = case.number("output_len") or benchmark.output_tokens
    if not (prompt > 0 and output > 0):
        return f"mean lengths of {case.row['model']} in MLPerf are not known"
    gpus = case.number("n_gpus", 1)
    gpu, low = case.gpu, _low(case)
    paces = [
        queued(
            runner(model, gpu, ENGINE, low, division),
            constants,
            prompt=prompt,
            output=output,
            most=LARGEST_BATCH,
            held=HELD,
            limit=limit.token_seconds * constants["pacing"] if limit else None,
            first=limit.first_seconds if limit and waits else None,
            beams=benchmark.beams,
        )
        for division in _divisions(model, gpus)
    ]
    fitting = [pace for pace in paces if pace is not None]
    if not fitting:
        return f"{case.row['model']} does not fit {gpus:.0f} of these GPUs"
    return Run(
        case=case,
        model=model,
        benchmark=benchmark,
        scenario=scenario,
        limit=limit,
        formats=low,
        output=output,
        gpus=gpus,
        pace=max(fitting, key=lambda pace: pace.rate),
    )


def _divisions(model: Transformer, gpus: float) -> list[Division]:
    if model.latent is not None and gpus >= LATENT_RANKS:
        spread = Division(tensor_parallel_size=1, data_parallel_size=LATENT_RANKS)
        return [spread, Division(tensor_parallel_size=LATENT_RANKS)]
    return [Division(tensor_parallel_size=t) for t in TENSOR_PARALLEL if t <= gpus]


def _low(case: Case) -> Formats:
    """What really ran: fp8 where a 16-bit label hides it, 4 bits where the GPU has them."""
    named, model, gpu = weights(case.precision), language_model(case), case.gpu
    if named == "bf16" and gpu.vendor == NVIDIA:
        named = "fp8"
    if named == "fp8" and gpu.peak_fp4 is not None:
        named = "nvfp4"
    if named in ("int4", "int8"):
        named = computed(gpu, "fp8")
    if named == "nvfp4" and gpu.peak_fp4 is None:
        named = "fp8"
    return quantized(model, gpu, named)


def _scenario(case: Case) -> str:
    """Of a throughput, the metric tells it; of a latency, the notes."""
    match = re.search(r"scenario=(\w+)", case.row["notes"])
    text = case.metric if case.metric.endswith("_per_s") or not match else match[1].lower()
    return next((s for s in (INTERACTIVE, "offline") if s in text), "server")


def _share(run: Run, constants: Numbers) -> float:
    """Of the throughput by the kernels: what the limits leave where requests come at random, and
    what the software of the round gains."""
    later = ROUNDS.index(_round(run.case)) - MIDDLE
    return (constants[run.scenario] if run.limit else 1.0) * constants["round_gain"] ** later


def _features(run: Run, what: str) -> Features:
    case, who = run.case, identity(run.model)
    gpu, low = case.gpu.identifier, run.formats.experts
    stack = (case.row["engine"].split() or ["?"])[0]
    cell = f"{who}|{gpu}|{low}"
    return {
        "model": who,
        "gpu": gpu,
        "generation": case.gpu.architecture,
        "benchmark": f"{who}|{what}",
        "makers_benchmark": f"{case.gpu.vendor}|{who}|{what}",
        "cell": cell,
        "software": f"{cell}|{stack}",
        "point": f"{cell}|{what}",
        "kind": "samples" if "samples" in case.metric else run.scenario,
        # What the narrowest limits leave differs from stack to stack.
        "limited": f"{cell}|{what}" if run.scenario == INTERACTIVE else NOBODYS,
        "round": f"{case.gpu.vendor}|{run.scenario}|{_round(case)}",
    }


def _round(case: Case) -> str:
    match = re.search(r"Inference v([\d.]+)", case.row["notes"])
    return match[1] if match else "?"


_REACHES = (
    (("point",), True),
    (("cell",), True),
    (("model",), True),
    (("gpu",), False),
    ((), False),
)
_PRIORS = (
    Prior(
        quantity="mlperf_throughput",
        terms=(
            Term(amplitude=0.06, same=("model",)),
            Term(amplitude=0.05, same=("generation",)),
            Term(amplitude=0.10, same=("gpu",)),
            Term(amplitude=0.30, same=("cell",)),
            Term(amplitude=0.04, same=("benchmark",)),
            Term(amplitude=0.04, same=("makers_benchmark",)),
            Term(amplitude=0.10, same=("software",)),
            Term(amplitude=0.10, same=("point",)),
            Term(amplitude=0.08, same=("round",)),
            Term(amplitude=0.12, same=("limited",)),
        ),
        noise=0.06,
        reaches=_REACHES,
        by="kind",
        least=1.1,
    ),
    Prior(
        quantity="mlperf_token_latency",
        terms=(
            Term(amplitude=0.15, same=("benchmark",)),
            Term(amplitude=0.15, same=("makers_benchmark",)),
            Term(amplitude=0.10, same=("cell",)),
            Term(amplitude=0.10, same=("point",)),
        ),
        noise=0.08,
        reaches=_REACHES,
        least=0.9,
    ),
    Prior(
        quantity="mlperf_first_latency",
        terms=(
            Term(amplitude=0.4, same=("benchmark",)),
            Term(amplitude=0.4, same=("makers_benchmark",)),
            Term(amplitude=0.2, same=("cell",)),
            Term(amplitude=0.2, same=("point",)),
        ),
        noise=0.2,
        reaches=_REACHES,
    ),
)
PRIORS = {prior.quantity: prior for prior in _PRIORS}
