"""Readings of one host → its entry in the inventory, with where each value was read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from gpuplan.diagnostics import Diagnostic
from gpuplan.frozen import record
from gpuplan.inventory.hosts import HostReadings
from gpuplan.inventory.merge.checks import counted_cpus, counted_gpus, guest, types
from gpuplan.inventory.merge.cpu import (
    Nodes,
    cores_and_memory,
    host_item,
    nodes_of,
    threads_from_siblings,
)
from gpuplan.inventory.merge.devices import (
    bridge_items,
    counted,
    function_item,
    gpu_item,
    nic_item,
    nvme_item,
    without_repeated_modules,
)
from gpuplan.inventory.merge.entities import Entity, Said, addresses, entities, identities
from gpuplan.inventory.merge.gaps import gaps
from gpuplan.inventory.merge.item import Item
from gpuplan.inventory.merge.links import grouped, links, switch_groups
from gpuplan.inventory.merge.messages import Gap
from gpuplan.inventory.merge.numbers import address_of, numbered
from gpuplan.inventory.merge.settle import Settler
from gpuplan.inventory.merge.tree import Bridges, bridges, switches
from gpuplan.inventory.merge.uses import interfaces_of, put_card_uses, serials
from gpuplan.render.commented import Route, Tree

Kinds = dict[str, list[Entity]]


@record
class Described:
    """`tree` is a host's entry without its names; `comments` say where its values were read, by
    their route in it; `uuids` are those of its GPUs, `serials` those of its drives and cards by
    address."""

    name: str
    tree: Tree
    comments: dict[Route, str]
    uuids: tuple[str | None, ...]
    serials: dict[str, str]
    problems: tuple[Diagnostic, ...]
    gaps: tuple[Gap, ...]


def described(readings: HostReadings) -> Described:
    problems: list[Diagnostic] = []
    missing: list[Gap] = []
    name = readings.name
    kinds = entities(readings.readings, problems)
    _unspecific(kinds)
    settler = Settler(name)
    whole = next(iter(kinds.get("host", ())), Entity("host", [""]))
    host = host_item(whole, settler)
    threads_from_siblings(host)
    nodes = nodes_of(host, kinds.get("numa", ()), settler)
    cores_and_memory(host, nodes)
    tree = bridges(kinds.get("bridge", ()), settler)
    gpus = _gpus(kinds, name, missing)
    devices = _devices(kinds, gpus, nodes, tree, settler)
    interfaces = interfaces_of(kinds.get("interface", ()))
    put_card_uses([i for i in devices if i.of.kind == "nic"], interfaces)
    missing += _unmatched(kinds, name)
    linked = _links(kinds, devices, settler)
    _switches(devices, tree, linked)
    without_repeated_modules([i for i in devices if i.of.kind == "gpu"])
    problems += [*types(gpus, name), *counted_gpus(kinds, gpus, name), *counted_cpus(whole, name)]
    problems += guest(host, gpus, name)
    missing += gaps(name, host, nodes, devices, _start(kinds))
    if not readings.named:
        missing.append(_unnamed(_start(kinds)))
    items = {
        "numa_nodes": nodes.items,
        "gpus": counted([i for i in devices if i.of.kind == "gpu"]),
        "nics": [i for i in devices if i.of.kind == "nic"],
        "nvme": [i for i in devices if i.of.kind == "nvme"],
        "functions": [
            function_item(f, nodes, tree, settler) for f in _beside(kinds, devices, settler)
        ],
        "bridges": bridge_items(devices, tree, settler),
    }
    whole_tree, comments = _tree(host, items)
    if linked:
        whole_tree["links"] = grouped(linked)
        _cite(comments, ("links",), kinds["pair"])
    return Described(
        name=name,
        tree=whole_tree,
        comments=comments,
        uuids=tuple(_uuid(g, settler) for g in gpus),
        serials=serials(devices, interfaces),
        problems=(*_of_readings(readings), *problems, *settler.problems),
        gaps=tuple(missing),
    )


MOST_GPUS = 1024  # of a host that an inventory can hold
DEVICES = ("gpu", "nic", "nvme")


def _of_readings(readings: HostReadings) -> Iterator[Diagnostic]:
    for reading in readings.readings:
        yield from reading.problems


def _unnamed(at: Any) -> Gap:
    return Gap(
        host="these texts",
        fact="the host",
        purpose="naming it",
        remedy="put the outputs into a folder that is called after it",
        at=at,
    )


def _unspecific(kinds: Kinds) -> None:
    """Devices whose kind a tool does not tell are those that others name at the address; the rest
    are functions, of which at least the group may be known."""
    named = (*DEVICES, "function", "bridge")
    placed = {a: t for k in named for t in kinds.get(k, ()) for a in addresses(t)}
    for thing in kinds.pop("device", ()):
        target = next((placed[k] for k in thing.keys if k in placed), None)
        if target is None:
            kinds.setdefault("function", []).append(thing)
        for attribute, said in thing.said.items() if target else ():
            target.said.setdefault(attribute, []).extend(said)  # type: ignore[union-attr]


def _beside(kinds: Kinds, devices: Sequence[Item], settler: Settler) -> Iterator[Entity]:
    """The functions in the IOMMU groups of `devices`, or on their cards where a group is unknown;
    virtual functions are their owners'."""
    virtual = {a for i in devices for v in i.of.values("virtual_functions") for a in _listed(v)}
    groups = {i.tree["iommu_group"] for i in devices if "iommu_group" in i.tree}
    cards = {_card(i.tree["address"]) for i in devices if "address" in i.tree}
    for function in sorted(kinds.get("function", ()), key=_order):
        address = address_of(function)
        settled = settler.value(function, "iommu_group")
        near = settled.value in groups if settled else address and _card(address) in cards
        if address and near and address not in virtual:
            yield function


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, tuple) else ()


