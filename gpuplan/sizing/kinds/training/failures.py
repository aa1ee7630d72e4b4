"""What failures of nodes and checkpoints take of the time of a run that spans several nodes.

A run stops when any of its nodes does. To first order (Young 1974, doi:10.1145/361147.361115; Daly
2006) a checkpoint every sqrt(2 * write time / failure rate) seconds loses least.
"""

from __future__ import annotations

from functools import cache

from gpuplan.sizing.ask.demand import TrainingDemand
from gpuplan.sizing.candidates.interruptions import WARM_UP
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.sheet import Scope, Sheet, floats, sheet
from gpuplan.sizing.hardware.offers import Site
from gpuplan.targets import TARGETS

# 419 unexpected interruptions in 54 days on 16,384 H100 in nodes of 8: Grattafiori et al., The
# Llama 3 Herd of Models (arXiv:2407.21783), section 3.3.4 and table 5, of July 2024.
FAILURES = constant(
    419 / (54 * 86400 * 2048),
    "1/s",
    "419 interruptions of 2,048 nodes in 54 d (Llama 3, arXiv:2407.21783, table 5)",
)
# Until the others know: torch.distributed's timeout of a collective on GPUs.
DETECTION = constant(
    600, "s", "default timeout of NCCL's process group (torch.distributed.init_process_group)"
)

CHECKPOINT = sheet("""
    checkpoint_bytes: B = parameters * (bf16_bytes + optimizer_bytes_each)
        # bf16 weights and optimizer states
""")
ADAPTER = sheet("""
    checkpoint_bytes: B = trained_parameters * (bf16_bytes + optimizer_bytes_each)
        # adapters and their optimizer states
""")
WRITE = sheet("""
    checkpoint_seconds: s = checkpoint_bytes / (storage_bytes_per_s * nodes)
        # at the storage's bandwidth: each node writes its part
""")
_RATE = sheet("""
    failures_per_second: 1/s = node_failures * nodes  # any node that fails stops the run
    best_checkpoint_interval: s = sqrt(2 * checkpoint_seconds / failures_per_second)
        # Young (1974): writing less often loses more work than it saves
""")
_DERIVED = sheet("""
    saved_every: s = 1 * best_checkpoint_interval  # none is written: the one that loses least
""")
_WRITTEN = sheet("""
    saved_every: s = 1 * checkpoint_interval  # as the manifest wants it
""")
_RECOVERY = sheet("""
    recovery_seconds: s = failure_detection + checkpoint_seconds + warm_up
        # the failure is noticed, the checkpoint read again, the ranks join
""")
_SHARE = """
    lost_share: 1 = checkpoint_seconds / saved_every
        + failures_per_second * (saved_every / 2 + recovery_seconds){waiting}
        # writing; work since the last checkpoint, which falls anywhere between two, and recovery
"""
_GOODPUT = sheet("""
    goodput: 1 = 1 / (1 + lost_share)  # part of the time that steps take
""")
# From one system to another between less than an hour and more than a day: Schroeder and Gibson, A
# large-scale study of failures in high-performance computing systems, DSN 2006.
REPAIR = constant(86400, "s", "assumption: a day until a node is back (Schroeder, Gibson 2006)")
SPARES = sheet("""
    spare_nodes: 1 = ceil(failures_per_second * repair_time
        + 1.645 * sqrt(failures_per_second * repair_time))
        # beside those of the run, so that 95 % of the time none is missing (Poisson)
""")
TIMES = sheet("""
    interruptions: 1 = failures_per_second * time_to_finish  # in the whole run, on average
""")
SPARE_COST = sheet("""
    spare_usd_per_hour: USD/h = usd_per_hour * spare_nodes / nodes  # not in the price of the run
""")
_FAILED = sheet("""
    failed_nodes: 1 = failures_per_second * repair_time  # in repair at a time, on average
""")
NO_LOSS = constant(
    0, "1", "not counted: inside one node, of adapters, or where no storage bandwidth is stated"
)


def several(demand: TrainingDemand, nodes: int) -> bool:
    """Whether it is a run of all weights over nodes."""
    return nodes > 1 and _all_weights(demand)


def _all_weights(demand: TrainingDemand) -> bool:
    return demand.method in ("full", "pretraining")


def counted(demand: TrainingDemand, site: Site, nodes: int) -> bool:
    """Whether failures are."""
    return not uncounted(demand, site, nodes)


def uncounted(demand: TrainingDemand, site: Site, nodes: int) -> str:
    """Why failures are not counted; empty where they are."""
    if not several(demand, nodes):
        return "it runs on one node" if _all_weights(demand) else "its checkpoints are adapters"
    stated = site.storage_bytes_per_s is not None
    return "" if stated else "`platform.storage.bandwidth` is not stated"


def losses(demand: TrainingDemand) -> Sheet:
    """The sheet of `lost_share`."""
    saved = _WRITTEN if demand.interval_is_written else _DERIVED
    before = CHECKPOINT + WRITE + _RATE + saved + _RECOVERY
    if demand.spare_nodes is None:
        return before + sheet(_SHARE.format(waiting="")) + _GOODPUT
    more = sheet(_SHARE.format(waiting=" + waiting_share"))
    return before + _FAILED + _waiting(int(demand.spare_nodes)) + more + _GOODPUT


@cache
def _waiting(spares: int) -> Sheet:
    """Of a run with so many spares: waiting over running. The nodes in repair are those of Erlang's
    loss system, which holds whatever repairs take: with one more than there are spares the run
    waits, and no other fails."""
    rows = "1 / failed_nodes"
    for number in range(2, spares + 2):
        rows = f"{number} / failed_nodes * (1 + {rows})"
    return sheet(f"""
        waiting_share: 1 = 1 / ({rows})
            # for repairs, with no spare left (Erlang 1917); the more spares, the less
    """)


def spares(demand: TrainingDemand, site: Site) -> int:
    """Those that are bought with the run; guests of hypervisors and a lone machine have none."""
    stated = demand.spare_nodes
    return int(stated) if stated is not None and TARGETS[site.target].stands_by else 0


def inputs(demand: TrainingDemand, site: Site, nodes: int) -> Scope:
    """What it needs beside `parameters` and `optimizer_bytes_each`."""
    assert site.storage_bytes_per_s is not None
    return {
        "nodes": Quantity(float(nodes), "1", "choice: nodes of the run"),
        "storage_bytes_per_s": site.storage_bytes_per_s,
        "node_failures": FAILURES,
        "failure_detection": DETECTION,
        "warm_up": WARM_UP,
        "checkpoint_interval": demand.checkpoint_interval,
        "repair_time": REPAIR,
    }


def lost_share(demand: TrainingDemand, site: Site, scope: Scope, nodes: int) -> Quantity:
    """The same for a search."""
    if not counted(demand, site, nodes):
        return NO_LOSS
    values = losses(demand)(floats(scope | inputs(demand, site, nodes)))
    return Quantity(values["lost_share"], "1", "quantity:lost_share")
