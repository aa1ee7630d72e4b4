"""Virtual machines on hosts: those that are there stay where they are, then the biggest guests
first, each where it spans the fewest nodes. Where that leaves some without a place, a search over
all that are new, and in the end over all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpuplan.diagnostics import Diagnostic
from gpuplan.placement.boards import no_fabric_partition
from gpuplan.placement.machines.attach import MacAddresses
from gpuplan.placement.machines.build import build
from gpuplan.placement.machines.choose import board_of, choices, gpu_shortfall
from gpuplan.placement.machines.guests import Guest
from gpuplan.placement.machines.hypervisors import Hypervisor
from gpuplan.placement.machines.lacking import distant, networks, ports, turns
from gpuplan.placement.machines.reserve import huge_pages, kernel_parameters
from gpuplan.placement.machines.search import assign
from gpuplan.placement.machines.sets import bundles
from gpuplan.placement.machines.state import GpuChoice, HostState, empty
from gpuplan.placement.machines.unlike import unlike
from gpuplan.placement.problems import does_not_fit, missing_fact, no_whole_group, without_place
from gpuplan.plan import window
from gpuplan.plan.isolation import own_node
from gpuplan.plan.model import Evidence, Host, NumaNode, Override, Shortfall, VirtualMachine, record
from gpuplan.sharing.mig import completed, counted, instances
from gpuplan.sharing.partitions import mediated, takes_turns
from gpuplan.sizing.evidence.formula import Ledger
from gpuplan.source import Origin


@record
class Machines:
    """Guests in the order asked; hosts that have one, in the inventory's order, with the evidence
    for their huge pages."""

    virtual_machines: tuple[VirtualMachine, ...] = ()
    hosts: tuple[Host, ...] = ()
    hypervisors: tuple[Hypervisor, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    shortfalls: tuple[Shortfall, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(slots=True)
class _Refused:
    """Guests of one workload that found no place; where the first came nearest, and what lacked."""

    guests: list[Guest]
    host: str
    shortfalls: tuple[Shortfall, ...]


@dataclass(slots=True)
class _Run:
    """`former` are the guests that are there, by name. `full` are the hosts that have no place left
    for a workload's guests."""

    plan: str
    hosts: list[HostState]
    former: Mapping[str, VirtualMachine]
    macs: MacAddresses = field(default_factory=MacAddresses)
    placed: dict[str, VirtualMachine] = field(default_factory=dict)
    refused: dict[str, _Refused] = field(default_factory=dict)
    full: dict[str, set[str]] = field(default_factory=dict)
    findings: list[Diagnostic] = field(default_factory=list)
    given_up: bool = False


def place_machines(
    plan: str,
    hypervisors: Sequence[Hypervisor],
    guests: Sequence[Guest],
    former: Sequence[VirtualMachine] = (),
) -> Machines:
    """Every guest of `guests` on a host of `hypervisors`, or a diagnostic with the numbers. Those
    that `former` has stay on their hosts, with their devices, where all guests have a place so."""
    ordered = sorted(guests, key=_size)
    by_name = {machine.name: machine for machine in former}
    run = _Run(plan, [], by_name)
    for stay, strangers in _ways(former, guests):
        run, others = _stayed(plan, hypervisors, ordered, by_name, stay=stay, strangers=strangers)
        hosts = [host.copy() for host in run.hosts]
        for guest in others:
            _place(run, guest)
        if not run.refused:
            break
        assignment = assign(hosts, others)
        if assignment.places is not None:
            run, _ = _stayed(plan, hypervisors, ordered, by_name, stay=stay, strangers=strangers)
            for guest, (number, choice) in zip(others, assignment.places, strict=True):
                _build(run, run.hosts[number], guest, choice)
            break
        run.given_up = not assignment.exhausted
    used = [state for state in run.hosts if state.used]
    ledgers = [Ledger(state.hypervisor.host.name) for state in used]
    most: Counter[str] = Counter()
    for guest in guests:
        most[guest.gpu.identifier] = max(most[guest.gpu.identifier], guest.per_gpu)
    counted = any(d.unlisted_functions for state in used for d in state.hypervisor.of("nic"))
    remarks = (
        *turns(used),
        *ports(used, run.placed, guests),
        *distant(used, run.placed, guests),
        *unlike([state.hypervisor for state in used], run.placed, guests),
    )
    remarks += () if counted else tuple(networks(run.placed, guests))
    refusals = [d for refused in run.refused.values() for d in _explain(run, refused)]
    return Machines(
        virtual_machines=tuple(run.placed[g.name] for g in guests if g.name in run.placed),
        hosts=tuple(_finished(s, most, ledger) for s, ledger in zip(used, ledgers, strict=True)),
        hypervisors=tuple(state.hypervisor for state in used),
        evidence=tuple(e for ledger in ledgers for e in ledger.evidence()),
        shortfalls=tuple(s for refused in run.refused.values() for s in refused.shortfalls),
        diagnostics=tuple(dict.fromkeys([*refusals, *run.findings, *remarks])),
    )


