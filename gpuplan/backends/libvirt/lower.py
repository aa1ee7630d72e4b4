"""Plan → domain XML, NCCL topology and checks for each VM; configuration for each host."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from gpuplan.backends.libvirt import plain
from gpuplan.backends.libvirt.domain import ROOT_DEVICES, domain
from gpuplan.backends.libvirt.hosts import host_view
from gpuplan.backends.libvirt.installs import host_files
from gpuplan.backends.libvirt.monitoring import monitoring
from gpuplan.backends.libvirt.pci import PciTree, tree
from gpuplan.backends.libvirt.problems import (
    foreign_architecture,
    joined,
    no_guest_setup,
    no_migration,
    no_vlan,
    small_address_space,
    text_changed,
    too_many_buses,
    too_many_cpus,
    unknown_address_space,
    volume_without_disk,
)
from gpuplan.backends.libvirt.readme import sections
from gpuplan.backends.libvirt.seed import Scene, credentials, seed
from gpuplan.backends.libvirt.seed.nodes import slurm_nodes
from gpuplan.backends.libvirt.verify import problems as faults
from gpuplan.backends.libvirt.view import NcclCell, NcclSwitch
from gpuplan.backends.libvirt.window import Window, window
from gpuplan.diagnostics import Diagnostic
from gpuplan.emission import Emission
from gpuplan.engines.launch import Launch
from gpuplan.engines.start import shortcomings, start
from gpuplan.plan.changes.guests import DOMAINS, HOSTS, SEEDS
from gpuplan.plan.model import Host, Plan, VirtualMachine, Workload, by_name
from gpuplan.render.environments import render
from gpuplan.render.tree import File, FileTree
from gpuplan.render.xml import illegal
from gpuplan.units import format_ranges

MOST_CPUS = 255


def emit(plan: Plan) -> Emission:
    files: list[File] = []
    problems = [p for w in plan.workloads for p in _unexpressed(plan, w)]
    for host in plan.hosts:
        if host.cpu_vendor == "arm":
            problems.append(foreign_architecture(host.name, host.cpu_vendor, host.origin))
            continue
        machines = [m for m in plan.virtual_machines if m.host == host.name]
        for machine in machines:
            pci = tree(machine, len(machine.disks) + ROOT_DEVICES)
            space = window(machine)
            problems += _impossible(machine, pci, space)
            domain_files = tuple(_machine_files(plan, machine, host, pci, space))
            # Held against the plan by code that shares nothing with the writer.
            problems += faults(domain_files[0].text, machine, host, plan.fabric)
            files += domain_files
        view = host_view(host, machines, infiniband=infiniband(plan))
        seeds = f"{HOSTS}/{host.name}{SEEDS}/"
        own = tuple(f for f in files if f.path.startswith(seeds))
        files += host_files(view, plain.stack_view(plan, (host,)), own)
    if files:
        files += (*plain.files(plan), monitoring(plan), *slurm_nodes(plan))
    return Emission(FileTree(tuple(files)), tuple(problems), tuple(sections(plan)))


def infiniband(plan: Plan) -> bool:
    return plan.fabric is not None and plan.fabric.kind == "infiniband"


def _machine_files(
    plan: Plan, machine: VirtualMachine, host: Host, pci: PciTree, space: Window
) -> Iterator[File]:
    path = f"{DOMAINS}/{machine.name}"
    workload = by_name(plan.workloads, machine.workload)
    launch = None if host.image is None else start(workload, f"{machine.workload}-0")
    with_seed = isinstance(launch, Launch)
    view = domain(machine, host, workload, pci, space, infiniband=infiniband(plan))
    if with_seed:
        secrets = tuple(credentials(plan.name, machine, host, workload))
        view = replace(view, has_seed=True, has_credentials=bool(secrets), credentials=secrets)
    yield File(f"{path}.xml", render("xml", "libvirt/domain.xml.j2", domain=view))
    cells = nccl_cells(machine, pci)
    topology = render("xml", "libvirt/nccl-topo.xml.j2", cells=cells)
    yield File(f"{path}.nccl-topo.xml", topology)
    yield File(f"{path}.checks.json", checks(machine, pci))
    if isinstance(launch, Launch):
        scene = Scene(
            machine=machine, host=host, workload=workload, pci=pci, launch=launch, nccl=topology
        )
        for file in seed(scene):
            yield File(f"{seed_folder(host.name, machine.name)}/{file.path}", file.text)


def seed_folder(host: str, guest: str) -> str:
    """Where the seed of a guest is in the stack: below the folder that mirrors its host's root."""
    return f"{HOSTS}/{host}{SEEDS}/{guest}"


