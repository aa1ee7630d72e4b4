"""Rules about hosts that stacks hold in an inventory."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.plan.model import named_hosts
from gpuplan.policy.api import Finding, Subject


def held_by_another(subject: Subject) -> Iterator[Finding]:
    """A stack names a host that another stack holds.

    Why: two stacks that name the same GPUs are both in order by themselves. On the cluster the pods
    of the second wait, and on a hypervisor its guests do not start.

    Looks at: the hosts of the plan's pools and guests, and the `allocations` of the inventories
    given with `gpuplan check --inventory`.

    Threshold: none.

    Fix: compile the stack again over that inventory, which gives it other hosts; or `gpuplan
    inventory release` for a stack that is removed.

    Silent: without `--inventory`, and for nodes that are not known by name.
    """
    for name, pool in named_hosts(subject.plan).items():
        holder = subject.holders.get(name, subject.plan.name)
        if holder != subject.plan.name:
            yield Finding(
                resource=f"node_pool/{pool.name}",
                path=f"node_pools[{pool.name}].node_names[{name}]",
                message=f"pool {pool.name} names host {name}, which stack {holder} holds",
                help="compile this stack again over the inventory, or release the other one",
                origin=pool.origin,
            )
