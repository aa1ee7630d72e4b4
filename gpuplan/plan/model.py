"""The plan: concrete infrastructure, independent of any tool that will build it.

Frozen, slotted, keyword-only records; tuples, never dicts or sets; base units, in the name. Backends,
policies and reports know these records and nothing else of the compiler. `plan.yaml` in a stack is
this tree in canonical form (`gpuplan.plan.serialize`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal, TypeVar, dataclass_transform

from gpuplan.source import Origin

PLAN_VERSION = "gpuplan.dev/plan/v1"

T = TypeVar("T")
Basis = Literal["measured", "calibrated", "extrapolated", "derived"]
Task = Literal["inference", "training", "finetuning", "batch", "notebook"]


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """A frozen, slotted, keyword-only dataclass."""
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)


def _origin() -> Origin | None:
    return field(default=None, compare=False)  # type: ignore[no-any-return]


# --- numbers and where they come from -------------------------------------------------------------


@record
class Estimate:
    """A predicted value with its 90 % interval (`low` ≤ `value` ≤ `high`)."""

    value: float
    low: float
    high: float
    basis: Basis


@record
class Input:
    """One input of a formula. `source` is `quantity:NAME` for another derived number, else a
    citation: `manifest: PATH`, `catalog: FILE FIELD (publisher, date)`, `default: FIELD`, `constant: …`."""

    name: str
    value: float
    unit: str
    source: str


@record
class Evidence:
    """How a number came about: `value` is `formula` evaluated over `inputs`. `quantity` is
    `WORKLOAD.NAME`. An overridden number keeps its derivation and carries `overridden_by`."""

    quantity: str
    value: float
    unit: str
    formula: str
    source: str
    inputs: tuple[Input, ...] = ()
    overridden_by: str | None = None


@record
class Shortfall:
    """A gate that a candidate did not pass: `requested` + `used` exceeds `capacity`."""

    resource: str
    requested: float
    used: float
    capacity: float
    unit: str


@record
class Flip:
    """What would have to change for a rejected candidate to be chosen."""

    quantity: str
    now: float
    needed: float
    unit: str


@record
class Alternative:
    """A candidate that was not chosen. `gate` names what rejected it (`cost` when it was feasible
    but dearer); `shortfalls` are the verdicts; `usd_per_hour` is None when unpriced."""

    gpu: str
    gpu_count: int
    tensor_parallel_size: int
    replicas: int
    usd_per_hour: Decimal | None
    gate: str
    shortfalls: tuple[Shortfall, ...] = ()
    flip: Flip | None = None


@record
class Override:
    """A value of the manifest that replaced a derived one."""

    quantity: str
    derived: float | None
    value: float | str
    unit: str
    origin: Origin | None = _origin()


# --- what runs --------------------------------------------------------------------------------------


@record
class ModelRef:
    """The model that runs; sizes are parameters, not bytes. `identifier` is what the engine loads."""

    identifier: str
    revision: str | None
    architecture: str
    parameters: int
    active_parameters: int
    source: str


@record
class Engine:
    """The program that serves or trains, pinned. `digest` is None where no source states it."""

    name: str
    version: str
    image: str
    digest: str | None
    source: str


@record
class Parallelism:
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    data_parallel_size: int = 1
    expert_parallel_size: int = 1
    context_parallel_size: int = 1

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
    for `at_most`, a lower bound for `at_least`. `probability` of meeting it comes from the interval."""

    name: str
    unit: str
    estimate: Estimate
    limit: float | None = None
    sense: Literal["at_most", "at_least"] = "at_most"
    probability: float | None = None


@record
class Serving:
    """Settings of an inference engine that the sizing derived."""

    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    gpu_memory_utilization: float
    kv_cache_dtype: str
    port: int


@record
class Training:
    """Settings of a training run that the sizing derived."""

    method: Literal["full", "lora", "qlora", "pretraining"]
    sequence_length: int
    global_batch_sequences: int
    micro_batch_sequences: int
    gradient_accumulation_steps: int
    steps: int
    optimizer: str
    recompute: Literal["none", "selective", "full"]
    sharding: Literal["none", "zero1", "zero2", "zero3"]
    lora_rank: int | None = None
    checkpoint_interval_seconds: float | None = None
    dataset: str | None = None


@record
class ImageGeneration:
    """Settings of an image service."""

    width: int
    height: int
    steps: int
    max_batch_size: int
    port: int


@record
class Notebook:
    """One interactive environment per user."""

    users: int
    gpu_memory_bytes: int


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
    memory_bytes: int
    shared_memory_bytes: int
    scratch_bytes: int


@record
class Volume:
    """Persistent storage of a workload."""

    name: str
    size_bytes: int
    storage_class: str | None
    shared: bool
    mount_path: str
    purpose: Literal["models", "dataset", "checkpoints", "home"]


@record
class Workload:
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
    partition: str | None = None
    node_pool: str
    parallelism: Parallelism
    replicas: int
    nodes_per_replica: int = 1
    gpus_per_node: int
    memory: MemoryBudget
    metrics: tuple[Metric, ...] = ()
    bound_by: str
    resources: HostResources
    volumes: tuple[Volume, ...] = ()
    serving: Serving | None = None
    training: Training | None = None
    image_generation: ImageGeneration | None = None
    notebook: Notebook | None = None
    isolation: Literal["shared", "gpu", "node", "vm"]
    priority: Literal["low", "normal", "high", "critical"]
    preemptible: bool
    deadline_seconds: float | None = None
    concurrency: int
    gpu_count: int
    usd_per_hour: Decimal | None
    watts: float | None
    alternatives: tuple[Alternative, ...] = ()
    overrides: tuple[Override, ...] = ()
    renamed_from: tuple[str, ...] = ()
    origin: Origin | None = _origin()