def stayed(plan: str, machines: Machines, guests: Sequence[Guest]) -> list[HostState]:
    """The hosts as the `guests` of `machines` leave them."""
    by_name = {machine.name: machine for machine in machines.virtual_machines}
    tenants = {g.workload.tenant for g in guests if takes_turns(g.vgpu)}
    run, _ = _stayed(
        plan, machines.hypervisors, guests, by_name, stay=True, strangers=len(tenants) > 1
    )
    return run.hosts


def _ways(former: Sequence[VirtualMachine], guests: Sequence[Guest]) -> Iterator[tuple[bool, bool]]:
    """How places are looked for, until all have one: whether those that are there stay, and whether
    tenants may take turns on one GPU, which is the last resort."""
    tenants = {g.workload.tenant for g in guests if takes_turns(g.vgpu)}
    for strangers in (False, True) if tenants and len(tenants) > 1 else (False,):
        yield from ((stay, strangers) for stay in dict.fromkeys((bool(former), False)))


def _stayed(
    plan: str,
    hypervisors: Sequence[Hypervisor],
    guests: Sequence[Guest],
    former: Mapping[str, VirtualMachine],
    *,
    stay: bool,
    strangers: bool,
) -> tuple[_Run, list[Guest]]:
    """The hosts with the guests that stay: first those that keep their GPUs, then those that keep
    their host. The others have no place yet."""
    run = _Run(plan, [empty(h, strangers=strangers) for h in hypervisors], former)
    others = list(guests)
    for with_gpus in (True, False) if stay else ():
        others = [g for g in others if not _stays(run, g, with_gpus=with_gpus)]
    return run, others


def _stays(run: _Run, guest: Guest, *, with_gpus: bool) -> bool:
    machine = run.former.get(guest.name)
    name = machine.host if machine else None
    state = next((h for h in run.hosts if h.hypervisor.host.name == name), None)
    if machine is None or state is None:
        return False
    addresses = {d.address for d in machine.devices if d.kind in ("gpu", "vgpu")}
    choice, _ = fitting(state.only(addresses, guest) if with_gpus else state, guest)
    if choice is not None:
        _build(run, state, guest, choice)
    return choice is not None


def _size(guest: Guest) -> tuple[bool, float]:
    """Guests that keep a host to themselves, then the biggest; the sort is stable."""
    return not own_node(guest.workload.isolation), -guest.gpus / guest.per_gpu


def _place(run: _Run, guest: Guest) -> None:
    workload = guest.workload.name
    if workload in run.refused:  # hosts only fill: where its twin found no place
        run.refused[workload].guests.append(guest)
        return
    best: tuple[HostState, GpuChoice] | None = None
    full = run.full.setdefault(workload, set())
    for host in (h for h in run.hosts if h.hypervisor.host.name not in full):
        choice, _ = fitting(host, guest)
        if choice is None:
            full.add(host.hypervisor.host.name)
        elif best is None or len(choice.nodes) < len(best[1].nodes):
            best = host, choice
        if best is not None and len(best[1].nodes) == 1:
            break
    if best is not None:
        _build(run, best[0], guest, best[1])
    else:
        refused = [(h.hypervisor.host.name, fitting(h, guest)[1]) for h in run.hosts]
        name, lacking = max(refused, key=lambda item: item[1][0].capacity - item[1][0].used)
        run.refused[workload] = _Refused([guest], name, lacking)


def _build(run: _Run, state: HostState, guest: Guest, choice: GpuChoice) -> None:
    former = run.former.get(guest.name)
    machine, findings = build(run.plan, state, guest, choice, run.macs, former=former)
    run.placed[guest.name] = machine
    run.findings.extend(findings)


def fitting(state: HostState, guest: Guest) -> tuple[GpuChoice | None, tuple[Shortfall, ...]]:
    """The best choice of GPUs that has its cores and memory, or what is lacking."""
    short: tuple[Shortfall, ...] = ()
    for choice in choices(state, guest):
        short = state.shortfalls(guest, choice)
        if not short:
            return choice, ()
    return None, short or (gpu_shortfall(state, guest),)


