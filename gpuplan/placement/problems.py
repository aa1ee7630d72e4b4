"""What placement has to say: one constructor a message.

GP007 contradictions of the inventory · GP012 absent facts · GP040 devices that the host keeps ·
GP041 too little hardware · GP042 a partition that the GPU has not · GP043 isolation that the target
cannot give · GP044 a guest whose devices are not as near as they should be · GP045 pods over
several NUMA nodes · GP046 IOMMU groups that cannot go to a guest · GP047 NUMA nodes whose cores no
guest gets · GP048 pods that ask more than their part of a NUMA node · GP049 more NUMA nodes than
the kubelet manages · GP050 guests of one workload on hosts that are unlike inside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gpuplan.catalog.model import Gpu
from gpuplan.diagnostics import (
    Change,
    Diagnostic,
    Related,
    Severity,
    did_you_mean,
    error,
    note,
    remedied,
    warning,
)
from gpuplan.inventory.words import CARD_USES, DRIVE_USES
from gpuplan.plan.model import Shortfall
from gpuplan.plan.partitions import PartitionName
from gpuplan.sharing.partitions import partitions
from gpuplan.source import Origin
from gpuplan.targets import TARGETS, implemented
from gpuplan.units import GIB, format_apart, format_quantity


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


def stays_cut(
    pool: str, kept: Sequence[str], fresh: Sequence[str], origin: Origin | None
) -> Diagnostic:
    """Nodes that stay as they are cut, with the further ones that this takes."""
    stay = f"node {kept[0]} stays cut as it is"
    if len(kept) > 1:
        stay = f"nodes {', '.join(kept)} stay cut as they are"
    why = ", since all that runs fits"
    if fresh:
        why = f", and {', '.join(fresh)} take{'s' * (len(fresh) == 1)} what is new"
    return note(
        "GP023",
        f"pool {pool}: {stay}{why}",
        origin,
        help="--fresh cuts nodes for this manifest alone, and stops who works there",
    )


def no_inventory(target: str, at: Origin | None) -> Diagnostic:
    return error(
        "GP012",
        f"target '{target}' needs an inventory of the hosts",
        at,
        help="write one and name it in the manifest: platform.inventory",
    )


def unchecked_fact(fact: str, consequence: str, origin: Origin, remedy: str) -> Diagnostic:
    """A fact that only a check needs: the plan stands, the check was not made."""
    return warning("GP012", f"{fact} is not stated, so {consequence}", origin, help=remedy)


def _short(shortfall: Shortfall) -> str:
    """What is lacking in all."""
    lacking = shortfall.requested + shortfall.used - shortfall.capacity
    return f", {format_quantity(lacking, shortfall.unit)} short" if lacking > 0 else ""


def describe(shortfalls: Iterable[Shortfall]) -> str:
    """`gpu: 4 asked, 6 of 8 taken, 2 short; memory: …`."""
    return "; ".join(map(_described, shortfalls))


def _described(shortfall: Shortfall) -> str:
    unit = shortfall.unit
    asked, capacity = format_apart(shortfall.requested, shortfall.capacity, unit)
    used = format_quantity(shortfall.used, unit)
    return f"{shortfall.resource}: {asked} asked, {used} of {capacity} taken{_short(shortfall)}"


def does_not_fit(
    needed: str,
    place: str,
    shortfalls: Sequence[Shortfall],
    origin: Origin | None,
    gpus: int = 0,
) -> Diagnostic:
    """`gpus` of a node are those of a part that is alone there: their cores and memory may be
    less."""
    host = all(s.resource.startswith(("cores of", "memory of")) for s in shortfalls)
    problem = error(
        "GP041",
        f"no room for {needed} on {place}: {describe(shortfalls)}",
        origin,
        help="ask for less (overrides.cpu_cores_per_gpu, overrides.host_memory_per_gpu), or use"
        " hosts with more"
        if host
        else "add hardware, or ask for fewer replicas or another GPU",
    )
    changes = tuple(_less(shortfalls, gpus, origin)) if host and gpus and origin else ()
    return remedied(problem, changes) if len(changes) == len(shortfalls) else problem


def _less(shortfalls: Sequence[Shortfall], gpus: int, origin: Origin) -> Iterator[Change]:
    """What each GPU may have of a node's cores and memory."""
    for short in shortfalls:
        each = short.capacity / gpus
        if short.unit == "B" and each >= GIB:
            at = origin.child("overrides", "host_memory_per_gpu")
            yield Change(at, f"{int(each // GIB)} GiB")
        elif short.unit == "1" and each >= 1:
            yield Change(origin.child("overrides", "cpu_cores_per_gpu"), int(each))


def without_place(
    problem: Diagnostic, guests: int, missing: Sequence[tuple[float, str, str]], *, given_up: bool
) -> Diagnostic:
    """`problem` with what all of its `guests` lack a place for, each an amount with its unit and
    what it is of. `given_up`: not every way to place them was tried."""
    amounts = ", ".join(
        f"{format_quantity(amount, unit)} {'× ' * (unit == '1' and thing != 'cores')}{thing}"
        for amount, unit, thing in missing
    )
    labels = [f"without a place in all: {amounts}"] if guests > 1 else []
    labels += ["found by first fit; the search for a better order was cut short"] * given_up
    return replace(problem, label="; ".join(labels))


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


