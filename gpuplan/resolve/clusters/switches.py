"""The network between the hosts of an inventory: a tree of switches, or what keeps it from being
one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpuplan.diagnostics import Diagnostic, error
from gpuplan.plan.outside.cluster import Switch
from gpuplan.source import Origin

if TYPE_CHECKING:
    from gpuplan.inventory.v1 import Inventory, SwitchSpec


def switch_problems(inventory: Inventory, document: str) -> Iterator[Diagnostic]:
    """Every switch has a name of its own, every host is at one, and none is below itself."""
    names = [s.name for s in inventory.switches]
    hosts = {name for host in inventory.hosts for name in host.names}
    plugged: dict[str, str] = {}
    for number, switch in enumerate(inventory.switches):
        at = Origin(document, ("switches", number))
        if switch.name in names[:number]:
            yield _wrong(f"two switches are called '{switch.name}'", at.child("name"))
        yield from _members(switch, at, set(names), plugged)
    if names and (missing := sorted(hosts - set(plugged))):
        text = f"{', '.join(missing)} is at no switch, so no run would span it and others"
        yield _wrong(text, Origin(document, ("switches",)))
    yield from _circles(inventory.switches, document)


def _members(
    switch: SwitchSpec, at: Origin, names: set[str], plugged: dict[str, str]
) -> Iterator[Diagnostic]:
    if bool(switch.hosts) == bool(switch.switches):
        yield _wrong(f"switch '{switch.name}' needs either hosts or switches", at)
    for place, other in enumerate(switch.switches):
        if other not in names:
            here = at.child("switches", place)
            yield _wrong(f"switch '{switch.name}' names '{other}', which is no switch", here)
    for place, host in enumerate(switch.hosts):
        if host in plugged:
            here = at.child("hosts", place)
            yield _wrong(f"'{host}' is at '{plugged[host]}' and at '{switch.name}'", here)
        plugged.setdefault(host, switch.name)


def _circles(switches: Sequence[SwitchSpec], document: str) -> Iterator[Diagnostic]:
    below = {s.name: s.switches for s in switches}
    for number, switch in enumerate(switches):
        seen: set[str] = set()
        left = list(switch.switches)
        while left:
            name = left.pop()
            if name not in seen:
                seen.add(name)
                left += below.get(name, ())
        if switch.name in seen:
            yield _wrong(
                f"switch '{switch.name}' is below itself", Origin(document, ("switches", number))
            )
            return


def _wrong(message: str, at: Origin) -> Diagnostic:
    return error("GP004", message, at, help="mend 'switches' of the inventory")


def switches(inventory: Inventory, present: Sequence[str]) -> tuple[Switch, ...]:
    """Without the hosts that other stacks hold, and switches that then have none."""
    known = set(present)
    hosts = {s.name: tuple(h for h in s.hosts if h in known) for s in inventory.switches}
    kept = {name for name, members in hosts.items() if members}
    while more := {s.name for s in inventory.switches if kept & set(s.switches)} - kept:
        kept |= more
    return tuple(
        Switch(
            name=s.name,
            hosts=hosts[s.name],
            switches=tuple(o for o in s.switches if o in kept),
        )
        for s in inventory.switches
        if s.name in kept
    )
