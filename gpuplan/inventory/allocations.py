"""Who holds which hosts: what of an inventory is left for a stack, and the inventory's text with
another list of holders."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from gpuplan.diagnostics import Diagnostic, error, note
from gpuplan.source import Origin
from gpuplan.units import plural

if TYPE_CHECKING:
    from gpuplan.inventory.v1 import Allocation, HeldHost, HostSpec, Inventory

SHOWN = 8
_BLOCK = re.compile(r"^allocations:.*\n(?:(?:[ \t#-].*)?\n)*", re.MULTILINE)


def held_by_others(hosts: Mapping[str, str], at: Origin | None) -> Diagnostic:
    """`hosts` are those that are not to be had, each with its stack."""
    names = [f"{host} ({stack})" for host, stack in hosts.items()]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return note(
        "GP026",
        f"other stacks hold {plural(len(names), 'host')}: {', '.join(names[:SHOWN])}{more}",
        at,
        help="`gpuplan inventory release INVENTORY STACK` frees those of a stack that is removed",
    )


def held_twice(host: str, stack: str, holder: str, at: Origin | None) -> Diagnostic:
    return error(
        "GP027",
        f"host {host} cannot be given to stack {stack}: stack {holder} holds it",
        at,
        help="compile the stack again, which then takes other hosts, or release the other one",
    )


def no_such_host(host: str, stack: str, at: Origin | None) -> Diagnostic:
    return error(
        "GP027",
        f"stack {stack} holds host {host}, which the inventory does not have",
        at,
        help="`gpuplan inventory release INVENTORY STACK`, or add the host again",
    )


def holds_nothing(stack: str, holders: Iterable[str]) -> Diagnostic:
    known = ", ".join(holders)
    return error(
        "GP027",
        f"stack {stack} holds nothing in this inventory",
        help=f"stacks that hold hosts: {known}" if known else "no stack holds any host of it",
    )


def no_named_hosts(stack: str) -> Diagnostic:
    return error(
        "GP027",
        f"stack {stack} names no host, so there is nothing to allocate",
        help="name the inventory as 'platform.inventory' of its manifest and compile it again",
    )


def not_rewritten(path: str) -> Diagnostic:
    return error(
        "GP027",
        f"{path} cannot be given a list 'allocations' without changing the rest of it",
        help="write its top level as a YAML block: one key a line, from the first column",
    )


def holders(inventory: Inventory) -> dict[str, str]:
    """Host → the stack that holds it."""
    return {host.name: a.stack for a in inventory.allocations for host in a.hosts}


def problems(inventory: Inventory, document: str) -> Iterator[Diagnostic]:
    """Hosts that two stacks hold, or that are not there."""
    known = {name for spec in inventory.hosts for name in spec.names}
    seen: dict[str, str] = {}
    for number, allocation in enumerate(inventory.allocations):
        for place, host in enumerate(allocation.hosts):
            at = Origin(document, ("allocations", number, "hosts", place, "name"))
            if host.name not in known:
                yield no_such_host(host.name, allocation.stack, at)
            elif host.name in seen:
                yield held_twice(host.name, allocation.stack, seen[host.name], at)
            seen.setdefault(host.name, allocation.stack)


def available(inventory: Inventory, stacks: Collection[str]) -> tuple[Inventory, dict[str, str]]:
    """The inventory without the hosts that other stacks than `stacks` hold, and those with their
    holders. What `stacks` hold themselves comes first, so that they keep it. Places of hosts in the
    document stay: a kind of which no host is left has neither names nor devices."""
    holder = holders(inventory)
    taken = {host: stack for host, stack in holder.items() if stack not in stacks}
    if not holder:
        return inventory, {}
    hosts = [_left(spec, taken, holder) for spec in inventory.hosts]
    return inventory.model_copy(update={"hosts": hosts}), taken


def _left(spec: HostSpec, taken: Mapping[str, str], holder: Mapping[str, str]) -> HostSpec:
    names = sorted((n for n in spec.names if n not in taken), key=lambda n: n not in holder)
    return spec.model_copy(update={"names": names}) if names else nothing_of(spec)


def nothing_of(spec: HostSpec) -> HostSpec:
    """The place of a kind of host that nothing may be planned on."""
    parts = ("names", "gpus", "nics", "nvme", "functions", "bridges", "links", "numa_nodes")
    return spec.model_copy(update={field: [] for field in parts} | {"hypervisor": None})


def replaced(inventory: Inventory, new: Sequence[Allocation]) -> tuple[Allocation, ...]:
    """The inventory's allocations with `new` in the place of those of the same stacks."""
    names = {a.stack for a in new}
    kept = (a for a in inventory.allocations if a.stack not in names)
    return tuple(sorted((*kept, *new), key=lambda a: a.stack))


def rewritten(text: str, allocations: Sequence[Allocation]) -> str:
    """The text of an inventory in block style with these allocations; all else stays as it is
    written."""
    plain = _BLOCK.sub("", text, count=1)
    if not allocations:
        return plain
    end = "" if not plain or plain.endswith("\n") else "\n"
    return plain + end + "".join(f"{line}\n" for line in _lines(allocations))


def _lines(allocations: Sequence[Allocation]) -> Iterator[str]:
    yield "allocations:"
    for allocation in allocations:
        yield f"- stack: {_quoted(allocation.stack)}"
        yield "  hosts:"
        for host in allocation.hosts:
            yield from _host_lines(host)


def _host_lines(host: HeldHost) -> Iterator[str]:
    yield f"  - name: {_quoted(host.name)}"
    yield f"    gpus: {host.gpus}"
    if host.mig:
        yield "    mig:"
    for cut in host.mig:
        instances = ", ".join(map(_quoted, cut.instances))
        yield f"    - {{gpus: {cut.gpus}, instances: [{instances}]}}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