def with_more_nodes(problem: Diagnostic, now: int, enough: int) -> Diagnostic:
    """How many of the nodes that `platform.node` describes all pools together take."""
    if problem.origin is None or not isinstance(problem.origin, Origin):
        return problem
    at = Origin(problem.origin.document, ("platform", "node", "count"))
    words = f"`platform.node.count: {enough}` instead of {now}, or fewer replicas or another GPU"
    return remedied(replace(problem, help=words), (Change(at, enough),))


def no_hardware(
    workload: str, gpu: str, present: Iterable[str], origin: Origin | None
) -> Diagnostic:
    listed = ", ".join(sorted(set(present)))
    return error(
        "GP041",
        f"workload '{workload}' needs {gpu}, which no host has",
        origin,
        help="add a host with this GPU to the inventory, or allow another GPU"
        + (f": the hosts have {listed}" if listed else ""),
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
    names = ", ".join(name for name in implemented() if TARGETS[name].virtual_machines)
    at = origin and origin.child("tenancy", "isolation")
    problem = error(
        "GP043",
        f"workload '{workload}' asks for a virtual machine of its own (isolation 'vm'), which "
        f"target '{target}' does not give",
        at,
        label="isolation says whom it shares machines with",
        help=f"use a target with virtual machines: {names}; or isolation 'node', under which only "
        "its own team is on its nodes, 'gpu': only its own team is on its GPUs, or 'shared': "
        "anyone may be beside it",
    )
    return remedied(problem, (Change(at, "node"),)) if at else problem


def take_turns(tenants: Sequence[str], gpu: str, host: str, origin: Origin | None) -> Diagnostic:
    return warning(
        "GP043",
        f"guests of teams {', '.join(tenants)} take turns on the GPU {gpu} of {host}: each gets "
        "less while the others work",
        origin,
        help="there is no GPU for each of the teams: add one, use GPUs with MIG, or let the GPU "
        "be one team's with `tenancy: {isolation: gpu, cut: true}`",
    )


def kept_by_host(
    kind: str, address: str, in_use: Sequence[str] | None, origin: Origin
) -> Diagnostic:
    """A drive or a network card; `in_use` is what the host does with it, None where nobody said."""
    noun, given = ("drive", "goes") if kind == "nvme" else ("network card", "gives functions")
    if in_use is None:
        command = DRIVE_USES if kind == "nvme" else CARD_USES
        reason = "nothing says whether the host uses it"
        remedy = f"collect the host again (`gpuplan inventory collect` runs `{command}`), or"
    else:
        reason = f"the host uses it for {', '.join(in_use)}" if in_use else "the inventory keeps it"
        remedy = "free it on the host and collect again, or"
    build = warning if in_use is None else note
    return build(
        "GP040",
        f"{noun} {address} {given} to no guest: {reason}",
        origin,
        help=f"{remedy} write for_guests: true where somebody has looked",
    )


def uncompared(fact: str, count: int, origin: Origin, remedy: str) -> Diagnostic:
    of = f" of {count} devices" if count > 1 else ""
    return unchecked_fact(
        f"{fact}{of}",
        "the host cannot compare it before a guest gets what is at the address",
        origin,
        remedy,
    )


def held_by_host(device: str, group: int, holder: str, origin: Origin) -> Diagnostic:
    return warning(
        "GP046",
        f"{device} is passed to no guest: its IOMMU group {group} holds {holder}, which the host "
        "keeps",
        origin,
        help="a group goes to one guest as a whole: enable ACS in the firmware, move the cards, or "
        "write for_guests: true where the host can do without",
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
        help="ask for less (overrides.cpu_cores_per_gpu, overrides.host_memory_per_gpu), or set "
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


def unlike_hosts(
    workload: str,
    kinds: Sequence[tuple[Sequence[str], Sequence[str]]],
    origin: Origin | None,
    *,
    between_hosts: bool,
) -> Diagnostic:
    """`kinds`: hosts that are alike, and what tells them from the others."""
    build = warning if between_hosts else note
    label = "the guests of a replica wait for each other" if between_hosts else ""
    said = "; ".join(f"{_few(hosts)}: {', '.join(facts)}" for hosts, facts in kinds)
    return build(
        "GP050",
        f"guests of '{workload}' are on hosts that are unlike: {said}",
        origin,
        label=label,
        help="all are sized for the least of them; leave hosts out of the inventory, or give the "
        "firmware of all the same settings (NPS, SNC), where equal guests are wanted",
    )


def _few(hosts: Sequence[str]) -> str:
    more = f" and {len(hosts) - 3} more" if len(hosts) > 3 else ""
    return ", ".join(hosts[:3]) + more
