"""Guests before and after a change: what becomes of each, and whether it is interrupted.

Applying neither starts, stops nor boots anything: a running guest takes a change with its next
start, a host with its next boot, and a guest that leaves its host is shut down before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from gpuplan.plan.model import Plan, VirtualMachine, record
from gpuplan.plan.serialize import to_tree
from gpuplan.render.tree import FileTree

# Where a stack has guests' domains, what mirrors the root of each host, and there guests' seeds.
DOMAINS, HOSTS, SEEDS = "hypervisor/libvirt", "hypervisor/host", "/var/lib/gpuplan/seeds"
# What a host reads only when it boots.
AT_BOOT = (
    "/etc/default/grub.d/",
    "/etc/modprobe.d/",
    "/etc/modules-load.d/",
    "/etc/udev/rules.d/",
    "/etc/systemd/system/gpuplan-hugepages.service",
)
GuestStatus = Literal["added", "removed", "moved", "changed", "same"]
GuestStop = Literal["none", "before", "next start", "host boot"]
Texts = dict[str, str]


@record
class GuestChange:
    """`host` is where it is after the change, before it for one that is removed. `interrupted`:
    not at all, shut down before the change is applied, when it takes the change, or when its host
    takes its own."""

    name: str
    host: str
    status: GuestStatus
    interrupted: GuestStop
    text: str


def guest_changes(
    base: Plan | None, head: Plan | None, old: FileTree | None, new: FileTree | None
) -> tuple[GuestChange, ...]:
    """Of each guest that either plan has, in the new one's order; `old` and `new` are their stacks'
    files, without which the plans alone are compared."""
    before = {m.name: m for m in base.virtual_machines} if base else {}
    after = {m.name: m for m in head.virtual_machines} if head else {}
    texts = _texts(old), _texts(new)
    booted = frozenset(_booted(base, head, *texts))
    names = dict.fromkeys((*after, *before))
    return tuple(_change(before.get(n), after.get(n), booted, *texts) for n in names)


def _change(
    was: VirtualMachine | None, now: VirtualMachine | None, booted: frozenset[str], *texts: Texts
) -> GuestChange:
    machine = now or was
    assert machine is not None
    host = machine.host
    waits = f"{host} boots for its new settings"

    def said(status: GuestStatus, interrupted: GuestStop, text: str) -> GuestChange:
        return GuestChange(
            name=machine.name,
            host=host,
            status=status,
            interrupted=interrupted,
            text=f"{machine.name} {text}",
        )

    if was is None:
        start = f"starts once {waits}" if host in booted else "starts when it is told to"
        return said("added", "none", f"is added on {host}: it {start}")
    if now is None:
        return said("removed", "before", f"leaves {host}: shut down before, its disks stay there")
    if was.host != host:
        later = f"starts there once {waits}" if host in booted else "starts there anew"
        text = f"moves from {was.host} to {host}: shut down before, {later}"
        return said("moved", "before", text)
    if _written(was, texts[0]) != _written(now, texts[1]):
        text = f"changes on {host}: runs on as it was, until it is shut down and started"
        also = f", once {waits}" if host in booted else ""
        return said("changed", "next start", text + also)
    if host in booted:
        return said("same", "host boot", f"is as it was, and is interrupted when {waits}")
    return said("same", "none", f"is as it was on {host}: not interrupted")


def _texts(tree: FileTree | None) -> Texts:
    return {f.path: f.text for f in tree or ()}


def _written(machine: VirtualMachine, texts: Texts) -> object:
    """What a start of the guest reads: its domain and its seed, or the plan's own words of it."""
    domain = f"{DOMAINS}/{machine.name}.xml"
    if domain not in texts:
        return {k: v for k, v in to_tree(machine).items() if k != "origin"}
    seed = f"{HOSTS}/{machine.host}{SEEDS}/{machine.name}/"
    return {path: text for path, text in texts.items() if path == domain or path.startswith(seed)}


def _booted(base: Plan | None, head: Plan | None, old: Texts, new: Texts) -> Iterator[str]:
    """The hosts that both plans or the new one have, and that have to boot for it."""
    names = {h.name for h in base.hosts} if base else set()
    for host in head.hosts if head else ():
        if host.name not in names or _at_boot(host.name, old) != _at_boot(host.name, new):
            yield host.name


def _at_boot(host: str, texts: Texts) -> Texts:
    places = tuple(f"{HOSTS}/{host}{path}" for path in AT_BOOT)
    return {path: text for path, text in texts.items() if path.startswith(places)}
