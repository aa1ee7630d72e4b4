"""The plan: concrete infrastructure, independent of any tool that will build it.

Frozen, keyword-only records; tuples, never dicts or sets; base units, in the name.
Backends, policies and reports know these records and nothing else of the compiler. `plan.yaml` in a
stack is this tree in canonical form (`gpuplan.plan.serialize`). All records are importable here.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Literal, Protocol, TypeVar

from gpuplan.frozen import record
from gpuplan.plan.isolation import Isolation
from gpuplan.plan.outside.cloud import Cloud
from gpuplan.plan.outside.cluster import Cluster
from gpuplan.plan.outside.network import Network
from gpuplan.plan.outside.order import Order
from gpuplan.plan.outside.regions import Regions
from gpuplan.plan.records import (
    Alternative,
    Basis,
    Estimate,
    Evidence,
    Flip,
    Input,
    Lack,
    Override,
    ResourceUse,
    Shortfall,
    Tradeoff,
)
from gpuplan.plan.settings import (
    Disaggregation,
    ImageGeneration,
    Notebook,
    Serving,
    Speculative,
    Training,
)
from gpuplan.plan.site import (
    CheaperMachine,
    ClusterJoin,
    Core,
    CpuPin,
    Disk,
    GpuLayout,
    GuestCell,
    GuestDevice,
    GuestImage,
    Host,
    MigInstance,
    Neighbour,
    NodeLayout,
    NodePool,
    NumaNode,
    Partition,
    PciDevice,
    Room,
    VirtualMachine,
)
from gpuplan.plan.tree import PLAN_VERSION
from gpuplan.plan.workload import (
    Engine,
    EnvironmentVariable,
    HostResources,
    Interruption,
    Layout,
    MemoryBudget,
    Metric,
    ModelRef,
    Parallelism,
    SecretRef,
    ServedLayout,
    Task,
    Volume,
    Workload,
)
from gpuplan.units import HOURS_PER_MONTH, format_quantity, format_usd

__all__ = [
    "PLAN_VERSION",
    "Alternative",
    "Basis",
    "CheaperMachine",
    "Cloud",
    "Cluster",
    "ClusterJoin",
    "Component",
    "Core",
    "Cost",
    "CpuPin",
    "Digest",
    "Disaggregation",
    "Disk",
    "Engine",
    "EnvironmentVariable",
    "Estimate",
    "Evidence",
    "Fabric",
    "Flip",
    "GpuLayout",
    "GuestCell",
    "GuestDevice",
    "GuestImage",
    "Host",
    "HostResources",
    "ImageGeneration",
    "Input",
    "Interruption",
    "Lack",
    "Layout",
    "MemoryBudget",
    "Metric",
    "MigInstance",
    "ModelRef",
    "Neighbour",
    "NodeLayout",
    "NodePool",
    "Notebook",
    "NumaNode",
    "Operators",
    "Order",
    "Override",
    "Parallelism",
    "Partition",
    "PciDevice",
    "Plan",
    "Provenance",
    "Regions",
    "ResourceUse",
    "Room",
    "SecretRef",
    "ServedLayout",
    "Serving",
    "Shortfall",
    "Speculative",
    "Task",
    "Tenant",
    "Tradeoff",
    "Training",
    "VirtualMachine",
    "Volume",
    "Workload",
    "by_name",
    "named_hosts",
    "record",
]


class Named(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


@record
class Fabric:
    """`oversubscription`: how many times less than their rate the nodes of a switch, of
    `nodes_per_switch`, have to all others; 1 everywhere the same. `switch_label` is a node's."""

    kind: Literal["infiniband", "roce", "efa", "ethernet"]
    bytes_per_s_per_gpu: float
    resource: str | None
    oversubscription: float | None = None
    nodes_per_switch: int | None = None
    switch_label: str | None = None

    def divided(self, nodes: int | None) -> float:
        """By what the rate between so many nodes is less; None: any of the cluster."""
        beyond = nodes is None or nodes > (self.nodes_per_switch or 1)
        return (self.oversubscription or 1.0) if beyond else 1.0


