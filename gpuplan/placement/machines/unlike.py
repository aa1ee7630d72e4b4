"""Hosts of one workload's guests that are unlike inside. The guests have the same cores and memory,
but what is near to what differs from one to the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gpuplan.diagnostics import Diagnostic
from gpuplan.placement.machines.guests import Guest
from gpuplan.placement.machines.hypervisors import Hypervisor
from gpuplan.placement.problems import unlike_hosts
from gpuplan.plan.model import NumaNode, VirtualMachine
from gpuplan.units import plural


def unlike(
    hypervisors: Iterable[Hypervisor],
    placed: Mapping[str, VirtualMachine],
    guests: Sequence[Guest],
) -> Iterator[Diagnostic]:
    """One for each workload whose guests are on hosts of several kinds."""
    known = {h.host.name: h for h in hypervisors}
    for name in dict.fromkeys(g.workload.name for g in guests):
        own = [g for g in guests if g.workload.name == name]
        kinds: dict[tuple[str, ...], list[str]] = {}
        for host in dict.fromkeys(placed[g.name].host for g in own if g.name in placed):
            described = _described(known[host], networked=own[0].networked)
            kinds.setdefault(described, []).append(host)
        apart = [len({fact for fact in facts if fact}) > 1 for facts in zip(*kinds, strict=True)]
        if any(apart):
            said = [
                (hosts, [f for f, differs in zip(facts, apart, strict=True) if differs and f])
                for facts, hosts in kinds.items()
            ]
            between = own[0].between_hosts
            yield unlike_hosts(name, said, own[0].workload.origin, between_hosts=between)


def _described(hypervisor: Hypervisor, *, networked: bool) -> tuple[str, ...]:
    """The inside of a host in words, the same place for the same fact; empty where nobody said."""
    nodes = hypervisor.host.numa_nodes
    on = {n.node: sum(d.node == n.node for d in hypervisor.of("gpu")) for n in nodes}
    busy = [n for n in nodes if on[n.node]]
    alone = sum(not n.cores for n in nodes)
    far = sorted({n.distances[o.node] for n in busy for o in busy if n != o and n.distances})
    return (
        plural(len(nodes) - alone, "NUMA node"),
        plural(alone, "node") + " of memory alone",
        "GPUs " + "+".join(str(on[n.node]) for n in busy),
        f"cores beside them {_row(busy)}",
        plural(hypervisor.host.threads_per_core, "thread") + " a core",
        "distances " + ", ".join(map(str, far)) if far else "",
        *(_cards(hypervisor) if networked else ("", "")),
    )


def _row(nodes: Iterable[NumaNode]) -> str:
    return "+".join(str(len(n.cores)) for n in nodes)


def _cards(hypervisor: Hypervisor) -> tuple[str, str]:
    """How many GPUs have a card near them whose functions guests may have."""
    gpus = [d.device for d in hypervisor.of("gpu")]
    cards = [d.device for d in hypervisor.of("nic") if d.free]
    on_node = sum(any(c.numa_node == g.numa_node for c in cards) for g in gpus)
    on_switch = sum(any(c.switch == g.switch for c in cards) for g in gpus if g.switch)
    switched = any(g.switch for g in gpus)
    every = plural(len(gpus), "GPU")
    return (
        f"a network card on the NUMA node of {on_node} of {every}",
        f"a network card on the PCIe switch of {on_switch} of {every}" if switched else "",
    )
