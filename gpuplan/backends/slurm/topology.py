"""Which nodes are near to each other: blocks of NVLink domains, else a tree of switches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from gpuplan.plan.model import Workload
from gpuplan.plan.outside.cluster import Cluster
from gpuplan.render.hostlist import hostlist


def domains(cluster: Cluster) -> dict[str, tuple[str, ...]]:
    """NVLink domains of several machines."""
    members: dict[str, tuple[str, ...]] = {}
    for machine in cluster.machines:
        if machine.nvlink_domain is not None:
            members[machine.nvlink_domain] = (
                *members.get(machine.nvlink_domain, ()),
                *machine.names,
            )
    return {name: hosts for name, hosts in members.items() if len(hosts) > 1}


def plugin(cluster: Cluster) -> str:
    if domains(cluster):
        return "topology/block"
    return "topology/tree" if cluster.switches else "topology/default"


def near(cluster: Cluster, nodes: Sequence[str], work: Workload) -> tuple[str, object] | None:
    """The option of a job that keeps its nodes, some of these, together, where it has several: all
    in one block of NVLink where the plan counts on it, else parts that each lie in one, or the
    fewest leaf switches that have so many."""
    count = work.nodes_per_replica
    if count < 2:
        return None
    if work.one_domain:
        return "segment", count
    if blocks := domains(cluster):
        sizes = [len({*hosts} & {*nodes}) for hosts in blocks.values()]
        smallest = min((s for s in sizes if s), default=0)
        parts = (n for n in range(smallest, 1, -1) if count % n == 0)
        size = next(parts, None)
        return None if size is None else ("segment", size)
    within = sorted((len({*s.hosts} & {*nodes}) for s in cluster.switches if s.hosts), reverse=True)
    for number, held in enumerate(accumulate(within), start=1):
        if held >= count:
            return "switches", number
    return None


def lines(cluster: Cluster) -> Iterator[str]:
    """Of topology.conf. Names of domains are free texts, so blocks are numbered."""
    if blocks := domains(cluster):
        for number, hosts in enumerate(blocks.values(), start=1):
            yield f"BlockName=nvlink{number} Nodes={hostlist(hosts)}"
        yield f"BlockSizes={min(map(len, blocks.values()))}"
        return
    for switch in cluster.switches:
        if switch.hosts:
            yield f"SwitchName={switch.name} Nodes={hostlist(switch.hosts)}"
        else:
            yield f"SwitchName={switch.name} Switches={hostlist(switch.switches)}"
