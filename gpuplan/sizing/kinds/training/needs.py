"""What a training run reads, writes and sends between its GPUs: evidence beside a plan."""

from __future__ import annotations

from gpuplan.sizing.ask.demand import TrainingDemand
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.evidence.formula import Formula, Quantity, constant
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.training.datasets import PACKED_TOKEN
from gpuplan.sizing.physics.training.run import Division, Scope

STALL = constant(0.01, "1", "default: a hundredth of the time may be spent on writing checkpoints")

_DATA = Formula(
    "tokens_per_second * packed_token", "B/s", "packed sequences as the run reads them from Arrow"
)
_BUSY = Formula(
    "data_bytes_per_s / (storage_bytes_per_s * nodes)", "1", "part of the storage's bandwidth"
)
_CHECKPOINT = Formula(
    "checkpoint_bytes / (stall * checkpoint_interval)",
    "B/s",
    "bytes over the stall that is allowed",
)
_SENT = {
    "weights": Formula(
        "6 * parameters * gradient_accumulation_steps * (gpus - 1) / gpus",
        "B",
        "ZeRO-3: weights twice and gradients once a micro-batch, in bf16 (Rajbhandari 2019)",
    ),
    "frozen": Formula(
        "2 * frozen_bytes * gradient_accumulation_steps * (gpus - 1) / gpus",
        "B",
        "ZeRO-3: frozen weights twice a micro-batch (Rajbhandari 2019)",
    ),
    "gradients": Formula(
        "4 * parameters * (gpus - 1) / gpus", "B", "a ring's all-reduce of bf16 gradients in a step"
    ),
    "adapters": Formula(
        "4 * trained_parameters * (gpus - 1) / gpus", "B", "the same of the adapters' gradients"
    ),
}
_NETWORK = Formula(
    "exchange_bytes / step_seconds", "B/s", "what a node's cards send together, on average"
)


def record_run(
    settled: Settled[TrainingDemand],
    site: Site,
    scope: Scope,
    *,
    sent: str,
    nodes: int,
    checkpoint: Quantity,
) -> None:
    """What a training run reads and writes, and what its GPUs send each other in a step: `sent` is
    a key of `_SENT`, or empty."""
    ledger, demand = settled.ledger, settled.demand
    data: Quantity | None = demand.dataset.rate
    if data is None:
        data = ledger.derive(
            "needs.data_bytes_per_s",
            _DATA,
            tokens_per_second=scope["tokens_per_second"],
            packed_token=PACKED_TOKEN,
        )
    if (rate := site.storage_bytes_per_s) is not None:
        ledger.derive(
            "needs.storage_share",
            _BUSY,
            data_bytes_per_s=data,
            storage_bytes_per_s=rate,
            nodes=Quantity(float(nodes), "1", "choice: nodes of the run"),
        )
    ledger.derive(
        "needs.checkpoint_bytes_per_s",
        _CHECKPOINT,
        checkpoint_bytes=checkpoint,
        stall=STALL,
        checkpoint_interval=demand.checkpoint_interval,
    )
    if sent:
        formula = _SENT[sent]
        exchange = ledger.derive(
            "needs.exchange_bytes", formula, **{n: scope[n] for n in formula.names}
        )
        if nodes > 1:
            step = scope["step_seconds"]
            ledger.derive(
                "needs.network_bytes_per_s", _NETWORK, exchange_bytes=exchange, step_seconds=step
            )


def sent_by(division: Division, *, adapter: bool) -> str:
    """The key of `_SENT` for a run."""
    if division.gpus == 1:
        return ""
    gathered = division.sharding == "zero3"
    if adapter:
        return "frozen" if gathered else "adapters"
    return "weights" if gathered else "gradients"
