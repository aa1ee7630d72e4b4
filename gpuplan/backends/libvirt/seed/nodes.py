"""What the controller of a Slurm cluster reads of guests that become its nodes: it lists them by
name before they come.

Sources: slurm.schedmd.com, slurm.conf (NodeName, Include) and gres.conf (File).
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.libvirt.domain import processors
from gpuplan.plan.model import Plan, VirtualMachine
from gpuplan.plan.site import SLURM_NODES, feature
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.tree import File
from gpuplan.units import GIB, MIB

# What a guest's own kernel and services take of its memory: 64 bytes for each page of 4 KiB (the
# kernel's "vmemmap"), and a gibibyte. Slurm drains a node that has less than its line says.
PAGE_RECORDS = 64
OWN_BYTES = GIB


def slurm_nodes(plan: Plan) -> Iterator[File]:
    """`nodes.conf` and `gres.conf`, where any guest becomes a node of Slurm."""
    joins = {h.name: h.join for h in plan.hosts}
    guests = [
        m
        for m in plan.virtual_machines
        if (join := joins.get(m.host)) is not None and join.kind == "slurm"
    ]
    if not guests:
        return
    devices = [line for machine in guests for line in _devices(machine)]
    for name, lines in (("nodes", [_node(m) for m in guests]), ("gres", devices)):
        text = render("conf", f"libvirt/slurm.{name}.conf.j2", lines=[Verbatim(t) for t in lines])
        yield File(f"{SLURM_NODES}/{name}.conf", text)


def gpus(machine: VirtualMachine) -> int:
    return sum(d.kind in ("gpu", "vgpu") for d in machine.devices)


def memory_mib(machine: VirtualMachine) -> int:
    """What jobs may have of a guest's memory, at least 1."""
    own = machine.memory_bytes // PAGE_RECORDS + OWN_BYTES
    return int(max(machine.memory_bytes - own, MIB) // MIB)


def _node(machine: VirtualMachine) -> str:
    sockets, cores, threads = processors(machine)
    fields = {
        "NodeName": machine.name,
        "Sockets": sockets,
        "CoresPerSocket": cores,
        "ThreadsPerCore": threads,
        "RealMemory": memory_mib(machine),
        "Gres": f"gpu:{gpus(machine)}" if gpus(machine) else "",
        "Feature": feature(machine.workload),
        "State": "UNKNOWN",
    }
    return " ".join(f"{name}={value}" for name, value in fields.items() if value)


def _devices(machine: VirtualMachine) -> Iterator[str]:
    if count := gpus(machine):
        span = f"[0-{count - 1}]" if count > 1 else "0"
        yield f"NodeName={machine.name} Name=gpu File=/dev/nvidia{span}"
