"""Whether the NVLink domains of a pool hold all groups that count on one.

Nobody says in which order groups are put on the nodes of a pool, so that each may lie where it
leaves the others least room. Work inside a node is left out: it fills nodes that others began.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpuplan.diagnostics import Diagnostic, error
from gpuplan.plan.model import NodePool, Workload
from gpuplan.units import plural

if TYPE_CHECKING:
    from gpuplan.inventory.v1 import Inventory


def crowded(
    workloads: Sequence[Workload], pools: Sequence[NodePool], inventory: Inventory | None
) -> Iterator[Diagnostic]:
    """An error for each workload some of whose groups may find no domain with enough free nodes."""
    for pool in pools:
        members = [w for w in workloads if w.node_pool == pool.name]
        sizes = _domains(pool, inventory)
        for work in (w for w in members if w.one_domain):
            places = _places(sizes, work, members)
            if places < work.replicas:
                yield _problem(work, pool, places)


def _domains(pool: NodePool, inventory: Inventory | None) -> list[int]:
    """Nodes of each domain that are the pool's: as the inventory has them, else whole domains and
    what is left."""
    if inventory is not None and pool.node_names:
        names = inventory.nvlink_domains
        return sorted(Counter(names.get(n) for n in pool.node_names).values())
    whole, rest = divmod(pool.node_count, pool.domain_nodes)
    return [pool.domain_nodes] * whole + [rest] * (rest > 0)


def _places(sizes: Sequence[int], work: Workload, members: Sequence[Workload]) -> int:
    """Groups of `work` that find place, however the others lie. Each of their nodes takes a place
    where it is the one too many for it, and none of their groups takes more than it can where it
    lies."""
    size = _spread(work)
    others = [w for w in members if w is not work and w.nodes_per_replica > 1]
    nodes = sum(_spread(w) * w.replicas for w in others)
    costs = sorted(n % size + 1 if k == 0 else size for n in sizes for k in range(n // size))
    lost = 0
    for cost in costs:
        nodes -= cost
        lost += nodes >= 0
    blocks = sum(_most_lost(w, size) * w.replicas for w in others)
    return sum(n // size for n in sizes) - min(lost, blocks)


def _most_lost(work: Workload, size: int) -> int:
    """Places of `size` nodes that one group may take: in a domain those that it covers, else one
    with each node."""
    return -(-_spread(work) // size) if work.one_domain else _spread(work)


def _spread(work: Workload) -> int:
    """Nodes of a group, with those that stand by for it."""
    return work.nodes_per_replica + work.spare_nodes


def _problem(work: Workload, pool: NodePool, places: int) -> Diagnostic:
    asked = plural(work.replicas, "group")
    return error(
        "GP041",
        f"the NVLink domains of pool {pool.name} may hold {places} of {asked} of"
        f" {plural(_spread(work), 'node')} that '{work.name}' counts on, beside the others",
        work.origin,
        help="give it a GPU type or a stack of its own, or leave out `nvlink_nodes` (of an"
        " inventory `nvlink_domain`): then it stays inside a node, or uses the fabric",
    )
