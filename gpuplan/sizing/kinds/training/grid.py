"""Every way to divide a run over GPUs that an engine with model parallelism takes.

What must divide what is Megatron Core's: tensor parallelism the heads and their groups of keys,
stages the layers (the embedding and the output layer may stand for one each), experts their
number, ranks the batch; a ring of context parallelism takes two chunks of a sequence for each of
its GPUs. Sources: megatron/core/model_parallel_config.py, transformer/transformer_config.py and
parallel_state.py of v0.17.0. Tensor and context parallelism stay inside an NVLink domain, where
they exchange in every layer; stages and replicas lie across.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

from gpuplan.models.model import Transformer
from gpuplan.plan.model import record
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.hardware.domains import in_domain
from gpuplan.sizing.physics.training.division import divisors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

MOST_STAGES = 64
MOST_VIRTUAL = 8  # beyond it stages wait for each other more than they fill the bubble
MOST_EXPERT = 64
MOST_MICRO = 8
# Tensor and context parallelism over nodes that NVLink joins: the most that public points have, of
# trays of 4 GPUs (MLPerf training, GB200 and GB300).
MOST_INSIDE = 8
ENDS = 2  # the embedding and the output layer, each in the place of a layer


@record
class Shape:
    """GPUs of one replica, how they divide it."""

    tensor: int
    context: int
    pipeline: int
    virtual: int
    expert: int

    @property
    def gpus(self) -> int:
        return self.tensor * self.context * self.pipeline


def domain(device: Device) -> int:
    """GPUs that NVLink joins, on the nodes of its domain."""
    room = device.offer.gpus_per_node
    return min(room * device.offer.nvlink_nodes, device.gpu.nvlink_gpus(room))


def tight(device: Device, gpus: int, spares: int = 0) -> int:
    """GPUs that a run of so many divides layers and sequences over: of a node, or of a domain that
    holds all of the run and its `spares`; nothing keeps parts of a larger one inside one."""
    room, whole = device.offer.gpus_per_node, domain(device)
    near = in_domain(device, -(-gpus // room), spares)
    return max(room, min(whole, MOST_INSIDE)) if near else min(room, whole)


def stages(layers: int) -> dict[int, int]:
    """Numbers of stages that divide the layers, each with the layers of one: the model's own, or
    with its ends counted as layers."""
    by_count = dict[int, int]()
    for count in (layers + ENDS, layers):
        by_count |= {n: count // n for n in divisors(count, min(MOST_STAGES, layers))}
    return by_count


def whole_stages(layers: int, pipeline: int, virtual: int) -> bool:
    """Whether the layers alone divide, without the ends of the model in a layer's place."""
    return layers % (pipeline * virtual) == 0


def shapes(model: Transformer, device: Device, length: int) -> Iterator[Shape]:
    """Of one replica; `length` tokens of a sequence."""
    for tensor, context in _inside(model, tight(device, domain(device)), length):
        for pipeline, held in stages(model.layers).items():
            chunks = (1,) if pipeline == 1 else divisors(held, min(MOST_VIRTUAL, held))
            for virtual, expert in product(chunks, _experts(model)):
                yield Shape(
                    tensor=tensor,
                    context=context,
                    pipeline=pipeline,
                    virtual=virtual,
                    expert=expert,
                )


def _inside(model: Transformer, most: int, length: int) -> Iterator[tuple[int, int]]:
    """Tensor and context parallelism inside a domain of `most` GPUs. Sequence parallelism divides
    tokens as tensors are; layers of linear attention pass no state around a ring."""
    for tensor in divisors(most, most):
        if model.attention_heads % tensor or (model.latent is None and model.kv_heads % tensor):
            continue
        for context in divisors(most // tensor, most):
            ring = context == 1 or (model.linear is None and length % (2 * context) == 0)
            if ring and length % (tensor * context) == 0:
                yield tensor, context


def _experts(model: Transformer) -> tuple[int, ...]:
    return (1,) if model.experts is None else divisors(model.experts.count, MOST_EXPERT)


def columns(
    layouts: list[Shape],
    batch: int,
    room: int,
    most: int,
    *,
    micro: int | None = None,
    gpus: int | None = None,
) -> dict[str, Array]:
    """Each shape with every number of replicas and every micro-batch that reach the batch exactly
    on at most `most` GPUs: whole nodes of `room` each, or less than one; `micro` and `gpus` where
    they are given."""
    import numpy as np

    sizes = np.array([(s.tensor, s.context, s.pipeline, s.virtual, s.expert) for s in layouts])
    ranks = np.array(divisors(batch, most))
    chosen = divisors(batch, MOST_MICRO) if micro is None else (micro,)
    shape, replica, each = (
        part.ravel()
        for part in np.meshgrid(np.arange(len(layouts)), ranks, np.array(chosen), indexing="ij")
    )
    tensor, context, pipeline, virtual, expert = sizes[shape].T
    total = tensor * context * pipeline * replica
    # Interleaved stages take micro-batches in rounds of as many as there are stages.
    rounds = (batch // np.maximum(1, replica * each)) % pipeline == 0
    keep = (total <= most) & ((total <= room) | (total % room == 0))
    keep &= (batch % (replica * each) == 0) & ((virtual == 1) | rounds)
    keep &= (replica * context) % expert == 0
    if gpus is not None:
        keep &= total == gpus
    names = ("gpus", "tensor", "context", "pipeline", "virtual", "expert", "micro_batch")
    values = (total, tensor, context, pipeline, virtual, expert, each)
    rows = {n: v[keep].astype(float) for n, v in zip(names, values, strict=True)}
    rows["copies"] = np.ones(int(keep.sum()))
    return rows


def copied(rows: dict[str, Array], room: int) -> dict[str, Array]:
    """Rows over nodes of `room` GPUs with every number of groups of whole nodes, each of which
    divides all states anew."""
    import numpy as np

    over = np.flatnonzero(rows["gpus"] > room)
    nodes = (rows["gpus"][over] / room).astype(int)
    counts = {n: np.array(divisors(int(n), int(n))[1:]) for n in np.unique(nodes)}
    members = np.repeat(over, [counts[n].size for n in nodes])
    copies = np.concatenate([counts[n] for n in nodes]) if members.size else np.empty(0)
    repeated = {n: values[members] for n, values in rows.items()}
    repeated["copies"] = copies.astype(float)
    return repeated