def nccl_cells(machine: VirtualMachine, pci: PciTree) -> tuple[NcclCell, ...]:
    """GPUs and NICs by guest node and switch. NCCL reads everything else, such as link speeds and
    affinity, from the guest's own /sys (NCCL, src/graph/xml.cc)."""
    ranks = {d.name for d in machine.devices if d.kind in ("gpu", "vgpu", "nic")}
    cells = []
    for cell in machine.cells:
        switches = pci.switches.get(cell.cell, ())
        behind = {name for s in switches for name in s.devices}
        direct = [
            d.name for d in machine.devices if d.cell == cell.cell and d.name in ranks - behind
        ]
        cells.append(
            NcclCell(
                number=cell.cell,
                switches=tuple(
                    NcclSwitch(
                        bus=s.bus, devices=tuple(pci.buses[n] for n in s.devices if n in ranks)
                    )
                    for s in switches
                ),
                devices=tuple(pci.buses[name] for name in direct),
            )
        )
    return tuple(cells)


def checks(machine: VirtualMachine, pci: PciTree) -> str:
    """What a look around in the guest should find: CPUs, memory and devices by node."""
    expected: dict[str, object] = {
        "vm": machine.name,
        "threads_per_core": machine.threads_per_core,
        "nodes": [
            {
                "node": c.cell,
                "cpus": format_ranges(p.vcpu for p in c.pins),
                "memory_bytes": c.memory_bytes,
            }
            for c in machine.cells
        ],
        "devices": [
            {"name": d.name, "kind": d.kind, "bus": pci.buses[d.name], "node": d.cell}
            for d in machine.devices
        ],
    }
    return json.dumps(expected, indent=2) + "\n"


def _impossible(machine: VirtualMachine, pci: PciTree, space: Window) -> Iterator[Diagnostic]:
    count = sum(len(c.pins) for c in machine.cells)
    if count > MOST_CPUS:
        yield too_many_cpus(machine, count)
    if pci.overflow:
        yield too_many_buses(machine)
    if not space.fits:
        yield small_address_space(machine, space.needed_bytes)
    elif space.needed_bytes and machine.physical_address_bits is None:
        yield unknown_address_space(machine, space.needed_bytes)


def _unstarted(plan: Plan, workload: Workload, hosts: set[str]) -> Iterator[Diagnostic]:
    """What nothing installs or starts in the guests on `hosts`."""
    if any(h.image is None for h in plan.hosts if h.name in hosts):
        yield no_guest_setup(workload)
    elif joins := [h.join for h in plan.hosts if h.name in hosts and h.join is not None]:
        yield joined(workload, joins[0].kind, joins[0].server)
    elif isinstance(launch := start(workload, f"{workload.oldest_name}-0"), Diagnostic):
        yield launch
    else:
        yield from shortcomings(workload)


def _unexpressed(plan: Plan, workload: Workload) -> Iterator[Diagnostic]:
    machines = [m for m in plan.virtual_machines if m.workload == workload.name]
    if not machines:
        return
    if any(m.devices for m in machines):
        yield no_migration(workload)
    yield from _unstarted(plan, workload, {m.host for m in machines})
    vlans = {d.vlan for m in machines for d in m.devices if d.kind == "nic" and d.vlan}
    if infiniband(plan) and vlans:
        yield no_vlan(workload, sorted(vlans))
    for volume in workload.volumes:
        if not any(d.name == volume.name for m in machines for d in m.disks):
            yield volume_without_disk(workload, volume.name)
    if characters := illegal(workload.description or ""):
        yield text_changed(workload, characters)
