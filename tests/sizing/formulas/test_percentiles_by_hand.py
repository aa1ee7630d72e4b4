"""Percentiles of a service's times, followed by hand from what the latency sheet says of it."""

from __future__ import annotations

from math import exp, log, sqrt

import pytest

from gpuplan.plan.times import TIMES
from gpuplan.sizing.evidence.sheet import Sheet
from gpuplan.sizing.physics.serving.percentiles import with_statistics

# Half of a GPU's time goes to prompts; answers of 100 tokens mostly.
GIVEN = {
    "input_mean": 1000.0,
    "input_p95": 2000.0,
    "output_mean": 101.0,
    "output_p95": 202.0,
    "decoded_tokens": 100.0,
    "token_factor": 1.25,
    "decode_seconds": 0.016,
    "fuller_seconds": 0.018,
    "time_per_output_token": 0.03,
    "request_latency": 3.3,
    "replica_rate": 5.0,
    "prompt_step_seconds": 0.1,
    "prefill_load": 0.5,
    "earlier_seconds": 0.12,
    "backlog_seconds": 0.2,
    "stalled_seconds": 5.0,
    "first_token_seconds": 0.15,
    "first_prefill_factor": 1.1,
    "prefill_seconds": 0.1,
    "longest_prefill_seconds": 0.22,
    "queue_seconds": 0.07,
    "arrival_variation": 3.0,
}
NORMAL = {"p50": (0.0, 0.5), "p95": (1.645, 0.05), "p99": (2.326, 0.01)}


def sigma(mean: float, p95: float) -> float:
    """Of a log-normal with that mean and that 95th percentile."""
    return 1.645 - sqrt(max(1.645**2 - 2 * log(p95 / mean), 0))


def by_hand(dispersion: float, decoded: float) -> dict[str, float]:
    g = GIVEN
    prompts, answers = sigma(1000, 2000), sigma(101, 202)
    own = 1.25 * 0.016
    shared = 5.0 / (0.2 / sqrt(0.5) + 5.0)
    mean = 0.03 - own + 0.12 * (exp(shared * (1 + shared) * answers**2 / 2) - 1) / decoded
    prompt = 0.1 * exp(prompts**2 / 2)
    stalls = (
        dispersion * 5.0 * own * (prompt * exp(answers**2 / 2)) ** 2 / ((1 - 0.5) ** 3 * decoded)
    )
    waits = (2 / 0.5 - 1) * (0.12 * exp(shared * (1 + 2 * shared) * answers**2 / 2) / decoded) ** 2
    spread = sqrt(log(1 + (stalls + waits) / mean**2))
    of_answer = sqrt(
        dispersion * 5.0 * 101 * own * prompt**2 / (1 - 0.5) ** 3 + (2 / 0.5 - 1) * 0.12**2
    )
    expected = {"time_to_first_token_mean": 0.15 + 0.07}
    for name, (z, beyond) in NORMAL.items():
        pace = own + mean * exp(z * spread - spread**2 / 2)
        if name != "p50":
            beside = sqrt(2 / 3) * 1.25 * (0.018 - 0.016) * 0.03 / own
            pace = 0.03 + sqrt(max(pace - 0.03, 0) ** 2 + (z * beside) ** 2)
        expected[f"time_per_output_token_{name}"] = pace
        length = 1000 * exp(z * prompts - prompts**2 / 2)
        wait = 0.07 / 0.5 * max(log(0.5 / beyond), 0)
        if name == "p50":
            short = min(1.1 * 0.1 * (1 - length / 1000), 0.15)
            first = 0.15 + 0.07 - sqrt(short**2 + (0.07 - wait) ** 2)
        else:
            longer = 1.1 * (0.22 - 0.1) * (length - 1000) / (2000 - 1000)
            first = 0.15 + 0.07 + sqrt(longer**2 + (wait - 0.07) ** 2)
        expected[f"time_to_first_token_{name}"] = first
        tokens = 101 * exp(z * answers - answers**2 / 2)
        away = sqrt(
            ((tokens - 101) * 0.03) ** 2 + (z * of_answer) ** 2 + (first - 0.15 - 0.07) ** 2
        )
        expected[f"request_latency_{name}"] = g["request_latency"] + (-1 if z == 0 else 1) * away
    # What the latency sheet itself calls the time to first token is its 95th percentile.
    expected["time_to_first_token"] = expected.pop("time_to_first_token_p95")
    return expected


@pytest.mark.parametrize(
    ("bursts", "dispersion", "decoded"),
    [(False, 1.0, 100.0), (True, 3.0, 100.0), (False, 1.0, 0.5)],
)
def test_every_statistic_is_what_its_formula_says(
    bursts: bool, dispersion: float, decoded: float
) -> None:
    expected = by_hand(dispersion, decoded)
    first = expected["time_to_first_token"]
    given = GIVEN | {"time_to_first_token": first, "decoded_tokens": decoded}
    known = {"time_per_output_token", "time_to_first_token", "request_latency"}
    names = tuple(name for name in TIMES if name not in known)
    assert {*names, "time_to_first_token"} == {*expected}
    found = with_statistics(Sheet(()), names, bursts=bursts)(given)
    assert {name: found[name] for name in names} == pytest.approx(
        {name: expected[name] for name in names}, rel=1e-6
    )
