"""The times of a request that objectives are about, and the statistics over requests: a name each.

The plain name of a time is that of one statistic, which a bare duration in the manifest means; the
others have it as their ending: `time_to_first_token` is a 95th percentile, and
`time_to_first_token_p99` the 99th."""

from __future__ import annotations

from typing import Literal, get_args

Statistic = Literal["mean", "p50", "p95", "p99"]
STATISTICS: tuple[Statistic, ...] = get_args(Statistic)
# In the order in which they are looked at.
PLAIN: dict[str, Statistic] = {
    "time_per_output_token": "mean",
    "time_to_first_token": "p95",
    "request_latency": "mean",
}


def time_name(time: str, statistic: Statistic, between: str = "_") -> str:
    """What `statistic` of `time` is called; with "." between them as the manifest writes it."""
    return time if PLAIN[time] == statistic else f"{time}{between}{statistic}"


# The time and the statistic of each name.
TIMES: dict[str, tuple[str, Statistic]] = {
    time_name(time, statistic): (time, statistic) for time in PLAIN for statistic in STATISTICS
}


# Objectives that are no time of a request, by the figures that they limit.
OF_THE_WHOLE = {
    "time_to_finish": "finish_within",
    "output_tokens_per_second": "tokens_per_second",
    "tokens_per_second": "tokens_per_second",
}
# What the manifest may name: a time with all limits that are written, or one of its statistics; and
# what is of the whole workload.
LIMITS = (
    *(n for time in PLAIN for n in (time, *(f"{time}.{s}" for s in STATISTICS))),
    *dict.fromkeys(OF_THE_WHOLE.values()),
)


def limited(limit: str) -> tuple[str, ...]:
    """The names of the times that one of `LIMITS` means; none of what is of the whole."""
    time, _, only = limit.partition(".")
    if time not in PLAIN:
        return ()
    return tuple(time_name(time, s) for s in STATISTICS if only in ("", s))


def limit_name(name: str) -> str:
    """What limits the figure `name`, as the manifest writes it below `slo`."""
    return OF_THE_WHOLE.get(name) or time_name(*TIMES[name], between=".")


def limit_path(name: str) -> tuple[str, ...]:
    """The same as a path, down to the statistic."""
    return (OF_THE_WHOLE[name],) if name in OF_THE_WHOLE else TIMES[name]


def field_of(name: str) -> str:
    """The manifest's field of a time's name."""
    return f"slo.{limit_name(name)}"


def in_words(name: str) -> str:
    """`time to first token p95`, `mean request latency`; any other name as its words."""
    if name not in TIMES:
        return name.replace("_", " ")
    return with_statistic(TIMES[name][0].replace("_", " "), TIMES[name][1])


def with_statistic(time: str, statistic: Statistic) -> str:
    return f"mean {time}" if statistic == "mean" else f"{time} {statistic}"
