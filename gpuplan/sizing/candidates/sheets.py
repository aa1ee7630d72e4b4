"""Formulas that several kinds of workload share: searches evaluate them, records print them."""

from __future__ import annotations

from gpuplan.sizing.ask.parts import TimeLimit
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.evidence.formula import Ledger, Quantity, constant
from gpuplan.sizing.evidence.sheet import Scope, sheet

PEAK = sheet("""
    sized_rate: 1/s = peak_rate * growth  # the peak at the end of the horizon
""")
ALL_REQUESTS = sheet("""
    all_requests: 1 = requests * growth  # all requests at the end of the horizon
""")
ONE_REPLICA = ALL_REQUESTS + sheet("""
    replicas: 1 = 1  # one, without a time limit
""")
RUN_COST = sheet("""
    usd_per_run: USD = usd_per_hour * time_to_finish / hour  # the whole run
""")
CHECKPOINTS_KEPT = sheet("""
    checkpoints_kept_bytes: B = 3 * checkpoint_bytes
        # two that are kept and one that is being written
""")
MEAN_LOAD = sheet("""
    mean_load: 1 = mean_rate / requests_per_second  # part of the capacity that busy hours use
""")
RUNNING = sheet("""
    concurrency: 1 = ceil(sized_rate * request_latency)  # Little's law at the peak
""")
FILLED = sheet("""
    replicas: 1 = paid_nodes * node_replicas
        # all that the nodes hold that are paid for anyway: the requests are done sooner
""")
IN_POOL = "choice: all that the nodes of its pool hold beside the other work, done sooner"


def record_filled(ledger: Ledger, candidate: Candidate) -> Quantity:
    """The replicas of a batch that fills its nodes, or the room of its pool, as evidence."""
    nodes, replicas = candidate.nodes, candidate.replicas
    if replicas != candidate.held_replicas:
        return ledger.given("replicas", Quantity(float(replicas), "1", IN_POOL))
    scope = {
        "paid_nodes": Quantity(float(nodes), "1", "choice: nodes that hold the least replicas"),
        "node_replicas": constant(replicas // nodes, "1", "layout of a node"),
    }
    return FILLED.record(ledger, dict(scope))["replicas"]


def limits(limit: TimeLimit) -> Scope:
    """The earlier of the limits as an input, where there is one."""
    return {} if limit.first is None else {"time_limit": limit.first}


def room_in(limit: TimeLimit, seconds: float) -> tuple[float, float]:
    """The merit of what ends after `seconds`: the time that it may take over these, and these."""
    room = 1.0 if limit.first is None else limit.first.value / seconds
    return room, seconds