@record
class Tenant:
    """A namespace with its quota."""

    name: str
    gpu_quota: int
    partition_quota: tuple[tuple[str, int], ...] = ()
    storage_quota_bytes: int
    isolation: Isolation


@record
class RetainedClaim:
    """A volume of the stack as it was, kept for its data though nothing mounts it any more.
    `workload` is the name of its objects, `key` the claim's identity in the stack. `pods` counts
    the claims that a StatefulSet made, one a pod, from the first pod that it has no more."""

    key: str
    workload: str
    volume: str
    generation: int | None = None
    tenant: str
    size_bytes: int
    storage_class: str | None
    shared: bool
    pods: int | None = None


@record
class Component:
    """A pinned add-on. `digest` is None where no source states it; `source` says where the version
    was found. `driver` is the GPU driver that it installs, told so where `driver_asked_for` and by
    itself elsewhere. `kubernetes_tested` are the oldest and the newest minor release that a source
    states for it. `untested` is why somebody takes it beside what sources state.
    `uninstall_removes` are the definitions of kinds that its removal takes from all of the cluster,
    with their objects."""

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
    driver_asked_for: Literal[True] | None = None
    kubernetes_tested: tuple[str, ...] = ()
    untested: str | None = None
    uninstall_removes: tuple[str, ...] = ()


@record
class Cost:
    """Sums over the priced pools; `unpriced` names the pools that no price is known for, and
    `boards_only` those whose watts are their GPU boards' alone. `usd_per_hour` is while all work
    runs. Of the runs that end `runs_usd_per_hour` is their part of it, and `runs_usd_per_month`
    what they cost in one month, each the time that it takes. `recurring_usd_per_month` is the part
    of that which comes again, of runs with a schedule, in the month with most starts;
    `usd_of_runs` what the others cost as a whole; None without one. `unpriced_storage` names the
    runs whose checkpoints' storage no price is known for."""

    usd_per_hour: Decimal | None
    runs_usd_per_hour: Decimal = Decimal(0)
    runs_usd_per_month: Decimal = Decimal(0)
    recurring_usd_per_month: Decimal | None = None
    usd_of_runs: Decimal | None = None
    budget_usd_per_hour: Decimal | None
    unpriced: tuple[str, ...] = ()
    unpriced_storage: tuple[str, ...] = ()
    watts: float | None
    boards_only: tuple[str, ...] = ()
    price_source: str
    price_date: str

    @property
    def power(self) -> str | None:
        """`10.2 kW at most`, or of GPU boards alone, which is said."""
        if self.watts is None:
            return None
        text = f"{format_quantity(self.watts, 'W')} at most"
        if not self.boards_only:
            return f"{text}, whole servers"
        return f"{text}, GPU boards only in {', '.join(self.boards_only)}"

    @property
    def runs_are_paid(self) -> bool:
        """Whether something that ends or recurs takes nodes that would else not be there."""
        return bool(self.usd_of_runs or self.recurring_usd_per_month)

    @property
    def staying_usd_per_month(self) -> Decimal | None:
        """What does not end."""
        if self.usd_per_hour is None:
            return None
        return (self.usd_per_hour - self.runs_usd_per_hour) * HOURS_PER_MONTH

    @property
    def usd_per_month(self) -> Decimal | None:
        """The dearest month."""
        staying = self.staying_usd_per_month
        return None if staying is None else staying + self.runs_usd_per_month

    @property
    def budget_usd_per_month(self) -> Decimal | None:
        if self.budget_usd_per_hour is None:
            return None
        return self.budget_usd_per_hour * HOURS_PER_MONTH

    @property
    def over_budget(self) -> bool:
        """Whether the dearest month costs more than a month's budget."""
        limit = self.budget_usd_per_month
        return limit is not None and self.usd_per_month is not None and self.usd_per_month > limit

    @property
    def amounts(self) -> str:
        """`$2.24/h, $1,637/month of a budget of $5,000/month`; what ends has no price of a month.
        Some pool has a price."""
        assert self.usd_per_hour is not None
        assert self.usd_per_month is not None
        hour, month = format_usd(self.usd_per_hour), format_usd(self.usd_per_month)
        limit = self.budget_usd_per_month
        budget = "" if limit is None else f" of a budget of {format_usd(limit)}/month"
        if not self.runs_are_paid:
            text = f"{hour}/h, {month}/month{budget}"
            kinds = (("ends", self.usd_of_runs), ("recurs", self.recurring_usd_per_month))
            if free := " and what ".join(kind for kind, usd in kinds if usd is not None):
                takes = "take" if " and " in free else "takes"
                text += f"; what {free} {takes} GPUs that are paid for anyway"
        else:
            staying, again = self.staying_usd_per_month, self.recurring_usd_per_month
            parts = [f"{format_usd(staying)}/month"] if staying else []
            parts += [f"{format_usd(again)}/month for what recurs"] if again else []
            parts += [f"{format_usd(self.usd_of_runs)} for what ends"] if self.usd_of_runs else []
            text = f"{hour}/h while all runs; {' and '.join(parts)}"
            text += f"; at most {month} in a month{budget}" if budget or len(parts) > 1 else ""
        stored = (f"the checkpoints of {name}" for name in self.unpriced_storage)
        unpriced = ", ".join((*self.unpriced, *stored))
        return f"{text}, without {unpriced} (unpriced)" if unpriced else text