def _card(address: str) -> str:
    """All functions of a card have its domain, bus and slot."""
    return address.rpartition(".")[0]


def _gpus(kinds: Kinds, name: str, missing: list[Gap]) -> list[Entity]:
    """The host's GPUs in order; where no tool lists them, as many as one counts. The one product
    of which a tool counts as many as are listed is the product of each."""
    gpus = _physical(numbered(kinds.get("gpu", ()), name, missing))
    products = kinds.get("product", [])
    if not gpus:
        return [gpu for product in products for gpu in _of_product(product)]
    alike = [*_of_product(products[0])] if len(products) == 1 else []
    for gpu, same in zip(gpus, alike, strict=True) if len(alike) == len(gpus) else ():
        for attribute, said in same.said.items():
            gpu.said.setdefault(attribute, []).extend(said)
    return gpus


def _of_product(product: Entity) -> Iterator[Entity]:
    """As many GPUs as are counted of it."""
    said = product.said.get("gpus", [])
    for number in range(min(int(str(said[0].value)), MOST_GPUS) if said else 0):
        gpu = Entity("gpu", [f"{product.keys[0]} {number}"])
        gpu.said["product"] = [
            Said(value=product.keys[0], tool=s.tool, place=s.place) for s in said
        ]
        for attribute in ("memory_bytes", "mig", "mig_profiles"):
            if attribute in product.said:
                gpu.said[attribute] = [*product.said[attribute]]
        yield gpu


def _physical(things: Sequence[Entity]) -> list[Entity]:
    """Without those that are virtual functions of others."""
    functions = {
        str(f)
        for t in things
        for v in t.values("virtual_functions")
        if isinstance(v, tuple)
        for f in v
    }
    return [t for t in things if address_of(t) not in functions]


def _devices(
    kinds: Kinds, gpus: Sequence[Entity], nodes: Nodes, tree: Bridges, settler: Settler
) -> list[Item]:
    cards, drives = (_placed(kinds.get(kind, ())) for kind in ("nic", "nvme"))
    return [
        *(gpu_item(g, nodes, tree, settler) for g in gpus),
        *(nic_item(c, nodes, tree, settler) for c in cards),
        *(nvme_item(d, nodes, tree, settler) for d in drives),
    ]


