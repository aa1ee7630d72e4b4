"""What a service or batch that writes down audio must do, and the replicas that it takes: the
sheets that the search evaluates and the record prints."""

from __future__ import annotations

from gpuplan.sizing.ask.demand import SpeechDemand
from gpuplan.sizing.candidates.replicas import arriving
from gpuplan.sizing.candidates.sheets import ALL_REQUESTS, ONE_REPLICA, PEAK
from gpuplan.sizing.evidence.sheet import Scope, Sheet, sheet

_AUDIO = sheet("""
    audio_rate: 1 = requests_per_second * audio  # seconds of audio that are written in a second
""")
CAPACITY = (
    sheet("""
    requests_per_second: 1/s = replicas * limit_rate  # of every replica at its limit
""")
    + _AUDIO
)
FULL = (
    sheet("""
    requests_per_second: 1/s = replicas / (windows * window_seconds)  # every place taken
""")
    + _AUDIO
)
FINISH = sheet("""
    time_to_finish: s = all_requests * windows * window_seconds / replicas
        # every place taken
""")
_SERVICE = PEAK + sheet("""
    replicas: 1 = max(1, ceil(sized_rate * slowness / limit_rate - 1e-9))
        # as slow as the confidence allows, at their limit
""")
_LIMITED = ALL_REQUESTS + sheet("""
    sized_rate: 1/s = all_requests / time_limit  # all requests within the time limit
    replicas: 1 = max(1, ceil(sized_rate * slowness * windows * window_seconds - 1e-9))
        # as slow as the confidence allows, every place taken
""")


def needed(demand: SpeechDemand) -> tuple[Sheet, Scope]:
    """The sheet up to `replicas`, and its inputs but times."""
    return arriving(demand, _SERVICE, _LIMITED, ONE_REPLICA)
