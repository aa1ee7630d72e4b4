"""What an account has to be granted before machines are ordered, where a list of quotas says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.catalog.clouds import QuotaFact, load_cloud
from gpuplan.catalog.market import Instance
from gpuplan.plan.model import NodePool
from gpuplan.plan.outside.order import Statement
from gpuplan.units import plural


def quotas(
    provider: str, machines: Sequence[tuple[NodePool, Instance | None]]
) -> Iterator[Statement]:
    """One for each quota that counts some of the machines, with what all of them take of it."""
    facts = load_cloud(provider)
    for quota in facts.quotas if facts else ():
        amount = sum(_amount(quota, *machine) for machine in machines)
        if amount:
            taken = plural(amount, quota.unit.removesuffix("s"))
            code = f", {quota.code}" if quota.code else ""
            yield Statement(
                subject="quotas",
                about=f"{quota.name}{code}: these take {taken}",
                source=f"{quota.source.origin.title}, {quota.source.origin.date}",
            )


def _amount(quota: QuotaFact, pool: NodePool, known: Instance | None) -> int:
    """vCPUs or GPUs of a pool that count; 0 of vCPUs that nobody states."""
    kind = "spot" if pool.spot else "on-demand"
    if quota.capacity not in (kind, "any") or not quota.counts(pool.node_type or ""):
        return 0
    each = pool.gpus_per_node if quota.unit == "GPUs" else (known.vcpus if known else None)
    return pool.node_count * (each or 0)
