"""Objectives at percentiles: which decides, what is printed of it, and what cannot be predicted."""

from __future__ import annotations

import math
import random
import re
from statistics import NormalDist
from typing import Any, cast

import pytest

from gpuplan.errors import Rejected
from gpuplan.plan.times import PLAIN, STATISTICS, TIMES, field_of, in_words, time_name
from gpuplan.plan.workload import Workload
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.kinds.images.load import latencies
from gpuplan.sizing.physics.images.sizes import SIZES
from tests.support.sizing_cases import CHAT_8B, IMAGES, site, size, wanted

LARGE = IMAGES.replace("mean: 1024x1024", "mean: 1024x1024, p95: 1536x1536")


def answer(text: str, *gpus: str) -> Sized | str:
    """The workload, or the label of why there is none."""
    sized = size(wanted(text), site(*(gpus or ("h100-sxm-80gb",)), node_count=1000))
    return sized if isinstance(sized, Sized) else sized[0].label


def work(text: str) -> Workload:
    sized = answer(text)
    assert isinstance(sized, Sized), sized
    return sized.workload


def slo(objectives: str, text: str = CHAT_8B) -> str:
    return f"{text}    slo: {{{objectives}}}\n"


def test_a_bare_duration_is_the_statistic_that_is_named() -> None:
    for time, statistic in PLAIN.items():
        bare = work(slo(f"{time}: 9 s"))
        assert work(slo(f"{time}: {{{statistic}: 9 s}}")) == bare
        (metric,) = [m for m in bare.metrics if m.name == time]
        assert (metric.statistic, metric.limit) == (statistic, 9)


@pytest.mark.parametrize("time", PLAIN)
def test_every_percentile_is_predicted_and_they_are_in_order(time: str) -> None:
    limits = ", ".join(f"{s}: 99 s" for s in STATISTICS)
    metrics = {m.name: m for m in work(slo(f"{time}: {{{limits}}}")).metrics}
    named = {s: metrics[time_name(time, s)] for s in STATISTICS}
    assert all(named[s].statistic == s and named[s].limit == 99 for s in STATISTICS)
    values = [named[s].estimate.value for s in ("p50", "p95", "p99")]
    assert values == sorted(set(values))
    assert named["p50"].estimate.value <= named["mean"].estimate.value * 1.001
    assert named["mean"].estimate.value < named["p99"].estimate.value


@pytest.mark.parametrize("name", [n for n in TIMES if n not in PLAIN])
def test_the_strictest_decides(name: str) -> None:
    """A limit that few sequences meet takes more replicas than a loose one, and is met."""
    time, statistic = TIMES[name]
    loose = work(slo(f"{time}: {{{statistic}: 99 s}}"))
    (metric,) = [m for m in loose.metrics if m.name == name]
    tight = metric.estimate.value * 0.9 * metric.estimate.high / metric.estimate.value
    loose_one = "p50" if statistic == "mean" else "mean"
    asked = f"{time}: {{{statistic}: {tight:.6f} s, {loose_one}: 99 s}}"
    found = answer(slo(asked))
    if isinstance(found, str):
        assert name in found
        return
    (kept,) = [m for m in found.workload.metrics if m.name == name]
    assert kept.probability is not None
    assert kept.probability >= 0.8 - 1e-3
    assert found.workload.gpu_count >= loose.gpu_count
    alone = work(slo(f"{time}: {{{statistic}: {tight:.6f} s}}"))
    assert found.workload.gpu_count == alone.gpu_count


def test_a_tight_percentile_takes_more_gpus_than_its_mean() -> None:
    busy = {f"load.requests_per_second.{part}": 400.0 for part in ("mean", "peak")}
    gpus = []
    for limits in ("{mean: 11 ms}", "{mean: 11 ms, p95: 11 ms}", "{mean: 11 ms, p99: 11 ms}"):
        asked = wanted(slo(f"time_per_output_token: {limits}"), numbers=busy)
        sized = size(asked, site("h100-sxm-80gb", node_count=1000))
        assert isinstance(sized, Sized), sized
        gpus.append(sized.workload.gpu_count)
    assert gpus[0] < gpus[1] < gpus[2]


def test_what_cannot_be_met_names_the_percentile_as_it_is_written() -> None:
    label = answer(slo("time_to_first_token: {p99: 1 ms}"))
    assert isinstance(label, str)
    assert re.search(r"time_to_first_token_p99: \d\d(\.\d)? ms where 1 ms is asked", label)
    sized = size(
        wanted(slo("time_to_first_token: {p99: 1 ms}")), site("h100-sxm-80gb", node_count=1000)
    )
    assert not isinstance(sized, Sized)
    assert "slo.time_to_first_token.p99 " in sized[0].help


def test_names_and_words() -> None:
    assert field_of("time_to_first_token_p99") == "slo.time_to_first_token.p99"
    assert field_of("time_to_first_token") == "slo.time_to_first_token"
    assert in_words("time_to_first_token") == "time to first token p95"
    assert in_words("time_per_output_token") == "mean time per output token"
    assert in_words("request_latency_p50") == "request latency p50"
    assert in_words("gpu_memory") == "gpu memory"


# --- images ---------------------------------------------------------------------------------------


def waits(load: float, count: int = 200_000) -> list[float]:
    """Of an M/D/1 queue with a service time of 1, by Lindley's recursion."""
    drawn, wait, found = random.Random(3), 0.0, []
    for _ in range(count):
        wait = max(0.0, wait + 1 - drawn.expovariate(load))
        found.append(wait)
    return sorted(found)


