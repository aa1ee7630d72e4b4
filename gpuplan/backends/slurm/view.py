"""The cluster as Slurm sees it: nodes that are alike, and partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from gpuplan.backends.slurm.names import gpu_type, instance_type, word
from gpuplan.plan.isolation import own_pool
from gpuplan.plan.model import GpuLayout, NodePool, Plan, Workload, by_name, record
from gpuplan.plan.outside.cluster import Cluster, Machine
from gpuplan.plan.partitions import PartitionName
from gpuplan.plan.site import Partition as Share
from gpuplan.units import MIB

REST, SPARE = "rest", "spare"


@record
class Nodes:
    """Nodes with one line in slurm.conf: machines of one kind, in one pool, cut alike into some of
    the pool's `shares`."""

    names: tuple[str, ...]
    machine: Machine
    pool: str | None
    cuts: tuple[GpuLayout, ...] = ()
    shares: tuple[Share, ...] = ()

    @property
    def type(self) -> str:
        return gpu_type(self.machine.gpu, self.machine.gpu_product)

    def kind(self, profile: PartitionName | None) -> str:
        """What a job asks for that gets such a part of a GPU; None is a whole one."""
        if profile is None:
            return self.type
        return instance_type(profile, by_name(self.shares, profile).memory_bytes)

    @property
    def gres(self) -> tuple[tuple[str, int], ...]:
        """What jobs may ask for and how many a node has: whole GPUs, then instances."""
        whole = self.machine.gpus - sum(len(cut.gpus) for cut in self.cuts)
        counts: Counter[str] = Counter()
        for cut in self.cuts:
            for profile, number in cut.counts.items():
                counts[self.kind(profile)] += number * len(cut.gpus)
        return tuple((n, c) for n, c in ((self.type, whole), *sorted(counts.items())) if c)

    @property
    def said_gres(self) -> str:
        """As slurm.conf says them: `gpu:a100:1,gpu:1g.10gb:49`."""
        whole = [f"gpu:{name}:{count}" for name, count in self.gres]
        return ",".join([*whole, *[f"shard:{self.shards}"] * bool(self.shards)])

    @property
    def shards(self) -> int:
        """How many parts of GPUs, in time slices, a node offers beside whole ones. None of one that
        is cut: Slurm makes none of MIG devices."""
        return 0 if self.cuts else self.machine.gpus * (self.machine.time_slices or 0)

    @property
    def memory_mib(self) -> int:
        machine = self.machine
        return int((machine.memory_bytes - machine.kept_memory_bytes) // MIB)

    @property
    def features(self) -> tuple[str, ...]:
        said = (self.machine.node_type or "", self.machine.gpu, self.pool or "")
        return tuple(dict.fromkeys(filter(None, map(word, said))))


@record
class Partition:
    """`accounts` are those that may use it, all where there are none. What is in a `spare` one
    gives way to all others."""

    name: str
    nodes: tuple[str, ...]
    accounts: tuple[str, ...] = ()
    spare: bool = False


def nodes(plan: Plan, cluster: Cluster) -> Iterator[Nodes]:
    pools = {name: pool for pool in plan.node_pools for name in pool.node_names}
    for machine in cluster.machines:
        alike: dict[tuple[str | None, tuple[GpuLayout, ...]], list[str]] = {}
        for name in machine.names:
            pool = pools.get(name)
            key = (pool.name, _cuts(pool, name)) if pool else (None, ())
            alike.setdefault(key, []).append(name)
        for (where, cuts), names in alike.items():
            shares = by_name(plan.node_pools, where).partitions if where else ()
            yield Nodes(names=tuple(names), machine=machine, pool=where, cuts=cuts, shares=shares)


def _cuts(pool: NodePool, name: str) -> tuple[GpuLayout, ...]:
    return next((layout.gpus for layout in pool.layouts if name in layout.node_names), ())


def partitions(plan: Plan, every: Sequence[Nodes]) -> Iterator[Partition]:
    """One for each pool, one for the nodes of none, and one of all that work which gives way may
    use; what is a tenant's own is in none but its partition."""
    closed: set[str] = set()
    for pool in plan.node_pools:
        members = [w for w in plan.workloads if w.node_pool == pool.name]
        own = any(own_pool(w.isolation, partitioned=w.partition is not None) for w in members)
        tenants = dict.fromkeys(w.tenant for w in members) if own else ()
        accounts = tuple(name for t in tenants for name in (t, spare_account(t)))
        closed |= set(pool.node_names) if own else set()
        yield Partition(name=pool.name, nodes=pool.node_names, accounts=accounts)
    if rest := tuple(n for group in every if group.pool is None for n in group.names):
        yield Partition(name=REST, nodes=rest)
    if shared := tuple(n for group in every for n in group.names if n not in closed):
        yield Partition(name=SPARE, nodes=shared, spare=True)


def spare_account(tenant: str) -> str:
    """No tenant's name has a `_`."""
    return f"{tenant}_{SPARE}"


def account(workload: Workload) -> str:
    return spare_account(workload.tenant) if workload.preemptible else workload.tenant


def qos(workload: Workload) -> str:
    return f"{workload.priority}-preemptible" if workload.preemptible else workload.priority


def of_pool(every: Sequence[Nodes], workload: Workload) -> Nodes:
    return next(group for group in every if group.pool == workload.node_pool)
