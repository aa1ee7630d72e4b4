"""What a service or batch that reads texts must answer: the sheets that the search evaluates and
the record prints."""

from __future__ import annotations

from gpuplan.sizing.ask.demand import PoolingDemand
from gpuplan.sizing.candidates.batching import percentiles
from gpuplan.sizing.evidence.sheet import Sheet, sheet
from gpuplan.sizing.physics.batching import latency

TOKENS = sheet("""
    input_tokens_per_second: 1/s = requests_per_second * request_tokens  # tokens that are read
""")
FINISH = sheet("""
    time_to_finish: s = all_requests * service_seconds / replicas  # every step full
""")


def times(demand: PoolingDemand) -> Sheet:
    """The mean latency, and the percentiles that are asked for or whose miss is accepted."""
    return latency(percentiles(demand))
