"""What a training run reads, writes and sends between its GPUs: evidence beside a plan."""

from __future__ import annotations

from gpuplan.sizing.ask.demand import TrainingDemand
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.sheet import Scope, Sheet, sheet
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.training.datasets import PACKED_TOKEN

STALL = constant(0.01, "1", "default: a hundredth of the time may be spent on writing checkpoints")

_DATA = sheet("""
    data_bytes_per_s: B/s = tokens_per_second * packed_token
        # packed sequences as the run reads them from Arrow
""")
_READ = sheet("""
    storage_rate: B/s = storage_bytes_per_s * nodes  # what all nodes read together
""")
_WRITTEN = sheet("""
    checkpoint_rate: B/s = checkpoint_bytes / checkpoint_seconds
        # what the nodes that write have of the storage
""")
_BUSY = sheet("""
    gpu_seconds: s = gradient_accumulation_steps * device_seconds
        # of a step, in which a GPU works on micro-batches
""")
_CARDS = sheet("""
    cards_rate: B/s = fabric_rate * node_gpus  # what a node's GPUs have of the fabric
""")
_SENT = sheet("""
    pcie_bytes_per_s: B/s = network_bytes_per_s / node_gpus + data_bytes_per_s / gpus
        # a GPU's part of what its node sends, and of the data
""")
EXCHANGED = sheet("""
    pcie_bytes_per_s: B/s = exchange_bytes / step_seconds + data_bytes_per_s / gpus
        # what a GPU without NVLink exchanges, and its part of the data
""")
_FED = sheet("""
    pcie_bytes_per_s: B/s = data_bytes_per_s / gpus  # a GPU's part of the data
""")
_CHECKPOINT = sheet("""
    checkpoint_bytes_per_s: B/s = checkpoint_bytes / (stall * checkpoint_interval)
        # bytes over the stall that is allowed
""")
RINGS = sheet("""
    ring_bytes: B = exchange_bytes * tensor_parallel_size * context_parallel_size
        # replicas exchange what each GPU of them holds: a ring through the node for each
""")
COPIES = sheet("""
    ring_bytes: B = min(1, group_nodes - 1) * exchange_bytes * tensor_parallel_size
        * context_parallel_size + copied_bytes * node_gpus
        # rings inside a group, where it has several nodes, and each GPU's over the groups
""")
STAGES = sheet("""
    stage_bytes: B = 2 * bf16_bytes * hidden_size * rank_tokens / tensor_parallel_size
        * virtual_stages * gradient_accumulation_steps * node_gpus
        # activations to the next stage and gradients back, of each GPU and micro-batch
""")


def _network(rings: Sheet, stages: Sheet) -> Sheet:
    """What the cards of a node send."""
    parts = rings + stages
    sent = " + ".join(name for name, _ in parts.lines)
    return parts + sheet(f"""
        network_bytes_per_s: B/s = ({sent}) / step_seconds
            # what a node's cards send together, on average
    """)


def record_run(
    settled: Settled[TrainingDemand],
    site: Site,
    scope: Scope,
    *,
    nodes: int,
    checkpoint: Quantity,
    bridged: bool,
) -> None:
    """What a training run reads and writes, and what its nodes send each other in a step.
    `bridged`: the GPUs of a node have no NVLink."""
    ledger, demand, rate = settled.ledger, settled.demand, site.storage_bytes_per_s
    scope = scope | {
        "packed_token": PACKED_TOKEN,
        "stall": STALL,
        "checkpoint_interval": scope.get("saved_every", demand.checkpoint_interval),
        "checkpoint_bytes": checkpoint,
        "nodes": Quantity(float(nodes), "1", "choice: nodes of the run"),
    }
    needs = _BUSY + _CHECKPOINT
    if demand.dataset.rate is None:
        needs += _DATA
    else:
        scope["data_bytes_per_s"] = demand.dataset.rate
    if rate is not None:
        scope["storage_bytes_per_s"] = rate
        needs += _READ + _WRITTEN
    rings = COPIES if scope["state_copies"].value > 1 else RINGS
    sends = rings if scope["data_parallel_size"].value > 1 else Sheet(())
    passes = STAGES if scope["pipeline_parallel_size"].value > 1 else Sheet(())
    # Inside an NVLink domain the cards of its nodes carry none of it.
    across = nodes > 1 and "fabric_rate" in scope and bool((sends + passes).lines)
    if across:
        scope["node_gpus"] = Quantity(scope["gpus"].value / nodes, "1", "choice: GPUs of a node")
        needs += _network(sends, passes) + _CARDS
    needs += _over_pcie(scope, across=across, bridged=bridged)
    needs.record(ledger, scope, "needs.")


def _over_pcie(scope: Scope, *, across: bool, bridged: bool) -> Sheet:
    """What each GPU moves over its own link; empty where a tensor's parts go over it too, whose
    bytes nobody counts."""
    if bridged and scope["tensor_parallel_size"].value > 1:
        return Sheet(())
    if across:
        return _SENT
    return EXCHANGED if bridged and "exchange_bytes" in scope else _FED
