"""What placement has to say: one constructor a message.

GP007 contradictions of the inventory · GP012 absent facts · GP041 too little hardware · GP042 a
partition that the GPU has not · GP043 isolation that the target cannot give · GP044 a guest whose
devices are not as near as they should be · GP045 pods over several NUMA nodes · GP046 IOMMU groups
that cannot go to a guest · GP047 NUMA nodes whose cores no guest gets · GP048 pods that ask more
than their part of a NUMA node · GP049 more NUMA nodes than the kubelet manages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gpuplan.catalog.model import Gpu
from gpuplan.diagnostics import Diagnostic, Related, Severity, did_you_mean, error, note, warning
from gpuplan.plan.model import Shortfall
from gpuplan.plan.partitions import PartitionName
from gpuplan.sharing.partitions import partitions
from gpuplan.source import Origin
from gpuplan.targets import TARGETS, implemented
from gpuplan.units import format_bytes, format_quantity


def contradiction(
    message: str, origin: Origin, first: Origin | None, remedy: str, label: str = ""
) -> Diagnostic:
    """Two statements that cannot both be true; `first` is where the other one stands."""
    return Diagnostic(
        rule="GP007",
        severity=Severity.ERROR,
        message=message,
        origin=origin,
        label=label,
        help=remedy,
        related=(Related("the other one", first),) if first else (),
    )


def missing_fact(fact: str, why: str, origin: Origin | None, remedy: str) -> Diagnostic:
    return error("GP012", f"{fact} is not stated", origin, label=f"needed for {why}", help=remedy)


def no_inventory(target: str) -> Diagnostic:
    return error(
        "GP012",
        f"target '{target}' needs an inventory of the hosts",
        help="write one and name it in the manifest: platform.inventory",
    )


def unchecked_fact(fact: str, consequence: str, origin: Origin, remedy: str) -> Diagnostic:
    """A fact that only a check needs: the plan stands, the check was not made."""
    return warning("GP012", f"{fact} is not stated, so {consequence}", origin, help=remedy)


def _amount(value: float, unit: str) -> str:
    return format_bytes(value) if unit == "B" else format_quantity(value, unit)


def _short(shortfall: Shortfall) -> str:
    """What is lacking in all."""
    lacking = shortfall.requested + shortfall.used - shortfall.capacity
    return f", {_amount(lacking, shortfall.unit)} short" if lacking > 0 else ""


def describe(shortfalls: Iterable[Shortfall]) -> str:
    """`gpu: 4 asked, 6 of 8 taken, 2 short; memory: …`."""
    return "; ".join(
        f"{s.resource}: {_amount(s.requested, s.unit)} asked, {_amount(s.used, s.unit)} of "
        f"{_amount(s.capacity, s.unit)} taken{_short(s)}"
        for s in shortfalls
    )


def does_not_fit(
    needed: str, place: str, shortfalls: Sequence[Shortfall], origin: Origin | None
) -> Diagnostic:
    return error(
        "GP041",
        f"no room for {needed} on {place}: {describe(shortfalls)}",
        origin,
        help="add hardware, or ask for fewer replicas or another GPU",
    )


def search_given_up(problem: Diagnostic) -> Diagnostic:
    """`problem` of guests for which not every way to place them all was tried."""
    return replace(problem, label="found by first fit; the search for a better order was cut short")


def lacking_nodes(
    needed: str,
    shortfalls: Sequence[Shortfall],
    origin: Origin | None,
    idle: Sequence[str],
    *,
    kinds: bool,
) -> Diagnostic:
    """`idle` names the nodes that nobody takes; `kinds`: some have the same GPU."""
    problem = does_not_fit(needed, "the nodes there are", shortfalls, origin)
    unlike = "; the nodes of a pool are of one kind, so that those cannot join" if kinds else ""
    return replace(problem, label=f"idle: {', '.join(idle)}{unlike}" if idle else "")


def no_hardware(workload: str, gpu: str, origin: Origin | None) -> Diagnostic:
    return error(
        "GP041",
        f"workload '{workload}' needs {gpu}, which no host has",
        origin,
        help="add a host with this GPU to the inventory, or allow another GPU",
    )


def unknown_partition(partition: PartitionName, gpu: Gpu, origin: Origin | None) -> Diagnostic:
    name, known = gpu.identifier, [p.name for p in partitions(gpu)]
    choices = f"{name} offers {', '.join(known)}" if known else f"{name} cannot be partitioned"
    return error(
        "GP042",
        f"'{partition}' is not a partition of {name}",
        origin,
        label=did_you_mean(partition, known),
        help=choices,
    )


def no_virtual_machines(workload: str, target: str, origin: Origin | None) -> Diagnostic:
    names = [name for name in implemented() if TARGETS[name].virtual_machines]
    return error(
        "GP043",
        f"workload '{workload}' asks for a virtual machine, which target '{target}' does not give",
        origin,
        help=f"use isolation 'node', or a target with virtual machines: {', '.join(names)}",
    )


def no_fabric_partition(
    workload: str, gpus: int, sizes: Sequence[int], origin: Origin | None
) -> Diagnostic:
    listed = ", ".join(map(str, sizes))
    return error(
        "GP041",
        f"workload '{workload}' needs {gpus} GPUs in one guest, but an NVSwitch board is divided "
        f"only into partitions of {listed}",
        origin,
        help="choose a tensor-parallel size that is one of these",
    )


def far_device(guest: str, nic: str, gpu: str, origin: Origin) -> Diagnostic:
    return warning(
        "GP044",
        f"{guest}: the NIC {nic} is on another NUMA node than the GPU {gpu}",
        origin,
        help="GPUDirect RDMA is slow across sockets; free a virtual function nearer to the GPU",
    )


def shared_board(workload: str, origin: Origin | None) -> Diagnostic:
    return warning(
        "GP044",
        f"'{workload}' shares GPUs of an NVSwitch board, whose fabric manager must know "
        "each guest's virtual functions",
        origin,
        help="run it with FABRIC_MODE=2 and activate the GPUs' partitions with the functions",
    )


def unknown_board(gpu: str, guests: str, origin: Origin) -> Diagnostic:
    return warning(
        "GP012",
        f"no source lists the partitions of NVSwitch boards with '{gpu}', so it was not checked "
        f"that the GPUs of {guests} are one",
        origin,
        help="`fmpm -l` lists them where a fabric manager runs in the shared mode",
    )


def no_network_function(guest: str, gpu: str, origin: Origin | None) -> Diagnostic:
    return warning(
        "GP044",
        f"{guest} spans several hosts, but no NIC has a virtual function left for {gpu}",
        origin,
        help="list the virtual functions of a NIC near the GPU; without one, traffic between "
        "nodes goes through the bridge",
    )


def held_by_host(device: str, group: int, card: str, origin: Origin) -> Diagnostic:
    return warning(
        "GP046",
        f"{device} is passed to no guest: its IOMMU group {group} holds the network card {card}, "
        "which the host keeps",
        origin,
        help="a group goes to one guest as a whole: enable ACS in the firmware, or move the card",
    )


def no_whole_group(
    workload: str, gpus: int, host: str, groups: Sequence[int], origin: Origin | None
) -> Diagnostic:
    """`groups` are the sizes of the groups that can go to a guest."""
    sizes = f"they hold {', '.join(map(str, groups))} GPUs" if groups else "the host keeps them"
    return error(
        "GP046",
        f"workload '{workload}' needs {gpus} GPU{'s' * (gpus > 1)} in one guest, which no IOMMU "
        f"groups of {host} make: {sizes}",
        origin,
        help="a group goes to one guest as a whole: enable ACS in the firmware, move the cards, or "
        "use as many GPUs as groups hold",
    )


def idle_nodes(host: str, nodes: Sequence[int], cores: int, origin: Origin | None) -> Diagnostic:
    """Nodes without GPUs on a host whose guests got less than they should have."""
    listed = f"nodes {', '.join(map(str, nodes))} have" if nodes[1:] else f"node {nodes[0]} has"
    return warning(
        "GP047",
        f"NUMA {listed} no GPU, so that guests of {host} leave {cores} cores idle there",
        origin,
        help="set fewer NUMA nodes a socket in the firmware (NPS1 on AMD, SNC off on Intel), so "
        "that these cores are near the GPUs",
    )


def spanning_pod(
    workload: str, gpus: int, most: int, host: str, origin: Origin | None
) -> Diagnostic:
    return note(
        "GP045",
        f"pods of '{workload}' have {gpus} GPUs, and no NUMA node of {host} has more than {most}: "
        "a kubelet with topologyManagerPolicy 'single-numa-node' admits none of them",
        origin,
        help="set 'restricted' or 'best-effort' with topologyManagerScope 'pod' on these nodes",
    )


def beyond_part(
    workload: str, wanted: str, where: str, have: str, origin: Origin | None
) -> Diagnostic:
    return warning(
        "GP048",
        f"pods of '{workload}' ask {wanted}, but NUMA {where} has {have}: the rest "
        "comes from another node, or the kubelet's topology manager refuses the pod",
        origin,
        help="ask for less (overrides.cpu_cores_per_gpu, overrides.memory_per_gpu), or set "
        "fewer NUMA nodes a socket in the firmware",
    )


def many_nodes(host: str, nodes: int, most: int, origin: Origin) -> Diagnostic:
    return note(
        "GP049",
        f"{host} has {nodes} NUMA nodes: the kubelet's topology manager does not start above "
        f"{most}",
        origin,
        help=f"with a topologyManagerPolicy other than 'none', set the kubelet's "
        f'topologyManagerPolicyOptions: max-allowable-numa-nodes: "{nodes}"',
    )
