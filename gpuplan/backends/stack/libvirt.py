"""What the README of a stack of libvirt guests says: what a host needs, how to apply and undo it.
What is one host's alone stands on the page of that host."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from gpuplan.plan.model import Plan, VirtualMachine
from gpuplan.render.environments import Verbatim
from gpuplan.render.markdown import code


@dataclass(frozen=True, slots=True)
class Page:
    """Lines of the README; commands are quoted for a shell. `start` is for guests with an NVSwitch
    partition, the others start with their host. `functions` are how many a NIC makes at most, 0
    where no guest owns one."""

    hosts: tuple[Verbatim, ...]
    bridges: tuple[Verbatim, ...]
    keys: tuple[Verbatim, ...]
    address: Verbatim
    start: tuple[Verbatim, ...]
    stop: tuple[Verbatim, ...]
    functions: int
    infiniband: bool
    vgpus: bool
    autostart: bool
    nccl: bool


def page(plan: Plan) -> Page:
    guests = plan.virtual_machines
    devices = [d for m in guests for d in m.devices]
    parents = {d.parent for d in devices if d.kind == "nic"}
    return Page(
        hosts=tuple(
            Verbatim(f"[{h.name}](hypervisor/host/{h.name}/README.md)") for h in plan.hosts
        ),
        bridges=tuple(Verbatim(code(b)) for b in sorted({m.bridge for m in guests})),
        keys=tuple(_key(h.name) for h in plan.hosts),
        address=_setting("hosts", plan.hosts[0].name, "10.0.0.7") if plan.hosts else Verbatim(""),
        start=tuple(line for m in guests for line in _start(m)),
        stop=tuple(_on(m, "virsh", "shutdown", m.name) for m in guests),
        functions=max(
            (d.virtual_functions for h in plan.hosts for d in h.devices if d.address in parents),
            default=0,
        ),
        infiniband=plan.fabric is not None and plan.fabric.kind == "infiniband" and bool(parents),
        vgpus=any(d.kind == "vgpu" for d in devices),
        autostart=any(m.fabric_partition is None for m in guests),
        nccl=any(len([d for d in m.devices if d.kind == "gpu"]) > 1 for m in guests),
    )


def _setting(name: str, host: str, value: str) -> Verbatim:
    """The command that sets one host's entry; a host's name may have dots."""
    path = shlex.quote(f'{name}["{host}"]')
    return Verbatim(f"pulumi config set --path {path} {value}")


def _key(host: str) -> Verbatim:
    scan = f"ssh-keyscan -t ed25519 {shlex.quote(host)} | cut -d ' ' -f 2-"
    return _setting("hostKeys", host, f'"$({scan})"')


def _start(machine: VirtualMachine) -> Iterator[Verbatim]:
    if machine.fabric_partition is not None:
        yield _on(machine, "fmpm", "-a", str(machine.fabric_partition))
        yield _on(machine, "virsh", "start", machine.name)


def _on(machine: VirtualMachine, *command: str) -> Verbatim:
    return Verbatim(shlex.join(["ssh", f"root@{machine.host}", *command]))
