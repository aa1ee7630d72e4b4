"""What runs: a workload with its model, engine, sizes and settings."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from gpuplan.frozen import record
from gpuplan.plan.costs.recurrence import most_starts
from gpuplan.plan.isolation import Isolation
from gpuplan.plan.partitions import PartitionName
from gpuplan.plan.records import (
    Alternative,
    EngineVariable,
    Estimate,
    Override,
    ResourceUse,
    Shortfall,
    Split,
    Tradeoff,
    origin_field,
)
from gpuplan.plan.settings import (
    Disaggregation,
    ImageGeneration,
    Notebook,
    Serving,
    Training,
)
from gpuplan.plan.times import Statistic
from gpuplan.source import Origin
from gpuplan.units import HOURS_PER_MONTH

Task = Literal["inference", "training", "finetuning", "batch", "notebook"]


@record
class ModelRef:
    """The model that runs; sizes are parameters. `identifier` is what the engine loads,
    `quant_method` what made the weights of its checkpoint of fewer bits."""

    identifier: str
    revision: str | None
    architecture: str
    parameters: int
    active_parameters: int
    source: str
    checkpoint_precision: str | None = None
    quant_method: str | None = None


@record
class Engine:
    """The program that serves or trains, pinned. `digest` is None where no source states it;
    `environment` is what its image wants on the GPUs that it runs on."""

    name: str
    version: str
    image: str
    digest: str | None
    source: str
    environment: tuple[EngineVariable, ...] = ()

    @property
    def given(self) -> bool:
        """Whether the manifest names the image: what its files are, nobody said."""
        return self.source.startswith("manifest:")


@record
class Parallelism:
    """`state_copies`: how many groups of ranks of data parallelism hold what `sharding` divides,
    where it is more than one."""

    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1
    expert_parallel_size: int = 1
    context_parallel_size: int = 1
    state_copies: int | None = None

    @property
    def gpus(self) -> int:
        """GPUs of one replica (expert and context ranks lie inside the others)."""
        return (
            self.tensor_parallel_size
            * self.pipeline_parallel_size
            * self.data_parallel_size
            * self.context_parallel_size
        )


@record
class MemoryBudget:
    """Bytes on one GPU (or partition) at the worst moment. `capacity_bytes` is what the device
    reports, `usable_bytes` what the engine may take of it."""

    weights_bytes: int
    gradients_bytes: int = 0
    optimizer_bytes: int = 0
    activations_bytes: int = 0
    kv_cache_bytes: int = 0
    overhead_bytes: int = 0
    capacity_bytes: int
    usable_bytes: int

    @property
    def used_bytes(self) -> int:
        return (
            self.weights_bytes
            + self.gradients_bytes
            + self.optimizer_bytes
            + self.activations_bytes
            + self.kv_cache_bytes
            + self.overhead_bytes
        )

    @property
    def free_bytes(self) -> int:
        return self.capacity_bytes - self.used_bytes


@record
class Metric:
    """A predicted figure and, where the manifest sets one, its objective: `limit` is an upper bound
    for `at_most`, a lower bound for `at_least`. `probability` is that of meeting it, `statistic`
    what the time of a request is over all requests. An `accepted_miss`, where it is one: the limit
    is missed with the wanted confidence, and the manifest accepts it."""

    name: str
    statistic: Statistic | None = None
    unit: str
    estimate: Estimate
    limit: float | None = None
    sense: Literal["at_most", "at_least"] = "at_most"
    probability: float | None = None
    accepted_miss: Literal[True] | None = None


@record
class Layout:
    """The best layout of its kind on as many GPUs as were chosen: `step_seconds` of one optimizer
    step, `memory_bytes` of one GPU at its worst moment. `gate` says what rejected it: `gpu_memory`,
    or `step` where it is slower."""

    kind: str
    parallelism: Parallelism
    virtual_pipeline_stages: int = 1
    sharding: Literal["none", "zero1", "zero2", "zero3", "hsdp"]
    micro_batch: int
    recompute: Literal["none", "selective", "full"]
    step_seconds: float
    memory_bytes: float
    gate: Literal["gpu_memory", "step"]


@record
class ServedLayout:
    """The best layout of its kind, beside the chosen one on the same nodes. `gate` says what
    rejected it: a resource that `shortfalls` tell, `cost` where it is dearer, `room` where it costs
    as much and has less room, or is slower."""

    kind: str
    parallelism: Parallelism
    nodes_per_replica: int
    replicas: int
    gpu_count: int
    usd_per_hour: Decimal | None
    gate: str
    shortfalls: tuple[Shortfall, ...] = ()


@record
class SecretRef:
    """A secret by reference, never its value: `store` is `config` (stack configuration) or `secret`
    (an existing secret object named `name`)."""

    environment: str
    store: Literal["config", "secret"]
    name: str
    key: str


@record
class EnvironmentVariable:
    name: str
    value: str


@record
class HostResources:
    """What one replica needs beside its GPUs, on each of its nodes. Cores are physical."""

    cpu_cores: int
    host_memory_bytes: int
    shared_memory_bytes: int
    scratch_bytes: int


@record
class Volume:
    """Persistent storage of a workload. `shared`: one that pods on several nodes mount;
    `per_replica`: each replica has its own. `generation` counts on where what stood there before
    could not be changed into this."""

    name: str
    size_bytes: int
    storage_class: str | None
    shared: bool
    per_replica: bool = False
    generation: int | None = None
    mount_path: str
    purpose: Literal["models", "dataset", "checkpoints", "home", "requests", "results"]


@record
class Interruption:
    """What each time costs that the nodes of a replica are taken back: `seconds` of its GPUs, those
    of the restart among them, at `usd`; None where no price is known. A run that has to end in time
    still does after `in_time` of them."""

    seconds: float
    restart_seconds: float
    usd: Decimal | None
    in_time: int | None = None


@record
class Workload:
    """`generation` counts the runs of a workload that ends, where an earlier one could not become
    this one. `after` are the workloads that must have ended well before it starts, `schedule` when
    it starts again, in cron's five fields. `usd_of_storage` is what a run's checkpoints cost while
    it runs; None is unknown. `one_domain`: the plan counts on NVLink between all nodes of a run, or
    of a replica. `packed`: its pods fill nodes one after the other, since others may find none
    where they lie badly. `interruption` is None on nodes that are kept. `cheaper_split` are pools
    for prefill and for decode that would cost less. `balance` is what it meets, the limit that is
    nearest first."""

    name: str
    task: Task
    tenant: str
    description: str | None = None
    model: ModelRef | None = None
    precision: str | None = None
    engine: Engine
    command: tuple[str, ...] = ()
    environment: tuple[EnvironmentVariable, ...] = ()
    secrets: tuple[SecretRef, ...] = ()
    gpu: str
    partition: PartitionName | None = None
    node_pool: str
    parallelism: Parallelism
    replicas: int
    nodes_per_replica: int = 1
    one_domain: Literal[True] | None = None
    packed: Literal[True] | None = None
    gpus_per_node: int
    memory: MemoryBudget
    metrics: tuple[Metric, ...] = ()
    bound_by: str
    resources: HostResources
    volumes: tuple[Volume, ...] = ()
    serving: Serving | None = None
    disaggregation: Disaggregation | None = None
    training: Training | None = None
    image_generation: ImageGeneration | None = None
    notebook: Notebook | None = None
    isolation: Isolation
    priority: Literal["low", "normal", "high", "critical"]
    preemptible: bool
    deadline_seconds: float | None = None
    after: tuple[str, ...] = ()
    schedule: str | None = None
    concurrency: int
    gpu_count: int
    usd_per_hour: Decimal | None
    usd_of_storage: Decimal | None = None
    interruption: Interruption | None = None
    watts: float | None
    alternatives: tuple[Alternative, ...] = ()
    tradeoffs: tuple[Tradeoff, ...] = ()
    balance: tuple[ResourceUse, ...] = ()
    layouts: tuple[Layout, ...] = ()
    served_layouts: tuple[ServedLayout, ...] = ()
    cheaper_split: Split | None = None
    overrides: tuple[Override, ...] = ()
    generation: int | None = None
    renamed_from: tuple[str, ...] = ()
    origin: Origin | None = origin_field()

    @property
    def oldest_name(self) -> str:
        """What its objects, guests and volumes are called: a rename in the manifest keeps them."""
        return self.renamed_from[0] if self.renamed_from else self.name

    @property
    def joined(self) -> bool:
        """Whether its GPUs talk to those of other nodes."""
        return self.nodes_per_replica > 1 or self.disaggregation is not None

    @property
    def gang(self) -> bool:
        """Whether it is a run over nodes that starts once."""
        return self.training is not None and self.nodes_per_replica > 1 and not self.schedule

    @property
    def members(self) -> int:
        """Pods, guests or tasks that it has at once: one for each node of each replica."""
        return self.replicas * self.nodes_per_replica

    @property
    def devices(self) -> int:
        """GPUs that it has at once, or partitions of them where it runs on those."""
        return self.members * self.gpus_per_node

    @property
    def spare_nodes(self) -> int:
        """Nodes that stand by for it."""
        return (self.training.spare_nodes if self.training else None) or 0

    @property
    def run_hours(self) -> Decimal | None:
        """How long work that ends takes; None of what stays."""
        seconds = (m.estimate.value for m in self.metrics if m.name == "time_to_finish")
        return next((Decimal(repr(s)) / 3600 for s in seconds), None)

    @property
    def starts_per_month(self) -> int | None:
        """Of what recurs, in the month that has most of them; None of what does not."""
        if self.schedule is None or self.run_hours is None:
            return None
        return most_starts(self.schedule)

    @property
    def runs_per_month(self) -> Decimal:
        """As many as the dearest month has room for, one after the other, and part of a longer one;
        1 of what stays."""
        hours, times = self.run_hours, self.starts_per_month
        most = Decimal(1 if times is None else times)
        return min(most, HOURS_PER_MONTH / hours) if hours else most

    @property
    def usd_per_month(self) -> Decimal | None:
        """The dearest month: work that ends is paid as long as it runs."""
        if self.usd_per_hour is None:
            return None
        month = Decimal(HOURS_PER_MONTH)
        hours = month if self.run_hours is None else self.run_hours
        return (self.usd_per_run or self.usd_per_hour * hours) * self.runs_per_month

    @property
    def usd_per_run(self) -> Decimal | None:
        """What work that ends costs as a whole, without interruptions; None of what stays or has no
        price."""
        if self.run_hours is None or self.usd_per_hour is None:
            return None
        usd = self.usd_per_hour * self.run_hours + (self.usd_of_storage or 0)
        return usd.quantize(Decimal("0.000001"))

    @property
    def unpriced_storage(self) -> bool:
        """Whether nobody knows what the storage of its checkpoints costs."""
        writes = any(v.purpose == "checkpoints" for v in self.volumes)
        return writes and self.usd_of_storage is None

    @property
    def storage_bytes(self) -> int:
        """A shared volume once, any other for each node of each replica."""
        return sum(v.size_bytes * (1 if v.shared else self.members) for v in self.volumes)
