"""MLPerf Training: samples per second, and the minutes until a benchmark's quality is reached.

A step of images or of BERT is its samples at a fraction of the dense bf16 peak, and an overhead;
language models have the step of `steps`. Samples to the target are those of the benchmark's
reference at the global batch, which is published before each round, times an excess that stands for
evaluation, start-up and how submitters tune, and takes up what the rates are wrong by.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

from gpuplan.accuracy.data.benchmarks import CONSTANTS
from gpuplan.accuracy.data.references import REFERENCES
from gpuplan.accuracy.metrics import rates, steps
from gpuplan.accuracy.points import settings
from gpuplan.accuracy.points.points import Case
from gpuplan.accuracy.points.submissions import Submission, submission
from gpuplan.accuracy.reckon import Prior, Reckoned
from gpuplan.plan.model import record
from gpuplan.sizing.calibration.anchors import Features, Term
from gpuplan.sizing.evidence.sheet import sheet
from gpuplan.sizing.hardware.measured import NotMeasured, generation

METRICS = (rates.LOGGED, "samples_per_s_per_gpu", "train_step_time")  # of MLPerf Training
GPT3_TOKENS = 2048  # a sample of gpt3-175b, whose logs count tokens
FLOP = {"bert": 0.62e12, "flux": 22.5e12, "sd": 2.4e12, "gpt3": 2.17e15}  # a sample: nominal
TINYGRAD, USUAL = "tinygrad", "usual"
STARTS = {
    "bert-large": "bert",
    "flux": "flux",
    "stable-diffusion": "sd",
    "gpt3": "gpt3",
    "llama2-70b": "llama2-70b",
    "llama3.1-8b": "llama3.1-8b",
    "llama3.1-405b": "llama3.1-405b",
}
GENERATIONS = frozenset(n.split(".")[1] for n in CONSTANTS if n.startswith("generation."))
STEP = sheet("""
    sample_seconds: s = sample_flop / (bf16_peak * fraction)
        # one GPU; fitted on public MLPerf Training results
    step_seconds: s = software * (global_batch / gpus * sample_seconds + step_overhead
        + scale_overhead * log2(max(1, gpus / 8)))
        # a step, and what grows with the GPUs; fitted likewise
    samples_per_second: 1/s = global_batch / step_seconds  # all GPUs
""")
CONVERGENCE = sheet("""
    samples_needed: 1 = reference_samples * excess * precision_samples
        # the reference's runs (rcp_checker of mlcommons/logging); excess fitted on submissions
    seconds_to_train: s = samples_needed / samples_per_second  # until the target quality
