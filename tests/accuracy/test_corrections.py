"""What measured points say of the formulas, and how far that reaches."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.accuracy.fit.anchor_file import written
from gpuplan.accuracy.fit.calibrate import calibrate, solve
from gpuplan.accuracy.points.points import Point
from gpuplan.accuracy.reckon import Prior, Reckoned, corrected
from gpuplan.sizing.ask.demand import LanguageDemand
from gpuplan.sizing.calibration.anchors import Field, Term, read
from gpuplan.sizing.calibration.corrections import Corrected, record_correction
from gpuplan.sizing.evidence.formula import Ledger
from tests.support.sizing_cases import CHAT_8B, CHAT_70B, DEEPSEEK, replica, wanted

PRIOR = Prior(
    quantity="speed",
    terms=(
        Term(amplitude=0.1, same=("engine",)),
        Term(amplitude=0.2, same=("cell",), scales=(("batch", 2.0),)),
    ),
    noise=0.02,
    reaches=((("cell",), True), (("engine",), False), ((), False)),
)


def point(cell: str, batch: float, ratio: float, engine: str = "vllm") -> tuple[Point, Reckoned]:
    """A measurement `ratio` times what the formulas say, 10."""
    name = f"{cell}-{batch}"
    features = {"engine": engine, "cell": cell, "batch": batch}
    reckoned = Reckoned(value=10.0, quantity="speed", features=features)
    return Point(identifier=name, metric="m", value=10 * ratio, group=name, case=""), reckoned


def field(*ratios: float) -> Field:
    """Points of one cell at batches 0, 1, 2, …"""
    return solve([point("here", float(n), r) for n, r in enumerate(ratios)], PRIOR)


HERE = {"engine": "vllm", "cell": "here", "batch": 1.0}
FAR = {"engine": "other", "cell": "there", "batch": 1.0}


def test_near_points_the_prediction_is_theirs() -> None:
    found = field(1.2, 1.2, 1.2).correction(HERE)
    assert found.factor == pytest.approx(1.2, abs=0.01)
    assert found.known
    assert [a.identifier for a in field(1.2, 1.2, 1.2).nearest(HERE)] == [
        "here-1.0",
        "here-0.0",
        "here-2.0",
    ]


def test_far_from_any_point_nothing_is_corrected_and_the_interval_is_wide() -> None:
    anchors = field(1.2, 1.2, 1.2)
    near, far = anchors.correction(HERE), anchors.correction(FAR)
    assert far.factor == 1
    assert not far.known
    assert not anchors.nearest(FAR)
    assert far.high / far.low > 1.2 * near.high / near.low


def test_the_correction_fades_with_the_distance_in_load() -> None:
    anchors = field(1.2, 1.2, 1.2)
    factors = [anchors.correction(HERE | {"batch": b}).factor for b in (1.0, 4.0, 7.0, 20.0)]
    assert factors == sorted(factors, reverse=True)
    assert factors[-1] < 1.1


def test_several_loads_at_once_are_what_each_gives() -> None:
    anchors = field(1.2, 1.1, 1.3, 0.9)
    loads = [0.0, 0.5, 3.0, 9.0]
    one_by_one = [anchors.mean(HERE | {"batch": b}) for b in loads]
    assert [*map(anchors.along(HERE, "batch"), loads)] == pytest.approx(one_by_one, abs=1e-12)
    assert [*map(anchors.along(FAR, "batch"), loads)] == [0, 0, 0, 0]


def test_one_wild_point_does_not_carry_the_others_along() -> None:
    calm, wild = field(1.0, 1.0, 1.0, 1.0), field(1.0, 1.0, 1.0, 2.0)
    assert wild.correction(HERE).factor < 1.03 * calm.correction(HERE).factor


def test_effects_make_the_factor() -> None:
    anchors = field(1.2, 1.1, 1.3)
    total = math.fsum(e.value for e in anchors.effects(HERE))
    assert math.exp(total) == pytest.approx(anchors.correction(HERE).factor, rel=1e-5)
    assert anchors.effects(FAR) == []


def test_the_nearest_points_are_told_with_what_was_measured_over_what_formulas_say() -> None:
    ledger = Ledger("work")
    record_correction(ledger, "token", field(1.2, 1.1, 1.3), HERE)
    told = {n: e.value for n, e in ledger.entries.items() if "nearest" in n}
    assert [*told] == [f"work.token_nearest.{n}" for n in (1, 2, 3)]
    assert [*told.values()] == pytest.approx([1.1, 1.2, 1.3])
    assert record_correction(ledger, "far", field(1.2), FAR).value == 1


def test_a_file_holds_the_field() -> None:
    anchors = calibrate([point("here", float(n), 1.1) for n in range(8)], PRIOR)
    again = read(written(anchors))
    for features in (HERE, FAR):
        before, after = anchors.correction(features), again.correction(features)
        assert after.factor == pytest.approx(before.factor, rel=1e-5)
        assert after.high == pytest.approx(before.high, rel=1e-3)
        nearest = [[a.identifier for a in f.nearest(features)] for f in (anchors, again)]
        assert nearest[0] == nearest[1]


def test_no_correction_goes_beyond_the_roofline() -> None:
    anchors = field(0.5, 0.5, 0.5)
    time = Reckoned(value=10.0, quantity="speed", features=HERE, best=8.0, sense="time")
    assert corrected(time, anchors).low == corrected(time, anchors).value == 8
    rate = replace(time, sense="rate", best=4.0)
    assert corrected(rate, anchors).value == 4


loads = st.floats(0.1, 500)


@settings(max_examples=60)
@given(
    st.sampled_from((CHAT_8B, CHAT_70B, DEEPSEEK)),
    st.sampled_from(("l40s", "h100-sxm-80gb", "h200-sxm-141gb", "b200-sxm-180gb")),
    st.sampled_from((1, 2, 4, 8)),
    loads,
    loads,
)
def test_a_corrected_time_never_falls_where_the_load_grows(
    workload: str, gpu: str, size: int, few: float, many: float
) -> None:
    one = replica(wanted(workload), gpu, size)
    less, more = (one.times(x) for x in sorted((few, many)))
    for name in ("time_per_output_token", "time_to_first_token", "request_seconds"):
        assert less[name] <= more[name] * (1 + 1e-9)


def test_loads_are_corrected_in_steps_of_two_up_to_the_last() -> None:
    """A point at 1024 sequences corrects that load and all above; the floor is what less took."""
    anchors = solve([point("here", 10.0, 1.5), point("here", 0.0, 1.2)], PRIOR)
    time = Corrected("step", anchors, lambda n: HERE | {"batch": math.log2(n)}, lambda n: n)
    assert time.factor(1024.0) == pytest.approx(1.5, abs=0.03)
    assert time.factor(1e6) == time.factor(1024.0)
    assert time.factor(1.0) == time.factor(0.1) == pytest.approx(1.2, abs=0.02)
    assert time.factor(724.0) == time.factor(512.0) < time.factor(725.0) == time.factor(1024.0)
    falling = solve([point("here", 1.0, 2.0), point("here", 3.0, 0.5)], PRIOR)
    time = Corrected("step", falling, lambda n: HERE | {"batch": math.log2(n)}, lambda n: n)
    assert time.floor(1.0) == 0.0
    assert time.floor(8.0) == max(2 ** (n + 0.5) * time.factor(2.0**n) for n in range(3))


def test_the_width_of_an_interval_is_that_of_32_sequences() -> None:
    """Whatever the load: one replica has one interval; the point at 32 narrows it."""

    def width(batch: float) -> float:
        anchors = solve([point("here", batch, 1.2), point("far", 0.0, 1.1)], PRIOR)
        one = Corrected("step", anchors, lambda n: HERE | {"batch": math.log2(n)}, lambda n: n)
        (low, high), basis = one.interval
        there = anchors.correction(HERE | {"batch": 5.0})
        assert (low, high) == (there.low, there.high)
        assert basis == "calibrated"
        return high / low

    assert width(5.0) < min(width(4.8), width(5.2)) < width(8.0)


@settings(max_examples=60)
@given(
    st.sampled_from(("h100-sxm-80gb", "h200-sxm-141gb", "b200-sxm-180gb")),
    st.sampled_from((1, 2, 4, 8)),
    loads,
)
def test_a_corrected_step_never_beats_the_roofline(gpu: str, size: int, load: float) -> None:
    times = replica(wanted(CHAT_70B), gpu, size).times(load)
    assert times["time_per_output_token"] >= times["roofline_seconds"] * (1 - 1e-9)


@pytest.mark.parametrize("load", [1, 8, 64, 256])
def test_without_a_near_point_gpus_of_a_generation_keep_the_order_of_the_formulas(
    load: float,
) -> None:
    """A network that nobody measured: what is known of its engine moves all of them alike."""
    demand = wanted(CHAT_8B)
    assert isinstance(demand, LanguageDemand)
    unseen = replace(demand, model=replace(demand.model, layers=31, intermediate_size=14080))
    found = [
        replica(unseen, gpu, size)
        for gpu in ("h100-sxm-80gb", "h200-sxm-141gb")
        for size in (1, 2, 4)
    ]
    times = [r.times(load) for r in found]

    def order(name: str) -> list[int]:
        return sorted(range(len(found)), key=lambda n: times[n][name])

    assert order("time_per_output_token") == order("modelled_token_seconds")
    factors = {r.corrections(load)["token_correction"] for r in found}
    assert len(factors) == 1


def test_the_bundled_points_name_where_they_were_published() -> None:
    one = replica(wanted(CHAT_70B), "h100-sxm-80gb", 4)
    anchors = one.token.anchors
    nearest = anchors.nearest(one.features(16))
    assert nearest
    text = nearest[0].described(anchors.unit)
    assert "measured" in text
    assert "ms; ai-dynamo/aiconfigurator" in text
