"""What the answers of replicas say of a time: which of it is measured, what ran in its parts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from gpuplan.plan.replay import Moment
from gpuplan.replay.engine import Answer, Engine
from gpuplan.replay.reading import ReadEngine
from gpuplan.replay.speech import SpeechEngine

MOMENTS = 60  # parts of the time that are shown

Played = Engine | ReadEngine | SpeechEngine


def percentile(ordered: Sequence[float], percent: int) -> float:
    return ordered[max(-(-percent * len(ordered) // 100), 1) - 1]


def window(answers: Sequence[Answer], *, queued: bool) -> tuple[float, float]:
    """From the first to the last measured arrival; of a queue, where all arrive at once, the middle
    of its answers."""
    if queued:
        ends = sorted(a.end_seconds for a in answers)
        return ends[len(ends) // 10], ends[-1 - len(ends) // 10]
    arrived = [a.request.arrival_seconds for a in answers]
    return min(arrived), max(arrived)


def mean_running(engines: Sequence[Played], start: float, end: float) -> float:
    parts = [m for e in engines for m in moments(e, start, end, 1, parts=1)]
    return sum(m.running for m in parts) / max(len(parts), 1)


def moments(
    engine: Played, start: float, end: float, replicas: int, parts: int = MOMENTS
) -> Iterable[Moment]:
    """The time-weighted means of each part of the time. What holds from one sample to the next is
    put into the part in which it begins; an idle replica has none running."""
    width = (end - start) / parts
    if not width:
        return
    sums = [[0.0] * 5 for _ in range(parts)]

    def add(seconds: float, first: int, *amounts: float) -> None:
        place = math.floor((seconds - start) / width)
        if 0 <= place < parts:
            for column, amount in enumerate(amounts, first):
                sums[place][column] += amount

    for seconds, lasted, *counts in engine.samples:
        add(seconds, 0, *(count * lasted for count in counts))
    for answer in engine.answers:
        add(answer.request.arrival_seconds, 3, replicas)
        add(answer.end_seconds, 4, replicas)
    for running, waiting, blocks, arrived, answered in sums:
        yield Moment(
            running=running / width,
            waiting=waiting / width,
            cache_tokens=blocks * engine.settings.block_tokens / width,
            arrived=arrived / width,
            answered=answered / width,
        )