""")


@record
class Load:
    """A row of MLPerf Training; `software`, by which benchmarks that are no language models
    differ: "tinygrad", "preview" of a GPU to come, or "usual"."""

    benchmark: str
    gpus: int
    batch: float
    round: float
    software: str


def load(case: Case) -> Load | str:
    name = case.row["model"].lower()
    benchmark = next((b for start, b in STARTS.items() if name.startswith(start)), None)
    if benchmark is None:
        return f"no law of MLPerf Training for '{case.row['model']}'"
    gpus, batch = int(case.number("n_gpus", 1)), case.number("global_batch")
    if batch < 1:
        return "the global batch is not given"
    return Load(
        benchmark=benchmark,
        gpus=gpus,
        batch=batch,
        round=settings.mlperf_round(case),
        software=_software(case),
    )


def _software(case: Case) -> str:
    if TINYGRAD in case.row["engine"]:
        return TINYGRAD
    return "preview" if "preview" in case.row.get("source_path", "") else USUAL


def rate(case: Case, of: Load, c: Mapping[str, float] = CONSTANTS) -> float | str:
    """Samples per second of all GPUs. Raises `NotMeasured`."""
    if of.benchmark not in FLOP:
        step = steps.step(case)
        if isinstance(step, str):
            return step
        return step.setting.batch / step.seconds
    card, name = generation(case.gpu, "training", GENERATIONS), case.gpu.identifier
    if card is None:
        raise NotMeasured(case.gpu, "training")
    fraction = c.get(f"fraction.{of.benchmark}.{card.architecture}")
    if fraction is None:
        fraction = c[f"fraction.{of.benchmark}"] * c[f"generation.{card.architecture}"]
    scope = {
        "sample_flop": FLOP[of.benchmark],
        "bf16_peak": case.gpu.peak_bf16.value,
        "fraction": fraction * c.get(f"gpu.{name}", 1.0),
        "software": 1.0 if of.software == USUAL else c[f"software.{of.software}"],
        "global_batch": of.batch,
        "gpus": float(of.gpus),
        "step_overhead": c[f"overhead.{of.benchmark}"],
        "scale_overhead": c["overhead.scale"],
    }
    return STEP(scope)["samples_per_second"]


def needed(case: Case, of: Load, c: Mapping[str, float] = CONSTANTS) -> dict[str, float]:
    """What `CONVERGENCE` needs beside the rate."""
    return {
        "reference_samples": reference(of),
        "excess": c[f"excess.{of.benchmark}"],
        "precision_samples": c["samples.nvfp4"] if _fp4(case) else 1.0,
    }


def reference(of: Load) -> float:
    """Samples that the reference of the round takes at the batch: on lines between its batches, as
    the rules have it, and those of the nearest beyond them."""
    rounds = REFERENCES[of.benchmark]
    held = [means for name, means in rounds.items() if float(name) <= of.round]
    means = held[-1] if held else next(iter(rounds.values()))
    for (low, less), (high, more) in pairwise(means):
        if low <= of.batch <= high:
            return less + (more - less) * (of.batch - low) / (high - low)
    return float(means[0 if of.batch < means[0][0] else -1][1])


def _fp4(case: Case) -> bool:
    run = submission(case)
    return isinstance(run, Submission) and run.precision == "nvfp4"


def time_to_train(case: Case) -> Reckoned | str:
    """Minutes."""
    of = load(case)
    if isinstance(of, str):
        return of
    speed = rate(case, of)
    if isinstance(speed, str):
        return speed
    values = CONVERGENCE(needed(case, of) | {"samples_per_second": speed})
    return Reckoned(
        value=values["seconds_to_train"] / 60,
        quantity="time_to_train",
        features=features(case, of),
        sense="time",
    )


def throughput(case: Case) -> Reckoned | str:
    """Samples per second or seconds of a step of a benchmark; language models, other metrics and
    runs outside the benchmark by the law of language models."""
    if case.metric not in METRICS or settings.framework(case) != settings.MLPERF:
        return rates.throughput(case)
    of = load(case)
    if isinstance(of, str) or of.benchmark not in FLOP:
        return rates.throughput(case)
    speed = rate(case, of)
    if isinstance(speed, str):
        return speed
    if of.benchmark == "gpt3" and case.metric == rates.LOGGED:
        speed *= GPT3_TOKENS
    if case.metric == "samples_per_s_per_gpu":
        speed /= of.gpus
    slow = case.metric == "train_step_time"
    return Reckoned(
        value=of.batch / speed if slow else speed,
        quantity="benchmark_step" if slow else "benchmark_rate",
        features=features(case, of),
        sense="time" if slow else "rate",
    )


def features(case: Case, of: Load) -> Features:
    texts = {
        "benchmark": of.benchmark,
        "model": of.benchmark,
        "gpu": case.gpu.identifier,
        "generation": case.gpu.architecture,
        "round": f"{of.benchmark} {of.round:g}",
        "software": TINYGRAD if of.software == TINYGRAD else "other",
        "precision": "nvfp4" if _fp4(case) else "fp8",
    }
    numbers = {
        "log_gpus": math.log2(of.gpus),
        "log_batch": math.log2(of.batch),
        "log_share": math.log2(of.batch / of.gpus),
    }
    return texts | numbers


_REACHES = (
    (("benchmark", "gpu", "precision", "software"), True),
    (("benchmark", "generation"), True),
    (("benchmark",), False),
    ((), False),
)


def _prior(quantity: str, samples: float, noise: float) -> Prior:
    """`samples`: amplitude of what the samples to the target share."""

    def term(amplitude: float, same: str, *scales: tuple[str, float]) -> Term:
        return Term(amplitude=amplitude, same=tuple(same.split()), scales=scales)

    load = (("log_share", 1.5), ("log_gpus", 2.0))
    terms = [
        term(0.02, "benchmark"),
        term(0.04, "benchmark gpu"),
        term(0.03, "benchmark generation"),
        term(0.02, "gpu"),
        term(0.04, "benchmark gpu precision", *load),
        term(0.03, "benchmark generation", *load),
        term(0.10, "gpu software"),
        term(0.03, "round gpu"),  # a new GPU gains with each round
    ]
    if samples:
        terms += [
            term(samples, "round"),
            term(samples, "benchmark precision"),
        ]
    return Prior(quantity=quantity, terms=tuple(terms), noise=noise, reaches=_REACHES)


PRIORS = {
    "time_to_train": _prior("time_to_train", 0.02, 0.045),
    "benchmark_rate": _prior("benchmark_rate", 0.0, 0.042),
    "benchmark_step": _prior("benchmark_step", 0.0, 0.042),
}
