"""Objectives that several kinds of workload share."""

from __future__ import annotations

from gpuplan.sizing.ask.demand import Demand


def time_limit(demand: Demand) -> float | None:
    """Seconds within which a run must end: the objective or the deadline, whichever is first."""
    limits = [v for f in ("slo.finish_within", "deadline") if (v := demand.value(f)) is not None]
    return min(limits, default=None)


def time_field(demand: Demand) -> str:
    """The field that says so, the earlier one of two."""
    fields = [f for f in ("slo.finish_within", "deadline") if f in demand.given]
    return min(fields, key=lambda f: demand.given[f].value)


def weighed_hours(demand: Demand, seconds: float) -> float:
    """By what the hourly cost of a run is weighed. Within a time limit the least hardware that
    makes it is wanted, however long it then takes; without one the whole run counts."""
    return seconds / 3600 if time_limit(demand) is None else 1.0


def requests(demand: Demand) -> float:
    """All requests of a batch at the end of the horizon."""
    return demand.given["load.requests"].value * demand.given["growth.factor"].value


def peak_rate(demand: Demand, seconds: float = 0.0) -> float:
    """Requests per second of a service at the end of the horizon; of users in a closed loop, where
    a request takes `seconds`."""
    if (users := demand.value("load.concurrency.users")) is not None:
        pause = demand.given["load.concurrency.think_time"].value
        return users * demand.given["growth.factor"].value / (pause + seconds)
    return demand.given["load.requests_per_second.peak"].value * demand.given["growth.factor"].value
