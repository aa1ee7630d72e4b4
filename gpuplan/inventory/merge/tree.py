"""The PCIe tree: bridges above devices, and the switches that devices share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpuplan.inventory.merge.entities import Entity
from gpuplan.inventory.merge.numbers import address_of
from gpuplan.inventory.merge.settle import Settler

DEEPEST = 32  # bridges above a device; the bus numbers of real hosts allow few


@dataclass(frozen=True, slots=True)
class Bridges:
    """The host's bridges by address, with the parent of each."""

    by_address: Mapping[str, Entity]
    parents: Mapping[str, str]

    def above(self, device: str | None) -> tuple[str, ...]:
        """The bridges above the first one, `device`, nearest first, up to the root port."""
        chain: list[str] = []
        while device is not None and device not in chain and len(chain) < DEEPEST:
            chain.append(device)
            device = self.parents.get(device)
        return tuple(chain)

    def numa_node(self, parent: str | None, settler: Settler) -> int | None:
        """The node that a bridge on the way to the root is said to be near."""
        for address in self.above(parent):
            bridge = self.by_address.get(address)
            settled = settler.value(bridge, "numa_node") if bridge else None
            if settled:
                return int(str(settled.value))
        return None


def bridges(things: Iterable[Entity], settler: Settler) -> Bridges:
    by_address = {a: thing for thing in things if (a := address_of(thing))}
    parents = {}
    for address, thing in by_address.items():
        settled = settler.value(thing, "parent")
        if settled:
            parents[address] = str(settled.value)
    return Bridges(by_address, parents)


def switches(devices: Sequence[tuple[str, str | None]], tree: Bridges) -> dict[str, str]:
    """Address of each device → its switch, where it shares one. `devices` are addresses with their
    parents. A root port has one link: two cards below it stand on a switch, which is called after
    its upstream port, or after the root port where a tool leaves the ports out."""
    below: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for address, parent in devices:
        chain = tree.above(parent)
        if chain:
            below.setdefault(chain[-1], []).append((address, chain))
    named: dict[str, str] = {}
    for root, members in below.items():
        if len({address.rpartition(".")[0] for address, _ in members}) < 2:
            continue
        upstream = sorted({chain[-2] for _, chain in members if len(chain) > 1})
        name = upstream[0] if len(upstream) == 1 else root
        named |= {address: name for address, _ in members}
    return named
