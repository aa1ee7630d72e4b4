"""What machines can serve: the answers of `gpuplan capacity`, as records."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from gpuplan.frozen import record
from gpuplan.plan.records import Estimate, Shortfall, Split
from gpuplan.plan.workload import Parallelism

RunPurpose = Literal["fastest", "in_time", "soonest", "cheapest", "frontier"]


@record
class Capacity:
    """What the nodes of one kind serve. `assured` requests per second are served with the
    probability `confidence`; `requests_per_second` is what is likely. `replicas` is 0 and both
    rates are None where no layout meets the objectives: `shortfalls` say why not. `users` are those
    of a closed loop that are assured; `split` is of the pools for prefill and for decode that serve
    most on them."""

    gpu: str
    node_type: str | None
    nodes: int
    gpus_per_node: int
    assumed: bool
    partition: str | None = None
    tensor_parallel_size: int = 1
    replicas: int = 0
    confidence: float
    assured: float | None = None
    requests_per_second: Estimate | None = None
    users: int | None = None
    split: Split | None = None
    shortfalls: tuple[Shortfall, ...] = ()


@record
class Operation:
    """A replica at a number of sequences, likely values. `meets`: every objective, with the wanted
    confidence. `usd_per_million_tokens` is of output tokens, None where no GPU has a price."""

    gpu: str
    partition: str | None
    tensor_parallel_size: int
    sequences: int
    time_per_output_token: float
    time_to_first_token: float
    requests_per_second: float
    tokens_per_second_per_gpu: float
    usd_per_million_tokens: float | None
    meets: bool


@record
class Frontier:
    """The Pareto set of `tried` configurations, of which `held` fit into memory: the fastest and
    dearest first."""

    tried: int
    held: int
    operations: tuple[Operation, ...]


@record
class ModelFit:
    """A model in the place of the workload's own: the cheapest layout that serves it on `gpu`. None
    does where that is None: then `nearest` is the GPU that came nearest and `shortfalls` what it
    lacks, or `problem` says why the model cannot be asked."""

    model: str
    parameters: int
    precision: str | None = None
    gpu: str | None = None
    partition: str | None = None
    gpu_count: int | None = None
    tensor_parallel_size: int | None = None
    replicas: int | None = None
    usd_per_hour: Decimal | None = None
    nearest: str | None = None
    shortfalls: tuple[Shortfall, ...] = ()
    problem: str | None = None


@record
class Run:
    """A training run on so many GPUs: the fastest on the nodes that there are, the one on fewest
    that ends in time (where none does, the soonest on any number), the cheapest at all, or one that
    none beats in time and money together.
    `assured` seconds are not exceeded with the wanted confidence. `usd` is of the whole run of
    `tokens`, of which a budget pays `tokens_in_budget`; None where no price is known or no budget
    is asked for. `gpu_watts` are of the boards, `node_watts` of whole servers, where a source
    states them. `lost_share` is what checkpoints and failures add to the time of the steps."""

    purpose: RunPurpose
    gpus: int
    nodes: int
    engine: str
    parallelism: Parallelism
    sharding: str
    seconds: Estimate
    assured: float
    tokens: float
    tokens_in_budget: float | None
    usd_per_hour: Decimal | None
    usd: Decimal | None
    gpu_watts: float
    node_watts: float | None
    utilization: float
    lost_share: float
    checkpoint_bytes: float


@record
class Runs:
    """A run on one kind of node, of which there are `nodes`: so many as were asked for where
    `assumed`, None where any number may be bought. Without a `fabric` it stays on one node.
    `shortfalls`: why none of them hold it."""

    gpu: str
    node_type: str | None
    nodes: int | None
    gpus_per_node: int
    fabric: bool
    assumed: bool
    confidence: float
    runs: tuple[Run, ...]
    shortfalls: tuple[Shortfall, ...] = ()


@record
class Lengths:
    """Tokens of a request, in or out: the mean, and the 95th percentile where it is known."""

    mean: float
    p95: float | None


@record
class Objective:
    """`limit` is the most of a time, the least of a rate (`unit` is `1/s`); one that is `accepted`
    may be missed."""

    name: str
    limit: float
    unit: str
    accepted: bool = False


@record
class Question:
    """What a workload asks of machines. `peak` requests per second are wanted and grow by `growth`;
    None where it states no rate. A run may cost `budget` USD."""

    workload: str
    model: str | None
    precision: str
    input_tokens: Lengths | None
    output_tokens: Lengths | None
    objectives: tuple[Objective, ...]
    confidence: float
    peak: float | None
    growth: float
    budget: float | None = None


@record
class Answer:
    """To one workload: the capacity of each kind of node, the models that were tried, the curve of
    latency against cost, or what ends a training run when."""

    question: Question
    capacities: tuple[Capacity, ...] = ()
    models: tuple[ModelFit, ...] = ()
    frontier: Frontier | None = None
    runs: tuple[Runs, ...] = ()
