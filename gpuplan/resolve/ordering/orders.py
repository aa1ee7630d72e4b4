"""What has to be ordered of whom, where a stack does not make its machines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpuplan.catalog.load import Catalog
from gpuplan.catalog.market import Instance, load_market
from gpuplan.catalog.providers import ProviderFacts, load_provider
from gpuplan.plan.model import NodePool, Workload
from gpuplan.plan.outside.order import Order, OrderedMachine, Page, Statement, Subject
from gpuplan.plan.outside.scratch import most_scratch_bytes
from gpuplan.resolve.ordering.architecture import architecture_of
from gpuplan.resolve.ordering.quotas import quotas
from gpuplan.targets import TARGETS

WANTED: tuple[Subject, ...] = ("machines", "prices", "quotas")
OF_KUBERNETES: tuple[Subject, ...] = ("kubernetes", "driver")


def orders(
    target: str, pools: Sequence[NodePool], workloads: Sequence[Workload], catalog: Catalog
) -> tuple[Order, ...]:
    """One for each provider that nodes are rented of, by name; none where the stack makes them."""
    if TARGETS[target].provider is not None:
        return ()
    rented = sorted({pool.provider for pool in pools if pool.provider})
    return tuple(_order(name, target, pools, workloads, catalog) for name in rented)


def _order(
    provider: str,
    target: str,
    pools: Sequence[NodePool],
    workloads: Sequence[Workload],
    catalog: Catalog,
) -> Order:
    facts = load_provider(provider)
    own = [pool for pool in pools if pool.provider == provider]
    machines = tuple(_machine(pool, workloads, catalog) for pool in own)
    asked = _asked(target, own, machines)
    lists = _listed(own)
    counted = tuple(quotas(provider, [(pool, _instance(pool)) for pool in own]))
    if facts is None:
        left = _open(s for s in asked if s not in lists)
        return Order(provider=provider, name=provider, machines=machines, not_known=left)
    pages = tuple(
        Page(subject=subject, title=source.title, url=source.where, date=source.date)
        for subject, source in facts.links
        if subject in asked
    )
    stated = tuple(
        Statement(subject=s.subject, about=s.about, source=f"{s.source.title}, {s.source.date}")
        for s in facts.statements
        if s.subject in asked
    )
    stated += counted
    known = {p.subject for p in pages} | {s.subject for s in stated} | lists
    kubernetes = TARGETS[target].installs_components
    return Order(
        provider=provider,
        name=facts.name,
        machines=machines,
        pages=pages,
        statements=stated,
        driver_by=facts.driver_by if kubernetes else None,
        node_pools=_manifests(facts, own) if kubernetes else None,
        not_known=_open(s for s in asked if s not in known),
    )


def _listed(own: Sequence[NodePool]) -> set[Subject]:
    """What the catalogue's own lists say of each machine: that there is one, and its price."""
    subjects: set[Subject] = set()
    if all(_instance(pool) for pool in own):
        subjects.add("machines")
    if all(pool.usd_per_hour is not None for pool in own):
        subjects.add("prices")
    return subjects


def _open(subjects: Iterable[Subject]) -> tuple[Subject, ...]:
    """Capacity is asked for where there is a page of it."""
    return tuple(subject for subject in subjects if subject != "capacity")


def _manifests(facts: ProviderFacts, pools: Sequence[NodePool]) -> str | None:
    """How spare capacity is asked for there is in no source."""
    return None if any(pool.spot for pool in pools) else facts.node_pools


def _asked(
    target: str, pools: Sequence[NodePool], machines: Sequence[OrderedMachine]
) -> tuple[Subject, ...]:
    """What somebody who orders wants to know."""
    asked: list[Subject] = [*WANTED, "capacity"]
    asked += OF_KUBERNETES if TARGETS[target].installs_components else ()
    asked += ("network",) if any(machine.together for machine in machines) else ()
    asked += ("disks",) if any(_disks_open(machine) for machine in machines) else ()
    asked += ("spot",) if any(pool.spot for pool in pools) else ()
    return tuple(asked)


def _disks_open(machine: OrderedMachine) -> bool:
    """Whether pods need room on a disk that no list tells the size of."""
    return bool(machine.scratch_bytes) and machine.nvme_bytes is None


def _machine(pool: NodePool, workloads: Sequence[Workload], catalog: Catalog) -> OrderedMachine:
    own = [work for work in workloads if work.node_pool == pool.name]
    known = _instance(pool)
    return OrderedMachine(
        pool=pool.name,
        architecture=architecture_of(pool.gpu, catalog),
        vcpus=known.vcpus if known else None,
        nvme_drives=known.nvme_drives if known else None,
        nvme_bytes=known.nvme_bytes if known else None,
        rdma=known.rdma.kind if known and known.rdma else None,
        scratch_bytes=most_scratch_bytes(pool, own),
        together=any(work.joined for work in own),
    )


def _instance(pool: NodePool) -> Instance | None:
    machines = load_market().of_gpu(pool.gpu)
    named = (m for m in machines if (m.provider, m.name) == (pool.provider, pool.node_type))
    return next(named, None)
