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
_BUSY = sheet("""
    storage_share: 1 = data_bytes_per_s / (storage_bytes_per_s * nodes)
        # part of the storage's bandwidth
""")
_CHECKPOINT = sheet("""
    checkpoint_bytes_per_s: B/s = checkpoint_bytes / (stall * checkpoint_interval)
        # bytes over the stall that is allowed
""")
_RINGS = sheet("""
    ring_bytes: B = exchange_bytes * tensor_parallel_size * context_parallel_size
        # replicas exchange what each GPU of them holds: a ring through the node for each
""")
_COPIES = sheet("""
    ring_bytes: B = min(1, group_nodes - 1) * exchange_bytes * tensor_parallel_size
        * context_parallel_size + copied_bytes * node_gpus
        # rings inside a group, where it has several nodes, and each GPU's over the groups
""")
_STAGES = sheet("""
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
    settled: Settled[TrainingDemand], site: Site, scope: Scope, *, nodes: int, checkpoint: Quantity
) -> None:
    """What a training run reads and writes, and what its nodes send each other in a step."""
    ledger, demand, rate = settled.ledger, settled.demand, site.storage_bytes_per_s
    scope = scope | {
        "packed_token": PACKED_TOKEN,
        "stall": STALL,
        "checkpoint_interval": scope.get("saved_every", demand.checkpoint_interval),
        "checkpoint_bytes": checkpoint,
        "nodes": Quantity(float(nodes), "1", "choice: nodes of the run"),
    }
    needs = _CHECKPOINT
    if demand.dataset.rate is None:
        needs += _DATA
    else:
        scope["data_bytes_per_s"] = demand.dataset.rate
    if rate is not None:
        scope["storage_bytes_per_s"] = rate
        needs += _BUSY
    rings = _COPIES if scope["state_copies"].value > 1 else _RINGS
    sends = rings if scope["data_parallel_size"].value > 1 else Sheet(())
    passes = _STAGES if scope["pipeline_parallel_size"].value > 1 else Sheet(())
    if nodes > 1 and (sends + passes).lines:
        scope["node_gpus"] = Quantity(scope["gpus"].value / nodes, "1", "choice: GPUs of a node")
        needs += _network(sends, passes)
    needs.record(ledger, scope, "needs.")
