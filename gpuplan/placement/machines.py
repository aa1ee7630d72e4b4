"""Virtual machines on hosts: the biggest guests first, each where it spans the fewest nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from gpuplan.diagnostics import Diagnostic
from gpuplan.placement.attach import MacAddresses
from gpuplan.placement.build import build
from gpuplan.placement.choose import board_of, choices, gpu_shortfall, mediated
from gpuplan.placement.free import Choice, HostState, empty
from gpuplan.placement.guests import Guest
from gpuplan.placement.inventory import Site
from gpuplan.placement.mig import uniform
from gpuplan.placement.problems import does_not_fit, missing_fact, no_fabric_partition
from gpuplan.plan.model import Host, Shortfall, VirtualMachine, record


@record
class Machines:
    """Guests in the order asked; hosts that have one, in the inventory's order."""

    virtual_machines: tuple[VirtualMachine, ...] = ()
    hosts: tuple[Host, ...] = ()
    sites: tuple[Site, ...] = ()
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
    plan: str
    hosts: list[HostState]
    macs: MacAddresses = field(default_factory=MacAddresses)
    placed: dict[str, VirtualMachine] = field(default_factory=dict)
    refused: dict[str, _Refused] = field(default_factory=dict)
    findings: list[Diagnostic] = field(default_factory=list)


def place_machines(plan: str, sites: Sequence[Site], guests: Sequence[Guest]) -> Machines:
    """Every guest of `guests` on a host of `sites`, or a diagnostic with the numbers."""
    run = _Run(plan, [empty(site) for site in sites])
    for guest in sorted(guests, key=_size):
        _place(run, guest)
    used = [state for state in run.hosts if state.used]
    refusals = [d for refused in run.refused.values() for d in _explain(run.hosts, refused)]
    return Machines(
        virtual_machines=tuple(run.placed[g.name] for g in guests if g.name in run.placed),
        hosts=tuple(_finished(state) for state in used),
        sites=tuple(state.site for state in used),
        shortfalls=tuple(s for refused in run.refused.values() for s in refused.shortfalls),
        diagnostics=tuple(dict.fromkeys([*refusals, *run.findings])),
    )


def _size(guest: Guest) -> tuple[bool, float]:
    """Guests that keep a host to themselves, then the biggest; the sort is stable."""
    return guest.workload.isolation != "node", -guest.gpus / guest.per_gpu


def _place(run: _Run, guest: Guest) -> None:
    best: tuple[HostState, Choice] | None = None
    refused: list[tuple[str, tuple[Shortfall, ...]]] = []
    for host in run.hosts:
        found, short = _fitting(host, guest)
        if found is None:
            refused.append((host.site.host.name, short))
        elif best is None or len(found.nodes) < len(best[1].nodes):
            best = host, found
    if best is not None:
        state, choice = best
        machine, findings = build(run.plan, state, guest, choice, run.macs)
        run.placed[guest.name] = machine
        run.findings.extend(findings)
    elif guest.workload.name in run.refused:
        run.refused[guest.workload.name].guests.append(guest)
    else:
        name, lacking = max(refused, key=lambda item: item[1][0].capacity - item[1][0].used)
        run.refused[guest.workload.name] = _Refused([guest], name, lacking)


def _fitting(state: HostState, guest: Guest) -> tuple[Choice | None, tuple[Shortfall, ...]]:
    """The best choice of GPUs that has its cores and memory, or what is lacking."""
    short: tuple[Shortfall, ...] = ()
    for choice in choices(state, guest):
        short = state.shortfalls(guest, choice)
        if not short:
            return choice, ()
    return None, short or (gpu_shortfall(state, guest),)


def _explain(hosts: Sequence[HostState], refused: _Refused) -> Iterator[Diagnostic]:
    """Why guests found no place: an absent fact, an impossible size, or too little hardware."""
    guest = refused.guests[0]
    workload = guest.workload
    facts = tuple(_absent_facts(hosts, guest))
    sizes = {len(p.modules) for state in hosts for p in board_of(state, guest)}
    if facts:
        yield from facts
    elif sizes and guest.vgpu is None and guest.gpus not in sizes:
        yield no_fabric_partition(workload.name, guest.gpus, sorted(sizes), workload.origin)
    else:
        all_guests = workload.replicas * workload.nodes_per_replica
        what = f"{len(refused.guests)} of {all_guests} guests of '{workload.name}'"
        yield does_not_fit(what, refused.host, refused.shortfalls, workload.origin)


def _absent_facts(hosts: Iterable[HostState], guest: Guest) -> Iterator[Diagnostic]:
    """Facts without which no host could take `guest`, though it may have the hardware."""
    for state in {state.site.kind: state for state in reversed(tuple(hosts))}.values():
        gpus = [g.slot for g in state.gpus.values() if g.slot.device.model == guest.gpu.identifier]
        if not gpus:
            continue
        if guest.vgpu and not mediated(guest) and not any(g.functions for g in gpus):
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


def _finished(state: HostState) -> Host:
    """The host's record with the layout of each GPU that its guests share by MIG."""
    layouts = {}
    for address, gpu in state.gpus.items():
        vgpu = gpu.users[0].vgpu if gpu.users else None
        if vgpu and vgpu.mig_profile is not None:
            profiles = {p.name: p for p in gpu.users[0].gpu.mig_profiles}
            layouts[address] = uniform(profiles[vgpu.mig_profile])
    host = state.site.host
    devices = tuple(replace(d, instances=layouts.get(d.address, ())) for d in host.devices)
    return replace(host, devices=devices)