@record
class Digest:
    name: str
    sha256: str


@record
class Provenance:
    """What this plan was made from: enough to make it again. `catalog` are the entries of the
    catalogue that it rests on, each with its digest, and `catalog_sha256` is of them all."""

    gpuplan_version: str
    catalog_sha256: str
    catalog: tuple[Digest, ...] = ()
    inputs: tuple[Digest, ...] = ()


# Which Pulumi stack has the cluster's operators, where it is not the one of the workloads.
Operators = Literal["separate", "elsewhere"]


@record
class Plan:
    name: str
    target: str
    region: str | None = None
    kubernetes_version: str | None = None
    description: str | None = None
    workloads: tuple[Workload, ...]
    tenants: tuple[Tenant, ...] = ()
    retained_claims: tuple[RetainedClaim, ...] = ()
    node_pools: tuple[NodePool, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()
    hosts: tuple[Host, ...] = ()
    virtual_machines: tuple[VirtualMachine, ...] = ()
    fabric: Fabric | None = None
    queue: str | None = None
    jobs: Literal["jobset"] | None = None
    operators: Operators | None = None
    ansible: bool = False
    network: Network | None = None
    cluster: Cluster | None = None
    cloud: Cloud | None = None
    regions: Regions | None = None
    orders: tuple[Order, ...] = ()
    components: tuple[Component, ...] = ()
    balancer: Engine | None = None
    router: Engine | None = None
    monitors: tuple[Engine, ...] = ()
    quadlet: bool = False
    cost: Cost
    provenance: Provenance
    evidence: tuple[Evidence, ...] = ()

    @property
    def plugin_on_nodes(self) -> bool:
        """Whether nodes come with what offers GPUs to pods: a part of a GPU counts as one there."""
        return self.cloud is not None and self.cloud.plugin_on_nodes


def named_hosts(plan: Plan) -> dict[str, NodePool]:
    """The hosts that a plan takes, each with its pool: those of its guests, else of its pools;
    nodes without names are none."""
    guests = {machine.host for machine in plan.virtual_machines}
    pools = {name: pool for pool in plan.node_pools for name in pool.node_names}
    return {name: pool for name, pool in pools.items() if not guests or name in guests}


def by_name(records: tuple[N, ...], name: str) -> N:
    """The record called `name`; a plan that names something it does not hold is a bug."""
    return next(r for r in records if r.name == name)
