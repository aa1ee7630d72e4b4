"""Timers of systemd for what has a schedule, in systemd's words: systemd.time(7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.backends.docker import quadlet
from gpuplan.backends.docker.view import Part, containers
from gpuplan.plan.model import Plan
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.tree import File

DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
EVERY = "*"


def files(plan: Plan, parts: Sequence[Part]) -> Iterator[File]:
    for part in recurring(parts):
        services = " ".join(containers(part.workload))
        up = f"--profile {part.name} up {services}"
        values = {"stack": plan.name, "name": part.name, "up": Verbatim(up)}
        yield File(
            f"{unit_name(plan, part)}.service",
            render("conf", "docker/recurring.service.j2", **values),
        )
        yield _timer(f"{unit_name(plan, part)}.timer", part)
        if plan.quadlet:
            for name in containers(part.workload):
                unit = quadlet.unit_of(plan, name).removesuffix(".service")
                yield _timer(f"{quadlet.FOLDER}/{unit}.timer", part)


def recurring(parts: Sequence[Part]) -> tuple[Part, ...]:
    return tuple(part for part in parts if part.workload.schedule)


def unit_name(plan: Plan, part: Part) -> str:
    return f"gpuplan-{plan.name}-{part.name}"


def _timer(path: str, part: Part) -> File:
    moments = [Verbatim(moment) for moment in calendar(part.workload.schedule or "")]
    text = render("conf", "docker/recurring.timer.j2", name=part.name, moments=moments)
    return File(path, text)


def calendar(schedule: str) -> Iterator[str]:
    """Cron's five fields as events of a calendar. Where both the day of the month and that of the
    week say something, cron takes either, and systemd both: there are two then. A field that starts
    with a star says nothing to cron's either, whatever its step (crontab(5))."""
    minute, hour, day, month, weekday = schedule.split(" ")
    clock = f"{_numbers(hour, 0)}:{_numbers(minute, 0)}:00"
    days, weekdays = f"*-{_numbers(month, 1)}-{_numbers(day, 1)}", _weekdays(weekday)
    if weekdays and not day.startswith(EVERY) and not weekday.startswith(EVERY):
        yield f"{days} {clock}"
        yield f"{weekdays} *-{_numbers(month, 1)}-* {clock}"
    else:
        yield f"{weekdays} {days} {clock}".lstrip()


def _numbers(field: str, first: int) -> str:
    """A step begins at the field's first number."""
    if field == EVERY:
        return EVERY
    parts = []
    for part in field.split(","):
        span, _, step = part.partition("/")
        span = str(first) if span == EVERY and step else span
        low, dash, high = span.partition("-")
        parts.append((f"{low}..{high}" if dash else low) + (f"/{step}" if step else ""))
    return ",".join(parts)


def _weekdays(field: str) -> str:
    """Names, one by one, since systemd's weeks begin with Monday; empty for all."""
    chosen: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        low, dash, high = ("0", "-", "6") if span == EVERY else span.partition("-")
        last = int(high) if dash else 7 if step else int(low)
        chosen |= {number % 7 for number in range(int(low), last + 1, int(step or 1))}
    return "" if len(chosen) == 7 else ",".join(DAYS[number] for number in sorted(chosen))
