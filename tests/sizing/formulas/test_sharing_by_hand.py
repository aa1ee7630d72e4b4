"""Requests that share a server evenly, worked out with a pencil: of two places, a request takes 1 s
alone and 1.5 s beside another."""

from __future__ import annotations

import math

import pytest

from gpuplan.sizing.physics.speech.sharing import between, latencies

SECONDS = {1: 1.0, 2: 1.5, 3: 1.8}


def told(rate: float, places: int = 2) -> dict[str, float]:
    return dict(latencies(rate, lambda count: SECONDS[int(count)], places))


def test_mean_and_percentiles_of_a_busy_server() -> None:
    """0.6 a second: states of 0, 1 and more requests weigh 1, 0.6 and 0.27 / 0.55; one more that
    waits is 0.45 times as likely, and takes 0.375 s more."""
    waiting = 0.6 * 0.6 * 1.5 / 2 / (1 - 0.45)
    total = 1 + 0.6 + waiting
    mean = (1 * 1.0 + 0.6 * 1.5 + waiting * (1.5 + 0.375 / 0.55)) / total
    answer = told(0.6)
    assert answer["mean"] == pytest.approx(mean)
    # half of the requests find at most part of the second place taken
    half = 1 + 0.5 * (total / 2 - 1) / 0.6
    assert answer["p50"] == pytest.approx((half + mean) / 2)
    # log(0.05 * total / waiting) / log(0.45) = 1.94 turns, whole ones; 3.95 of the last hundredth
    assert answer["p95"] == pytest.approx(1.5 + 0.375 * 2)
    assert answer["p99"] == pytest.approx(1.5 + 0.375 * 4)


def test_percentiles_of_a_server_that_hardly_works() -> None:
    """0.02 a second: 49 of 50 are alone; of a hundred one meets another."""
    waiting = 0.02 * 0.02 * 1.5 / 2 / (1 - 0.015)
    total = 1.02 + waiting
    mean = (1 + 0.02 * 1.5 + waiting * (1.5 + 0.375 / 0.985)) / total
    answer = told(0.02)
    assert (answer["p95"], answer["p99"]) == (1.0, 1.5)
    assert answer["mean"] == pytest.approx(mean)
    assert answer["p50"] == 1.0  # no later than the 95th


def test_a_full_server_answers_nobody_more() -> None:
    """2 places of 1.5 s answer 4 in 3 seconds."""
    assert all(math.isinf(seconds) for seconds in told(4 / 3).values())
    assert all(seconds < 1e6 for seconds in told(4 / 3 - 1e-3).values())
    nearly = told(4 / 3 - 1e-3)
    assert nearly["p50"] <= nearly["mean"]
    assert 2 * 60 < nearly["p95"] < nearly["p99"]


def test_one_place_is_a_queue_of_one_server() -> None:
    """Half busy with requests of one second: M/D/1's mean wait is half a second."""
    answer = told(0.5, places=1)
    assert answer["mean"] == pytest.approx(1.5)
    # log(0.05 * 2) / log(0.5) = 3.3: four turns of half a second
    assert answer["p95"] == pytest.approx(1 + 0.5 * 4)
    assert answer["p99"] == pytest.approx(1 + 0.5 * 6)


def test_who_is_just_alone_does_not_wait() -> None:
    """Busy a hundredth of the time, 99 of 100 are alone; a little more, and one of them waits."""
    assert told(0.01, places=1)["p99"] == 1.0
    assert told(0.0101, places=1)["p99"] == pytest.approx(1.5)


def test_three_places_weigh_their_own_times() -> None:
    """1 a second: 1, 1, 0.75 and 0.45 / 0.4 of the states."""
    waiting = 0.75 * 1.8 / 3 / (1 - 0.6)
    total = 1 + 1 + 0.75 + waiting
    turn = 1.8 / 6
    mean = (1.0 + 1.5 + 0.75 * 1.8 + waiting * (1.8 + turn / 0.4)) / total
    answer = told(1.0, places=3)
    assert answer["mean"] == pytest.approx(mean)
    ahead = math.log(0.05 * total / waiting) / math.log(0.6)
    assert answer["p95"] == pytest.approx(1.8 + turn * math.ceil(ahead))


def test_straight_lines_between_points_and_on_beyond_the_last() -> None:
    line = between({1.0: 10.0, 2.0: 14.0, 4.0: 16.0})
    assert [line(at) for at in (1, 1.5, 2, 3, 4, 6)] == [10, 12, 14, 15, 16, 18]
    assert line(0.5) == 8
    assert between({4.0: 7.0})(9.0) == 7.0
