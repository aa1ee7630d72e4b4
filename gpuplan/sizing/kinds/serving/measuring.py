"""What measuring the chosen replica would narrow, and how many replicas that would save.

A closed loop at the most sequences that it may have, ten requests for each, all of the mean
lengths: as the runs that the intervals of known points come from, and as a row of them says it.
"""

from __future__ import annotations

from dataclasses import replace

from gpuplan.sizing.ask.demand import ServingDemand
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.evidence.formula import Ledger, Quantity, canonical, constant
from gpuplan.sizing.evidence.sheet import sheet
from gpuplan.sizing.kinds.serving.limit import LimitedReplica, largest
from gpuplan.sizing.kinds.serving.search import counted
from gpuplan.sizing.physics.serving.replica import Replica
from gpuplan.sizing.physics.serving.service import Start

ROUNDS = 10.0
_RUN = sheet("""
    run_seconds: s = rounds * request_seconds  # requests of each place, one after the other
""")
_WIDTH = "interval's end beside a point of one's own, as a factor on the likely time"


def record_measuring(
    ledger: Ledger, demand: ServingDemand, candidate: Candidate, replica: Replica, limit: float
) -> None:
    """As `measuring.*`. Nothing where one's own point is near already, replicas were chosen, or the
    interval beside that point, which may be wider for first tokens, leaves no request in time."""
    known = replica.measured(limit)
    if demand.overrides.replicas is not None or not _narrower(known, replica):
        return
    if not (confirmed := largest(known)):
        return
    needed = counted(demand, candidate.device, LimitedReplica(known, confirmed)).replicas
    times = _as_run(replica).times(limit)
    low, high = (constant(end, "1", _WIDTH) for end in known.token_factors)
    for name, number in (
        ("sequences", constant(canonical(limit), "1", "requests at once of one replica")),
        (
            "token_seconds",
            constant(canonical(times["time_per_output_token"]), "s", "solved: of that run"),
        ),
        ("interval_low", low),
        ("interval_high", high),
        (
            "replicas",
            Quantity(float(needed), "1", "solved: with that interval, the time confirmed"),
        ),
    ):
        ledger.given(f"measuring.{name}", number)
    scope = {
        "rounds": constant(ROUNDS, "1", "as InferenceX sends them"),
        "request_seconds": constant(
            canonical(times["request_seconds"]), "s", "solved: at these sequences"
        ),
    }
    _RUN.record(ledger, scope, "measuring.")


def _as_run(replica: Replica) -> Replica:
    """As a row of it is predicted: all of the mean lengths, every place kept taken from the start
    on, with as many requests as come at once there."""
    tokens, share = replica.service.tokens, 1 / ROUNDS
    means = replace(tokens, input_p95=tokens.input_mean, output_p95=tokens.output_mean)
    start = Start(share=share, uncached=share, source="requests of a closed loop, ten a place")
    return Replica(replace(replica.service, tokens=means, random=False, start=start))


def _narrower(known: Replica, replica: Replica) -> bool:
    (low, high), (least, most) = known.token_factors, replica.token_factors
    return high / low < 0.9 * most / least
