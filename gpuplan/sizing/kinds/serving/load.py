"""What a service or a batch must serve, and the replicas that it takes: the sheets that the search
evaluates and the record prints."""

from __future__ import annotations

from functools import cache

from gpuplan.sizing.ask.demand import BatchDemand, LanguageDemand, ServingDemand
from gpuplan.sizing.ask.parts import ClosedLoop
from gpuplan.sizing.candidates.sheets import ALL_REQUESTS, PEAK, limits
from gpuplan.sizing.evidence.sheet import Scope, Sheet, sheet

_TOKENS = "tokens_per_second / output_mean"
REPLICAS = sheet("""
    replicas: 1 = max(1, ceil(sized_rate * slowness * request_seconds / limit_sequences - 1e-9))
        # Little's law with the replicas at their limit, as slow as the confidence allows
""")
# Requests at the limit of every replica.
CAPACITY = sheet("""
    requests_per_second: 1/s = replicas * limit_sequences / request_seconds
        # requests at the limit of every replica
""")
OFFERED = sheet("""
    offered_sequences: 1 = sized_rate * request_seconds / replicas  # Little's law, of one replica
""")
CONCURRENCY = sheet("""
    concurrency: 1 = ceil(sized_rate * request_seconds)  # Little's law at the peak
""")
FINISH = sheet("""
    time_to_finish: s = all_requests * request_seconds / (limit_sequences * replicas)
        # every place taken
""")


@cache
def _arriving(*, closed: bool, tokens: bool) -> Sheet:
    if not closed and not tokens:
        return PEAK
    text, why = "peak_rate * growth", "the peak at the end of the horizon"
    if closed:
        text = "users * growth / (think_time + slowness * request_seconds)"
        why = "users in a closed loop at the limit of every replica, at the wanted confidence"
    if tokens:
        text, why = f"max({text}, {_TOKENS})", f"{why}, or what the tokens per second take"
    return sheet(f"sized_rate: 1/s = {text}  # {why}")


@cache
def _wanted(*, limited: bool, tokens: bool) -> Sheet:
    limit, why = "all_requests / time_limit", "all requests within the time limit"
    if tokens:
        limit = f"max({limit}, {_TOKENS})" if limited else _TOKENS
        why += ", or what the tokens per second take"
    if not limited and not tokens:
        limit, why = "0 * all_requests / second", "nothing limits the time"
    return sheet(f"sized_rate: 1/s = {limit}  # {why}")


def arriving(demand: LanguageDemand) -> tuple[Sheet, Scope]:
    """Requests per second that must be served, as `sized_rate`, and the inputs of its sheet but
    lengths and times."""
    tokens = demand.tokens_per_second
    scope: Scope = {} if tokens is None else {"tokens_per_second": tokens}
    scope["growth"] = demand.growth.factor
    if isinstance(demand, ServingDemand):
        loop = demand.arrivals
        closed = isinstance(loop, ClosedLoop)
        if isinstance(loop, ClosedLoop):
            scope |= {"users": loop.users, "think_time": loop.think_time}
        else:
            scope["peak_rate"] = loop.peak
        return _arriving(closed=closed, tokens=tokens is not None), scope
    assert isinstance(demand, BatchDemand)
    limit = limits(demand.limit)
    scope["requests"] = demand.requests
    scope |= limit
    return ALL_REQUESTS + _wanted(limited=bool(limit), tokens=tokens is not None), scope
