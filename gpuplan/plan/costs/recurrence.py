"""How often cron's five fields come true: arithmetic of the calendar, without daylight saving."""

from __future__ import annotations

from collections.abc import Iterator

MONTHS = {1: (31,), 2: (28, 29), 4: (30,), 6: (30,), 9: (30,), 11: (30,)}  # the others have 31
EVERY = "*"


def most_starts(schedule: str) -> int:
    """In the month that has most of them: each length of a month begins on each day of the week in
    the 400 years after which the calendar repeats. 0: never."""
    minute, hour, day, month, weekday = schedule.split(" ")
    days, weekdays = _numbers(day, 1, 31), {n % 7 for n in _numbers(weekday, 0, 7)}
    # Cron takes either of two days that are said, and both where one begins with a star: crontab(5)
    either = not day.startswith(EVERY) and not weekday.startswith(EVERY)
    most = 0
    for length, first in _months(_numbers(month, 1, 12)):
        fits = (
            (number in days or (first + number) % 7 in weekdays)
            if either
            else (number in days and (first + number) % 7 in weekdays)
            for number in range(1, length + 1)
        )
        most = max(most, sum(fits))
    return most * len(_numbers(hour, 0, 23)) * len(_numbers(minute, 0, 59))


def _months(chosen: set[int]) -> Iterator[tuple[int, int]]:
    """Their lengths, each with each day of the week to begin on."""
    lengths = {length for month in chosen for length in MONTHS.get(month, (31,))}
    yield from ((length, first) for length in lengths for first in range(7))


def _numbers(field: str, low: int, high: int) -> set[int]:
    numbers: set[int] = set()
    for part in field.split(","):
        span, slash, step = part.partition("/")
        first, dash, last = span.partition("-")
        if span == EVERY:
            ends = low, high
        else:
            ends = int(first), int(last) if dash else high if slash else int(first)
        numbers |= set(range(ends[0], ends[1] + 1, int(step or 1)))
    return numbers
