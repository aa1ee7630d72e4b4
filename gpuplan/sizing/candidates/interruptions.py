"""What it costs each time that spare capacity is taken back: the work that is done again, and the
restart. Waiting until there is some again comes on top: nobody pays for it, or says how long it is.
"""

from __future__ import annotations

from decimal import Decimal

from gpuplan.plan.model import Interruption
from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.candidates.assemble import Cost
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.needs import IMAGE
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.sheet import Scope, sheet
from gpuplan.sizing.hardware.offers import Site

NODE = constant(
    300, "s", "assumption: a new node takes about 5 min (news.ycombinator.com/item?id=44053826)"
)
READ = constant(100e6, "B/s", "assumption: a link of 1 Gb/s; state `platform.storage.bandwidth`")
WARM_UP = constant(120, "s", "assumption: kernels are compiled, graphs captured, ranks joined")
NOTHING = constant(0, "B", "nothing is loaded before it goes on")

_SINCE_CHECKPOINT = sheet("""
    redone_seconds: s = checkpoint_interval / 2  # it falls anywhere between two checkpoints
""")
_SINCE_START = sheet("""
    redone_seconds: s = time_to_finish / 2
        # it falls anywhere in the run, and a batch begins its requests anew
""")
_RESTART = sheet("""
    restart_seconds: s = node_seconds + (image_bytes + loaded_bytes) / read_bytes_per_s + warm_up
        # a node, the image, what is loaded, the first steps
""")
_AGAIN = sheet("""
    interruption_seconds: s = redone_seconds + restart_seconds  # GPUs that are paid meanwhile
""")
_ONLY_RESTART = sheet("""
    interruption_seconds: s = restart_seconds  # GPUs that are paid meanwhile
""")
_PRICE = sheet("""
    usd_per_interruption: USD = usd_per_hour * interruption_seconds / (hour * replicas)
        # of one replica
""")
_IN_TIME = sheet("""
    interruptions_in_time: 1 = max(0, floor((time_limit - time_to_finish) / interruption_seconds))
        # so many, and the run still ends in time
""")


def restarted(scope: Scope) -> Scope:
    """What `interruption` takes of a workload with replicas."""
    names = ("replicas", "time_to_finish", "time_limit")
    return {name: scope[name] for name in names if name in scope}


def interruption(
    settled: Settled[Demand],
    site: Site,
    candidate: Candidate,
    cost: Cost,
    scope: Scope,
    *,
    loaded: Quantity = NOTHING,
) -> Interruption | None:
    """None on nodes that are kept. `scope` has the `replicas`, where it ends the `time_to_finish`
    with its `time_limit`, where it writes checkpoints the `checkpoint_interval`."""
    if not candidate.device.offer.spot:
        return None
    sheets = _RESTART + _ONLY_RESTART
    if "checkpoint_interval" in scope:
        sheets = _SINCE_CHECKPOINT + _RESTART + _AGAIN
    elif "time_to_finish" in scope:
        sheets = _SINCE_START + _RESTART + _AGAIN
    scope = scope | {
        "node_seconds": NODE,
        "image_bytes": IMAGE,
        "loaded_bytes": loaded,
        "read_bytes_per_s": site.storage_bytes_per_s or READ,
        "warm_up": WARM_UP,
    }
    if cost.usd_per_hour is not None:
        sheets += _PRICE
        scope["usd_per_hour"] = cost.usd_per_hour
    if "time_limit" in scope and "time_to_finish" in scope:
        sheets += _IN_TIME
    scope = sheets.record(settled.ledger, scope)
    usd = scope.get("usd_per_interruption")
    times = scope.get("interruptions_in_time")
    return Interruption(
        seconds=scope["interruption_seconds"].value,
        restart_seconds=scope["restart_seconds"].value,
        usd=None if usd is None else Decimal(repr(usd.value)),
        in_time=None if times is None else int(times),
    )