def _explain(run: _Run, refused: _Refused) -> Iterator[Diagnostic]:
    """Why guests found no place: an absent fact, an impossible size, or too little hardware."""
    guest, hosts = refused.guests[0], run.hosts
    workload = guest.workload
    facts = tuple(_absent_facts(hosts, guest))
    sizes = {len(p.modules) for state in hosts for p in board_of(state, guest)}
    if facts:
        yield from facts
    elif sizes and guest.vgpu is None and guest.gpus not in sizes:
        yield no_fabric_partition(workload.name, guest.gpus, sorted(sizes), workload.origin)
    elif held := _grouped(hosts, guest):
        name, groups = held
        yield no_whole_group(workload.name, guest.gpus, name, groups, workload.origin)
    else:
        needed = f"{len(refused.guests)} of {workload.members} guests of '{workload.name}'"
        where = refused.host
        problem = does_not_fit(needed, where, refused.shortfalls, workload.origin)
        count = len(refused.guests)
        each = count * guest.gpus
        missing = (
            (each, "1", guest.vgpu.name if guest.vgpu else guest.gpu.identifier),
            (each * guest.cores, "1", "cores"),
            (each * guest.pages * window.PAGE_BYTES, "B", "memory"),
        )
        yield without_place(problem, count, missing, given_up=run.given_up)


def _grouped(hosts: Iterable[HostState], guest: Guest) -> tuple[str, tuple[int, ...]] | None:
    """A host with enough GPUs whose IOMMU groups do not add up to the guest's, and their sizes;
    None where groups are not what keeps `guest` from all hosts."""
    first: tuple[str, tuple[int, ...]] | None = None
    for state in (empty(h.hypervisor) for h in hosts):
        gpus = [g for g in state.gpus.values() if g.gpu.device.model == guest.gpu.identifier]
        if len(gpus) < guest.gpus:
            continue
        if guest.vgpu is not None or next(choices(state, guest), None) is not None:
            return None
        sizes = sorted({len(bundle) for bundle in bundles(state, gpus)})
        first = first or (state.hypervisor.host.name, tuple(sizes))
    return first


def _absent_facts(hosts: Iterable[HostState], guest: Guest) -> Iterator[Diagnostic]:
    """Facts without which no host could take `guest`, though it may have the hardware."""
    for state in {state.hypervisor.kind: state for state in reversed(tuple(hosts))}.values():
        gpus = [g.gpu for g in state.gpus.values() if g.gpu.device.model == guest.gpu.identifier]
        if not gpus:
            continue
        if guest.vgpu and not mediated(guest.gpu) and not any(g.functions for g in gpus):
            yield missing_fact(
                "'virtual_functions'",
                f"giving {guest.vgpu.name} to guests",
                gpus[0].origin,
                "list them as `/usr/lib/nvidia/sriov-manage -e ADDRESS` makes them",
            )
        unnumbered = [g for g in gpus if g.module_id is None]
        joined = guest.vgpu is None and 1 < guest.gpus < len(gpus)
        if joined and unnumbered and board_of(state, guest):
            yield missing_fact(
                "'module_id'",
                "choosing GPUs that the NVSwitch fabric can join",
                unnumbered[0].origin,
                'add the number that `nvidia-smi -q` prints as "Module ID"',
            )


def _finished(state: HostState, most: Mapping[str, int], ledger: Ledger) -> Host:
    """The host's record with the layout of each GPU that its guests share by MIG, and with huge
    pages for the `most` guests that the stack's workloads put on a GPU of a type: another replica
    changes no kernel line."""
    layouts = {}
    for address, gpu in state.gpus.items():
        cut = counted([u.profile for u in gpu.users if u.profile is not None])
        if cut:
            layouts[address] = instances(completed(cut, [profile for profile, _ in cut]))
    host = state.hypervisor.host
    paged = [_with_pages(state, node, most, ledger) for node in host.numa_nodes]
    nodes = tuple(node for node, _ in paged)
    return replace(
        host,
        numa_nodes=nodes,
        overrides=tuple(override for _, override in paged if override is not None),
        devices=tuple(replace(d, instances=layouts.get(d.address, ())) for d in host.devices),
        kernel_parameters=kernel_parameters(host.cpu_vendor, nodes, host.settings),
    )


def _with_pages(
    state: HostState, node: NumaNode, most: Mapping[str, int], ledger: Ledger
) -> tuple[NumaNode, Override | None]:
    """A node that no guest can be on has none."""
    resources = state.nodes[node.node]
    if not resources.usable_pages:
        return node, None
    locality = state.hypervisor.localities[node.node]
    gpus = (g.gpu.device.model for g in state.gpus.values() if g.node == node.node)
    guests = sum(most.get(model, 1) for model in gpus)
    pages, override = huge_pages(locality, node.node, guests, resources.taken_pages, ledger)
    if override is not None and (at := state.hypervisor.host.origin) is not None:
        place = Origin(at.document, (*at.path[:2], "hypervisor", "hugepages"))
        override = replace(override, origin=place)
    return replace(node, hugepages=pages), override