@pytest.mark.parametrize("load", [0.3, 0.5, 0.7, 0.9])
def test_percentiles_of_images_are_those_of_a_simulated_queue(load: float) -> None:
    """Within 20 % of the latency."""
    demand = cast(Any, wanted(IMAGES.replace("15 s", "{mean: 9 s, p50: 9 s, p95: 9 s, p99: 9 s}")))
    times = latencies(demand, {"batch_seconds": 1.0}, load)
    simulated = waits(load)
    mean = sum(simulated) / len(simulated)
    assert times["request_latency"] == pytest.approx(1 + mean, rel=0.05)
    for name, part in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        wait = simulated[math.ceil(part * len(simulated)) - 1]
        assert times[f"request_latency_{name}"] == pytest.approx(1 + wait, rel=0.2), name


def test_a_percentile_of_images_takes_replicas() -> None:
    mean, tail = (work(IMAGES.replace("15 s", t)) for t in ("{mean: 9 s}", "{p99: 9 s}"))
    assert tail.replicas > mean.replicas
    (metric,) = [m for m in tail.metrics if m.name == "request_latency_p99"]
    assert metric.statistic == "p99"
    assert metric.estimate.value <= 9
    assert metric.probability is not None
    assert metric.probability >= 0.8 - 1e-3


def test_a_large_image_is_part_of_the_95th_percentile() -> None:
    same, spread = (work(t.replace("15 s", "{p95: 60 s}")) for t in (IMAGES, LARGE))
    value = {
        w.replicas: next(m for m in w.metrics if m.name == "request_latency_p95")
        for w in (same, spread)
    }
    numbers = {
        e.quantity.removeprefix("work."): e.value
        for e in cast(Sized, answer(LARGE.replace("15 s", "{p95: 60 s}"))).evidence
    }
    assert numbers["large.batch_seconds"] > 2 * numbers["batch_seconds"]
    assert value[spread.replicas].estimate.value > numbers["large.batch_seconds"]


def sojourns(sizes: list[float], load: float, count: int = 200_000) -> list[float]:
    """Times in an M/G/1 queue whose services are drawn from `sizes`, by Lindley's recursion."""
    drawn, wait, found = random.Random(5), 0.0, []
    rate = load * len(sizes) / sum(sizes)
    for _ in range(count):
        service = drawn.choice(sizes)
        found.append(wait + service)
        wait = max(0.0, wait + service - drawn.expovariate(rate))
    return sorted(found)


@pytest.mark.parametrize("load", [0.1, 0.4, 0.7])
@pytest.mark.parametrize(("large", "seconds"), [("1280x1280", 1.8), ("2048x2048", 6.5)])
def test_percentiles_of_several_sizes_are_those_of_a_simulated_queue(
    large: str, seconds: float, load: float
) -> None:
    """Within 20 % of the latency. Sizes are drawn from log-normals found by hand."""
    limits = "{mean: 9 s, p50: 9 s, p95: 9 s, p99: 9 s}"
    text = LARGE.replace("1536x1536", large).replace("15 s", limits)
    demand = cast(Any, wanted(text))
    pixels, largest = demand.pixels_mean.value, demand.pixels_p95.value
    power = math.log(seconds) / math.log(largest / pixels)
    middles = [NormalDist().inv_cdf((n + 0.5) / 10) for n in range(10)]
    spread = {"1280x1280": 0.29439, "2048x2048": 1.20233}[large]
    sizes = [math.exp(z * spread) for z in middles]
    mean_size = sum(sizes) / 10
    assert max(sizes) / mean_size == pytest.approx(largest / pixels, rel=1e-3)
    drawn = sojourns([(size / mean_size) ** power for size in sizes], load)
    values = {"batch_seconds": 1.0, "large_seconds": seconds, "size_sigma": spread}
    values |= {"pixels": pixels, "largest_pixels": largest}
    times = latencies(demand, SIZES(values), load)
    assert times["request_latency"] == pytest.approx(sum(drawn) / len(drawn), rel=0.05)
    for name, part in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        seen = drawn[math.ceil(part * len(drawn)) - 1]
        assert times[f"request_latency_{name}"] == pytest.approx(seen, rel=0.2), name


@pytest.mark.parametrize("statistic", ["p50", "p95", "p99"])
def test_a_percentile_of_several_sizes_decides(statistic: str) -> None:
    found = work(LARGE.replace("15 s", f"{{{statistic}: 30 s}}"))
    (metric,) = [m for m in found.metrics if m.name == f"request_latency_{statistic}"]
    assert metric.estimate.value <= 30
    assert metric.probability is not None
    assert metric.probability >= 0.8 - 1e-3
    mean = next(m for m in found.metrics if m.name == "request_latency")
    assert (metric.estimate.value > mean.estimate.value) is (statistic != "p50")


def test_large_images_take_from_what_a_replica_serves() -> None:
    same, spread = (work(t.replace("15 s", "60 s")) for t in (IMAGES, LARGE))
    rate = [
        next(m for m in w.metrics if m.name == "images_per_second").estimate.value / w.replicas
        for w in (same, spread)
    ]
    assert rate[1] < rate[0]


def test_sizes_too_far_apart_are_refused() -> None:
    with pytest.raises(Rejected) as refused:
        wanted(LARGE.replace("1536x1536", "4096x4096"))
    (problem,) = refused.value.diagnostics
    assert problem.rule == "GP012"
    assert "images whose sizes are so far apart" in problem.message
    assert "two workloads" in problem.help


def test_an_image_that_is_too_slow_alone_names_the_percentile() -> None:
    label = answer(IMAGES.replace("15 s", "{mean: 60 s, p99: 1 s}"))
    assert isinstance(label, str)
    assert "request_latency_p99: 4.39 s where 1 s is asked" in label
