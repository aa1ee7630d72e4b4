"""Requests per second that a service must serve: of an open loop, or of users in a closed one."""

from __future__ import annotations

from gpuplan.sizing.candidates.assemble import RATE
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.evidence.formula import Formula, Quantity
from gpuplan.sizing.physics.serving.scopes import Scope

_RATE_TOKENS = Formula(
    "max(peak * growth, tokens_per_second / output_mean)",
    "1/s",
    "the peak at the end of the horizon, or what the wanted tokens per second take",
)
_USERS = Formula(
    "users * growth / (think_time + slowness * request_seconds)",
    "1/s",
    "users in a closed loop at the limit of every replica, as slow as the confidence allows",
)
_USERS_TOKENS = Formula(
    f"max({_USERS.expression}, tokens_per_second / output_mean)",
    "1/s",
    "users in a closed loop, or what the wanted tokens per second take",
)


def sized_rate(settled: Settled, scope: Scope, request_seconds: Quantity) -> Quantity:
    """Requests per second that must be served; `request_seconds` are those at the limit."""
    given = settled.given
    inputs = {"growth": given["growth.factor"]}
    if (users := given.get("load.concurrency.users")) is not None:
        one, both = _USERS, _USERS_TOKENS
        inputs |= {"users": users, "think_time": given["load.concurrency.think_time"]}
        inputs |= {"slowness": scope["slowness"], "request_seconds": request_seconds}
    else:
        one, both = RATE, _RATE_TOKENS
        inputs["peak"] = given["load.requests_per_second.peak"]
    if (tokens := given.get("slo.tokens_per_second")) is not None:
        inputs |= {"tokens_per_second": tokens, "output_mean": scope["output_mean"]}
    return settled.ledger.derive("sized_rate", both if tokens else one, **inputs)
