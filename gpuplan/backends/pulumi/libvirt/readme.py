"""What the README of a stack of libvirt guests says of its program: how to prepare, apply and
remove it. Commands are quoted for a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from gpuplan.emission import Section
from gpuplan.plan.model import Plan, VirtualMachine
from gpuplan.render.environments import Verbatim, render


def sections(plan: Plan) -> Iterator[Section]:
    guests = plan.virtual_machines
    before = render(
        "markdown",
        "pulumi/libvirt/before.md.j2",
        keys=[_key(h.name) for h in plan.hosts],
        address=_setting("hosts", plan.hosts[0].name, "10.0.0.7") if plan.hosts else "",
    )
    yield Section("Before", before)
    yield Section("Apply", render("markdown", "pulumi/libvirt/apply.md.j2", ansible=plan.ansible))
    stop = [_on(m, "virsh", "shutdown", m.name) for m in guests]
    yield Section("Remove", render("markdown", "pulumi/libvirt/remove.md.j2", stop=stop))


def _setting(name: str, host: str, value: str) -> Verbatim:
    """The command that sets one host's entry; a host's name may have dots."""
    path = shlex.quote(f'{name}["{host}"]')
    return Verbatim(f"pulumi config set --path {path} {value}")


def _key(host: str) -> Verbatim:
    scan = f"ssh-keyscan -t ed25519 {shlex.quote(host)} | cut -d ' ' -f 2-"
    return _setting("hostKeys", host, f'"$({scan})"')


def _on(machine: VirtualMachine, *command: str) -> Verbatim:
    return Verbatim(shlex.join(["ssh", f"root@{machine.host}", *command]))
