"""What the host does with its drives and network cards. What no tool says stays unknown, which is
not the same as nothing: guests are given only what the host does not use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuplan.inventory.merge.entities import Entity, Said
from gpuplan.inventory.merge.item import Item

VFIO = "vfio-pci"  # the driver of a device that a guest has, or is about to
DEFAULT_ROUTE = "default route"
Interfaces = Mapping[str, Entity]


def drive_uses(drive: Entity) -> list[str] | None:
    """Mount points, file systems and holders of all namespaces; None where no tool says."""
    listed = [value for value in drive.values("uses") if isinstance(value, tuple)]
    held = [value for value in drive.values("holders") if isinstance(value, tuple)]
    if not listed and not held and drive.first("driver") != VFIO:
        return None
    return list(dict.fromkeys(str(use) for value in (*listed, *held) for use in value))


def interfaces_of(entities: Sequence[Entity]) -> Interfaces:
    return {entity.keys[0]: entity for entity in entities}


def put_card_uses(cards: Sequence[Item], interfaces: Interfaces) -> None:
    """`in_use` of each card of `cards`. Those that do not carry the default route are free only
    where it is known which card does. Where there is no such route, all that others reach are
    taken for the way to the host."""
    owners = {name: card for card in cards for name in _names(card)}
    routed = [name for name, entity in interfaces.items() if "default_route" in entity.said]
    reached = [name for name, entity in interfaces.items() if entity.first("reached") == "yes"]
    carriers = [_below(name, interfaces) & owners.keys() for name in routed or reached]
    if not carriers or not all(carriers):
        return
    busy = {id(owners[name]) for names in carriers for name in names}
    said = [s for name in routed or reached for s in _said(interfaces[name])]
    for card in cards:
        card.put("in_use", [DEFAULT_ROUTE] if id(card) in busy else [], said)


def serials(devices: Sequence[Item], interfaces: Interfaces) -> dict[str, str]:
    """What tells a device from another one of its model, by address: a drive's serial number, a
    card's MAC address."""
    known: dict[str, str] = {}
    for item in devices:
        value = item.value("serial") if item.of.kind == "nvme" else None
        if item.of.kind == "nic":
            macs = {interfaces[n].first("mac") for n in _names(item) & interfaces.keys()} - {None}
            value = macs.pop() if len(macs) == 1 else None
        if value is not None and "address" in item.tree:
            known[str(item.tree["address"])] = str(value)
    return known


def _names(card: Item) -> set[str]:
    return {*card.of.keys, *(str(name) for name in card.of.values("name"))}


def _said(interface: Entity) -> list[Said]:
    return interface.said.get("default_route") or interface.said.get("reached") or []


def _below(name: str, interfaces: Interfaces) -> set[str]:
    """The interface `name` and all that it stands on: of a VLAN the card, of a bond its parts."""
    reached: set[str] = set()
    waiting = [name]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            own = interfaces.get(name)
            waiting += map(str, own.values("below")) if own else ()
            waiting += (n for n, part in interfaces.items() if part.first("master") == name)
    return reached
