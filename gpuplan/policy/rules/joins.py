"""Rules about guests that become nodes of a cluster."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.plan.model import ClusterJoin
from gpuplan.policy.api import Finding, Subject


def one_cluster(subject: Subject) -> Iterator[Finding]:
    """The guests of a workload are not all nodes of one cluster.

    Why: a guest that joins starts no engine, and one that does not starts its own. Of guests that
    are divided some serve, others wait for a scheduler, and what was sized is nowhere whole.

    Looks at: what the inventory says of the hosts that a workload's guests are on
    (`hypervisor.join`).

    Threshold: none.

    Fix: give the hosts of one workload the same `hypervisor.join`, or none of them one.

    Silent: about whether a cluster is there, and takes the token: only its guests find out.
    """
    known = {h.name: h.join for h in subject.plan.hosts}
    for workload in subject.plan.workloads:
        guests = [m for m in subject.plan.virtual_machines if m.workload == workload.name]
        joins = {m.host: known[m.host] for m in guests if m.host in known}
        if len(set(joins.values())) > 1:
            said = ", ".join(f"{host}: {_words(join)}" for host, join in sorted(joins.items()))
            yield Finding(
                resource=f"workload/{workload.name}",
                path=f"workloads[{workload.name}]",
                message=f"guests of {workload.name} are not nodes of one cluster ({said})",
                help="give their hosts the same hypervisor.join, or none of them one",
                origin=workload.origin,
            )


def _words(join: ClusterJoin | None) -> str:
    return f"{join.kind} {join.server}" if join else "none"