def _placed(things: Sequence[Entity]) -> list[Entity]:
    """In the order of the bus. Where some have addresses, the others are the same under names."""
    physical = _physical(sorted(things, key=_order))
    return [t for t in physical if address_of(t)] or physical


def _unmatched(kinds: Kinds, name: str) -> Iterator[Gap]:
    """Cards and drives that only their names are known of, beside others with addresses: they are
    the same ones, but nothing says which."""
    for kind, noun in (("nic", "network card"), ("nvme", "drive")):
        things = kinds.get(kind, ())
        nameless = [t for t in things if address_of(t) is None]
        if nameless and len(nameless) < len(things):
            yield Gap(
                host=name,
                fact=f"which address each named {noun} has",
                purpose="joining what the tools say",
                remedy="add `ls -l /sys/class/infiniband /sys/class/net /sys/class/nvme`",
                at=nameless[0].place(),
            )


def _order(thing: Entity) -> tuple[str, int, str]:
    key = min(thing.keys)
    return address_of(thing) or "~", len(key), key


def _links(kinds: Kinds, devices: Sequence[Item], settler: Settler) -> dict[tuple[str, str], str]:
    names: dict[str, str] = {}
    for kind in ("gpu", "nic"):
        members = [i.of for i in devices if i.of.kind == kind]
        for number, thing in enumerate(members):
            words = {*thing.keys, *(str(v) for _, v in identities(thing))}
            words |= {f"GPU{v}" for n, v in identities(thing) if n == "index"}
            names |= dict.fromkeys(words, f"{kind}{number}")
    return links(kinds.get("pair", ()), names, settler)


def _switches(devices: Sequence[Item], tree: Bridges, linked: dict[tuple[str, str], str]) -> None:
    """Names of switches: from the tree, else from the matrix."""
    placed = [(i.tree["address"], i.tree.get("parent")) for i in devices if "address" in i.tree]
    named = switches(placed, tree)
    for item in devices:
        if item.tree.get("address") in named:
            item.put("switch", named[item.tree["address"]], item.said("parent"))
    _told_switches(devices)
    if any("switch" in item.tree for item in devices):
        return
    numbers: dict[str, int] = {}
    by_name: dict[str, Item] = {}
    for item in devices:
        number = numbers.setdefault(item.of.kind, 0)
        by_name[f"{item.of.kind}{number}"] = item
        numbers[item.of.kind] += 1
    for number, group in enumerate(switch_groups(linked)):
        for member in group:
            by_name[member].put("switch", f"switch{number}")


def _told_switches(devices: Sequence[Item]) -> None:
    """Switches that a tool names itself, of devices that the tree has none for."""
    count = Counter(i.value("switch") for i in devices)
    for item in devices:
        name = item.value("switch")
        if name is not None and count[name] > 1 and "switch" not in item.tree:
            item.take("switch", "switch", str)


def _uuid(gpu: Entity, settler: Settler) -> str | None:
    settled = settler.value(gpu, "uuid")
    return str(settled.value) if settled else None


def _start(kinds: Kinds) -> Any:
    places = [t.place() for things in kinds.values() for t in things]
    known = [p for p in places if p]
    return min(known, key=lambda p: (p.document, p.span.line), default=None)


def _tree(host: Item, items: dict[str, list[Item]]) -> tuple[Tree, dict[Route, str]]:
    comments: dict[Route, str] = {(): host.comment()}
    tree = dict(host.tree)
    for field, entries in items.items():
        if not entries and field != "gpus":
            continue
        tree[field] = [entry.tree for entry in entries]
        for number, entry in enumerate(entries):
            comments[field, number] = entry.comment()
    return tree, {route: text for route, text in comments.items() if text}


def _cite(comments: dict[Route, str], route: Route, things: Sequence[Entity]) -> None:
    places = [p for t in things if (p := t.place())]
    first = min(places, key=lambda p: (p.document, p.span.line))
    comments[route] = f"{first.document}:{first.span.line}"
