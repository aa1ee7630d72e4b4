"""Requests that arrive at one replica: when, and how many tokens they bring and take."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import repeat

from gpuplan.frozen import record
from gpuplan.replay.numbers import exponential, normal, uniform

Z95 = 1.645  # the 95th percentile of a normal, in standard deviations
GAPS, SECONDS, INPUTS, OUTPUTS, STARTS = range(5)  # streams of numbers


@record
class Request:
    """`arrival_seconds` after the start, tokens of its prompt and of its answer."""

    number: int
    arrival_seconds: float
    input_tokens: int
    output_tokens: int


@record
class Lengths:
    """Tokens of a request: means, 95th percentiles, and the most of both that the engine takes."""

    input_mean: float
    input_p95: float
    output_mean: float
    output_p95: float
    longest: int

    def of(self, seed: int, number: int) -> tuple[int, int]:
        """Log-normal with that mean and 95th percentile, independent of each other."""
        prompt = _length(self.input_mean, self.input_p95, normal(seed, INPUTS, number))
        answer = _length(self.output_mean, self.output_p95, normal(seed, OUTPUTS, number))
        prompt = min(prompt, self.longest - 1)
        return prompt, min(answer, self.longest - prompt)


def _length(mean: float, p95: float, deviations: float) -> int:
    """exp(m + s * deviations) whose mean is `mean`: s² / 2 - 1.645 s + ln(p95 / mean) = 0. No
    log-normal has a 95th percentile beyond 3.87 times its mean."""
    ratio = math.log(max(p95 / mean, 1.0))
    spread = Z95 - math.sqrt(max(Z95**2 - 2 * ratio, 0.0))
    return max(1, round(mean * math.exp(spread * deviations - spread**2 / 2)))


@record
class Open:
    """Requests per second that arrive whatever becomes of them: Poisson, or where `variation`, the
    variance over the mean of the requests of a second, is above 1, Poisson at a rate that is
    log-normal anew in each second."""

    per_second: float
    variation: float = 1.0


@record
class Closed:
    """Users who ask again after they have thought, for exponential times of that mean."""

    users: int
    think_seconds: float
    start_seconds: float  # over which they begin


@record
class Queued:
    """All requests wait from the start, as those of a batch."""


Arrivals = Open | Closed | Queued


def opened(arrivals: Open | Queued, lengths: Lengths, seed: int) -> Iterator[Request]:
    """Requests without end, in order of their arrival."""
    times = _times(arrivals, seed) if isinstance(arrivals, Open) else repeat(0.0)
    for number, seconds in enumerate(times):
        yield asked(lengths, seed, number, seconds)


def asked(lengths: Lengths, seed: int, number: int, seconds: float) -> Request:
    prompt, answer = lengths.of(seed, number)
    return Request(
        number=number, arrival_seconds=seconds, input_tokens=prompt, output_tokens=answer
    )


def _times(arrivals: Open, seed: int) -> Iterator[float]:
    """Unit-rate arrivals, stretched by the rate of the second that they fall into."""
    spread = math.sqrt(math.log1p((arrivals.variation - 1) / arrivals.per_second))
    now, second, counter = 0.0, 0, 0
    rate = _rate(arrivals.per_second, spread, seed, second)
    while True:
        work = exponential(seed, GAPS, counter)
        counter += 1
        if not spread:
            now += work / rate
            yield now
            continue
        while now + work / rate >= second + 1:
            work -= (second + 1 - now) * rate
            now, second = float(second + 1), second + 1
            rate = _rate(arrivals.per_second, spread, seed, second)
        now += max(work, 0.0) / rate
        yield now


def _rate(mean: float, spread: float, seed: int, second: int) -> float:
    if not spread:
        return mean
    return mean * math.exp(spread * normal(seed, SECONDS, second) - spread**2 / 2)


def first_asked(arrivals: Closed, lengths: Lengths, seed: int) -> list[Request]:
    """Each user's first request."""
    return [
        asked(lengths, seed, user, arrivals.start_seconds * uniform(seed, STARTS, user))
        for user in range(arrivals.users)
    ]


def thought(arrivals: Closed, seed: int, number: int) -> float:
    """Seconds before request `number` is asked."""
    return arrivals.think_seconds * exponential(seed, GAPS, number)
