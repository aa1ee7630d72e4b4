"""What a service or batch that reads images must answer: the sheets that the search evaluates and
the record prints."""

from __future__ import annotations

from gpuplan.sizing.ask.demand import VisionDemand
from gpuplan.sizing.candidates.batching import percentiles
from gpuplan.sizing.evidence.sheet import Sheet, sheet
from gpuplan.sizing.physics.batching import latency

IMAGES = sheet("""
    images_per_second: 1/s = requests_per_second * images  # images that are read
""")
FINISH = sheet("""
    time_to_finish: s = all_requests * service_seconds / replicas
        # what is slowest works without a pause: GPUs, cores or storage
""")


def times(demand: VisionDemand) -> Sheet:
    """The mean latency, and the percentiles that are asked for or whose miss is accepted."""
    return latency(percentiles(demand), "on the cores that decode", "answered_seconds")