# --- where it runs ----------------------------------------------------------------------------------


@record
class MigInstance:
    profile: str
    start: int
    size: int


@record
class PartitionLayout:
    """The partitions of each GPU of a pool. `instances` is one GPU's MIG layout in creation order;
    `vgpu_type` with `per_gpu` a vGPU layout. `resource` is what schedulers count."""

    kind: Literal["mig", "vgpu"]
    name: str
    instances: tuple[MigInstance, ...] = ()
    vgpu_type: str | None = None
    per_gpu: int
    memory_bytes: int
    resource: str


@record
class NodePool:
    """Equal GPU nodes. `node_names` is empty when the nodes are not known by name. Cores are
    physical; `cpu_cores`, `memory_bytes` and prices are per node; None is unknown, never zero."""

    name: str
    node_type: str | None
    gpu: str
    node_count: int
    node_names: tuple[str, ...] = ()
    gpus_per_node: int
    gpu_memory_bytes: int
    gpu_product: str
    cpu_cores: int | None
    memory_bytes: int | None
    numa_nodes: int | None
    interconnect: str
    interconnect_bytes_per_s: float
    partitions: PartitionLayout | None = None
    usd_per_hour: Decimal | None
    watts: float | None
    origin: Origin | None = _origin()


@record
class Core:
    """A physical core: the host CPU numbers of its threads."""

    cpus: tuple[int, ...]


@record
class NumaNode:
    node: int
    cores: tuple[Core, ...]
    memory_bytes: int
    reserved_cores: tuple[Core, ...]
    hugepages: int
    distances: tuple[int, ...]


@record
class PciDevice:
    """A host device. `address` is `dddd:bb:dd.f`; `switch` groups devices behind one PCIe switch."""

    kind: Literal["gpu", "nic", "nvme"]
    model: str
    address: str
    numa_node: int
    iommu_group: int | None
    switch: str | None
    virtual_functions: int = 0


@record
class Host:
    """A hypervisor host with its reservations."""

    name: str
    sockets: int
    threads_per_core: int
    numa_nodes: tuple[NumaNode, ...]
    devices: tuple[PciDevice, ...]
    hugepage_bytes: int
    kernel_parameters: tuple[str, ...]
    cpu_vendor: Literal["intel", "amd", "arm"]
    physical_address_bits: int | None
    origin: Origin | None = _origin()


@record
class CpuPin:
    vcpu: int
    cpu: int


@record
class GuestCell:
    """A guest NUMA cell on one host node."""

    cell: int
    host_node: int
    pins: tuple[CpuPin, ...]
    memory_bytes: int
    emulator_cpus: tuple[int, ...]
    iothread_cpus: tuple[int, ...]


@record
class GuestDevice:
    """A host device (or a virtual function of one) in a guest. `address` is the function that is
    attached; `parent` the physical function it belongs to; `vgpu_type` the type set on a GPU's VF."""

    name: str
    kind: Literal["gpu", "vgpu", "nic", "nvme"]
    address: str
    parent: str | None = None
    cell: int
    group: int
    managed: bool
    mac: str | None = None
    vlan: int | None = None
    vgpu_type: str | None = None
    bar_bytes: int | None = None


@record
class Disk:
    name: str
    source: str
    size_bytes: int


@record
class VirtualMachine:
    name: str
    uuid: str
    host: str
    workload: str
    cells: tuple[GuestCell, ...]
    threads_per_core: int
    memory_bytes: int
    hugepage_bytes: int
    devices: tuple[GuestDevice, ...]
    disks: tuple[Disk, ...]
    bridge: str
    mac: str
    physical_address_bits: int | None
    origin: Origin | None = _origin()


@record
class Fabric:
    kind: Literal["infiniband", "roce", "ethernet"]
    bytes_per_s_per_gpu: float
    resource: str | None


@record
class Tenant:
    """A namespace with its quota."""

    name: str
    gpu_quota: int
    partition_quota: tuple[tuple[str, int], ...] = ()
    storage_quota_bytes: int
    isolation: Literal["shared", "gpu", "node", "vm"]


@record
class Component:
    """A pinned add-on. `digest` is None where no source states it; `source` says where the version
    was found."""

    name: str
    version: str
    app_version: str | None
    repository: str
    chart: str
    digest: str | None
    namespace: str
    kubernetes_minimum: str | None
    driver: str | None
    source: str


@record
class Cost:
    """Sums over the priced pools; `unpriced` names the pools that no price is known for."""

    usd_per_hour: Decimal | None
    budget_usd_per_hour: Decimal | None
    unpriced: tuple[str, ...] = ()
    watts: float | None
    price_source: str
    price_date: str


@record
class Digest:
    name: str
    sha256: str


@record
class Provenance:
    """What this plan was made from: enough to make it again."""

    gpuplan_version: str
    catalog_sha256: str
    inputs: tuple[Digest, ...] = ()


@record
class Plan:
    name: str
    target: str
    region: str | None = None
    description: str | None = None
    workloads: tuple[Workload, ...]
    tenants: tuple[Tenant, ...] = ()
    node_pools: tuple[NodePool, ...] = ()
    hosts: tuple[Host, ...] = ()
    virtual_machines: tuple[VirtualMachine, ...] = ()
    fabric: Fabric | None = None
    components: tuple[Component, ...] = ()
    cost: Cost
    provenance: Provenance
    evidence: tuple[Evidence, ...] = ()


def by_name(records: tuple[T, ...], name: str) -> T:
    """The record called `name`; a plan that names something it does not hold is a bug."""
    return next(r for r in records if r.name == name)  # type: ignore[attr-defined]


