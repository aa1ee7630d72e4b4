"""How far predictions are from public measurements: median, 90th percentile, bias, coverage.

    PYTHONPATH=. python bench/accuracy.py CSV      # inference, training or memory points

Errors are of the prediction relative to the measurement. Coverage is the part of the measurements
inside the interval that the engine would print. What it cannot express is counted at the end.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from points import SDXL, Case, Served, read, served
from runs import STEP_INTERVALS, memories, speeds

from gpuplan.models.load import bundled
from gpuplan.models.model import Diffusion
from gpuplan.sizing.data import images as pictures
from gpuplan.sizing.data import serving as calibration

QUEUED_SECONDS = 3.0  # TTFT above it is the queue of a closed loop


@dataclass(frozen=True, slots=True)
class Score:
    """One point: error in the logarithm, and whether the interval holds the measurement (None: the
    engine prints none)."""

    metric: str
    case: Case
    error: float
    covered: bool | None


def score(
    metric: str, case: Case, predicted: float, measured: float, factors: tuple[float, float] | None
) -> Score:
    inside = None
    if factors is not None:
        inside = predicted * factors[0] <= measured <= predicted * factors[1]
    return Score(metric, case, math.log(predicted / measured), inside)


def token_seconds(point: Served) -> float:
    work = point.prefill["work_seconds"] * point.concurrency / point.output
    return point.decode["seconds"] + point.decode["interference"] * work


def first_seconds(point: Served) -> float:
    """Mean TTFT of a closed loop, which starts with a burst of all its requests."""
    d = point.decode
    burst = calibration.FIRST[point.case.engine]["burst_factor"]
    return (
        d["first_overhead"]
        + d["first_prefill_factor"] * point.prefill["seconds"]
        + d["first_step_factor"] * token_seconds(point)
        + (d["first_sequence_overhead"] + burst * point.prefill["work_seconds"]) * point.concurrency
    )


def serving_scores(cases: list[Case]) -> Iterator[Score]:
    tokens = {_key(p.case): p for p in served(cases, ("tpot",))}
    for point in tokens.values():
        seconds = point.case.value / 1e3
        family = "moe" if point.decode.get("expert_layers") else "dense"
        basis = "calibrated" if point.measured else "extrapolated"
        factors = calibration.INTERVALS["time_per_output_token", family, basis]
        yield score("TPOT", point.case, token_seconds(point), seconds, factors)
    for point in served(cases, ("ttft",)):
        seconds = point.case.value / 1e3
        if seconds > QUEUED_SECONDS:
            continue
        basis = "calibrated" if point.measured else "extrapolated"
        factors = calibration.INTERVALS["time_to_first_token", point.case.engine, basis]
        yield score("TTFT under 3 s", point.case, first_seconds(point), seconds, factors)
        if (pair := tokens.get(_key(point.case))) is not None:
            yield _output(point, pair)


def _output(first: Served, token: Served) -> Score:
    """Output tokens per second of a closed loop, from both times."""

    def rate(ttft: float, tpot: float) -> float:
        return first.concurrency * first.output / (ttft + tpot * (first.output - 1))

    predicted = rate(first_seconds(first), token_seconds(first))
    return score(
        "output tokens/s",
        first.case,
        predicted,
        rate(first.case.value / 1e3, token.case.value / 1e3),
        None,
    )


def _key(case: Case) -> tuple[str, ...]:
    columns = ("model", "precision", "gpu", "tp", "ep", "dp", "input_len", "output_len", "batch")
    return (*(case.row[c] for c in columns), case.row["engine"], case.row["locator"].split("#")[0])


def picture_scores(cases: list[Case]) -> Iterator[Score]:
    model = bundled(SDXL)
    assert isinstance(model, Diffusion)
    flop = 20 * model.passes_per_step * model.flop_per_step + model.flop_fixed
    for case in cases:
        low = case.gpu.peak_fp8
        if case.metric != "mlperf_offline_samples_per_s" or low is None:
            continue
        part = pictures.UNET_LOW.get(case.gpu.identifier, pictures.UNET_LOW_OTHER)
        predicted = case.number("n_gpus", 1) * low.value * part / flop
        known = case.gpu.identifier in pictures.CALIBRATED_GPUS
        low_factor, high_factor = pictures.INTERVALS["calibrated" if known else "extrapolated"]
        factors = (1 / high_factor, 1 / low_factor)
        yield score("SDXL images/s", case, predicted, case.value, factors)


def training_scores(cases: list[Case]) -> Iterator[Score]:
    for case, predicted, basis in speeds(cases):
        low, high = STEP_INTERVALS[basis]
        step = case.metric == "step_time"
        factors = (low, high) if step else (1 / high, 1 / low)
        name = "step time" if step else "training tokens/s/GPU"
        yield score(name, case, predicted, case.value, factors)


def memory_scores(cases: list[Case]) -> Iterator[Score]:
    for case, predicted in memories(cases):
        unit = 2**30 if "GiB" in case.row["unit"] else 1e9
        yield score("training memory", case, predicted, case.value * unit, None)


def kind(scored: Score) -> str:
    model = scored.case.model
    if isinstance(model, Diffusion):
        return "diffusion"
    return "mixture" if model.experts else "dense"


def table(scores: list[Score]) -> None:
    views: tuple[tuple[str, Callable[[Score], str]], ...] = (
        ("", lambda s: s.metric[:0]),
        ("kind", kind),
        ("GPU", lambda s: s.case.gpu.identifier),
        ("engine", lambda s: s.case.engine.split()[0]),
        ("model", lambda s: s.case.model.identifier),
    )
    print(f"{'':46}    n  MdAPE    P90   bias  covered")
    for metric in sorted({s.metric for s in scores}):
        for view, key in views:
            groups: defaultdict[str, list[Score]] = defaultdict(list)
            for s in scores:
                if s.metric == metric:
                    groups[key(s)].append(s)
            for name, group in sorted(groups.items()):
                print(f"{metric if not view else '  ' + view + ' ' + name:46} {line(group)}")


def line(group: list[Score]) -> str:
    sizes = sorted(abs(math.expm1(s.error)) for s in group)
    ninety = sizes[min(len(sizes) - 1, int(0.9 * len(sizes)))]
    bias = math.expm1(statistics.median(s.error for s in group))
    covered = [s.covered for s in group if s.covered is not None]
    part = f"{sum(covered) / len(covered):8.0%}" if covered else "       –"
    return f"{len(group):4} {statistics.median(sizes):6.1%} {ninety:6.1%} {bias:+6.1%} {part}"


def scores_of(path: Path) -> tuple[list[Score], dict[str, int]]:
    cases, left = read(path)
    scores = [*serving_scores(cases), *picture_scores(cases)]
    scores += [*training_scores(cases), *memory_scores(cases)]
    used = {id(s.case) for s in scores}
    for case in cases:
        if id(case) not in used:
            left[f"not expressed: {case.metric}"] += 1
    return scores, dict(left)


def main(path: str) -> None:
    scores, left = scores_of(Path(path))
    table(scores)
    print("left out:", ", ".join(f"{n} {reason}" for reason, n in sorted(left.items())))


if __name__ == "__main__":
    main(sys.argv[1])
