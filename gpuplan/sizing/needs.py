"""What starts, traffic and runs ask of storage, PCIe and network cards: evidence beside a plan.

Rates of storage and cards bound a number only where the platform states them.
"""

from __future__ import annotations

from gpuplan.sizing.api import Site
from gpuplan.sizing.datasets import PACKED_TOKEN, TOKEN_TEXT
from gpuplan.sizing.devices import Device, cards_rate, quantity
from gpuplan.sizing.formula import Formula, Quantity, constant
from gpuplan.sizing.run import Division, Scope
from gpuplan.sizing.settle import Settled

IMAGE = constant(12.64e9, "B", "vLLM's image as it is pulled: vllm-project/vllm#27154, 2025-10-18")
# One server-sent event of a streamed answer: a JSON object with the token's text.
CHUNK = constant(256, "B", "a streamed token of an answer with its JSON, about")
STALL = constant(0.01, "1", "default: a hundredth of the time may be spent on writing checkpoints")

_LOAD = Formula("stored_bytes / storage_bytes_per_s", "s", "at the storage's bandwidth")
_START = Formula("image_bytes + stored_bytes", "B", "the container image and the weights")
_READ = Formula(
    "min(storage_bytes_per_s, cards_bytes_per_s)",
    "B/s",
    "volumes and images come over the node's network cards",
)
_TO_GPU = Formula(
    "weights_bytes / pcie_bytes_per_s",
    "s",
    "every GPU over its own link, once: caches stay on the GPU",
)
_COLD = Formula(
    "start_bytes / read_bytes_per_s + host_to_gpu_seconds",
    "s",
    "a first start without what the engine compiles",
)
_REQUESTS = Formula(
    "rate * (input_mean * token_text + output_mean * chunk_bytes)",
    "B/s",
    "prompts in, streamed tokens out, all replicas",
)
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


def record_start(
    settled: Settled, site: Site, device: Device, *, stored: Quantity, weights: Quantity
) -> None:
    """What a replica's first start moves and, where the storage's bandwidth is stated, how long it
    takes. `stored` lies on the volume, `weights` on each GPU."""
    ledger = settled.ledger
    start = ledger.derive("needs.start_bytes", _START, image_bytes=IMAGE, stored_bytes=stored)
    to_gpu = ledger.derive(
        "needs.host_to_gpu_seconds",
        _TO_GPU,
        weights_bytes=weights,
        pcie_bytes_per_s=quantity(device.gpu.pcie_bytes_per_s),
    )
    rate = site.storage_bytes_per_s
    if rate is None:
        return
    ledger.derive("load_seconds", _LOAD, stored_bytes=stored, storage_bytes_per_s=rate)
    if (cards := cards_rate(device.offer)) is not None:
        rate = ledger.derive(
            "needs.read_bytes_per_s", _READ, storage_bytes_per_s=rate, cards_bytes_per_s=cards
        )
    ledger.derive(
        "needs.cold_start_seconds",
        _COLD,
        start_bytes=start,
        read_bytes_per_s=rate,
        host_to_gpu_seconds=to_gpu,
    )


def record_requests(settled: Settled, scope: Scope, rate: Quantity) -> None:
    """The network traffic of a served model."""
    settled.ledger.derive(
        "needs.request_bytes_per_s",
        _REQUESTS,
        rate=rate,
        input_mean=scope["input_mean"],
        token_text=TOKEN_TEXT,
        output_mean=scope["output_mean"],
        chunk_bytes=CHUNK,
    )


def record_run(
    settled: Settled, site: Site, scope: Scope, *, sent: str, nodes: int, checkpoint: Quantity
) -> None:
    """What a training run reads and writes, and what its GPUs send each other in a step: `sent` is
    a key of `_SENT`, or empty."""
    ledger, given = settled.ledger, settled.given
    data = given.get("dataset.rate")
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
    if (interval := given.get("checkpoint.interval")) is not None:
        ledger.derive(
            "needs.checkpoint_bytes_per_s",
            _CHECKPOINT,
            checkpoint_bytes=checkpoint,
            stall=STALL,
            checkpoint_interval=interval,
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
