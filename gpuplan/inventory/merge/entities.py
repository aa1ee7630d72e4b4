"""Subjects of several readings that are one thing: a GPU by its address, number and UUID."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from gpuplan.diagnostics import Diagnostic
from gpuplan.frozen import record
from gpuplan.inventory.facts import Observation, Reading, Value
from gpuplan.inventory.merge.messages import differs
from gpuplan.source import Place

ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_NUMBERED = re.compile(r"(?:GPU)?([0-9]{1,4})")
_NAMESPACE = re.compile(r"(nvme[0-9]+)n[0-9]+")
_UUID = re.compile(r"GPU-[0-9A-Za-z-]+")
# systemd.net-naming-scheme(7): `p` bus `s` slot `f` function, decimal, `P` domain before it.
_PREDICTABLE = re.compile(
    r"[a-z]+(?:P([0-9]+))?p([0-9]+)s([0-9]+)(?:f([0-7]))?(?:np?[0-9]+|d[0-9]+)?"
)
IDENTITIES = {
    "gpu": ("address", "uuid", "index"),
    "nic": ("address", "name"),
    "nvme": ("address", "name"),
    "bridge": ("address",),
    "function": ("address",),
    "device": ("address",),
}
Identity = tuple[str, Value]


@record
class Said:
    value: Value
    tool: str
    place: Place


@dataclass(slots=True)
class Entity:
    """One thing of a host, with everything that is said of it; `keys` are the tools' words."""

    kind: str
    keys: list[str] = field(default_factory=list)
    said: dict[str, list[Said]] = field(default_factory=dict)

    def values(self, attribute: str) -> list[Value]:
        return [s.value for s in self.said.get(attribute, ())]

    def first(self, attribute: str) -> Value | None:
        return next(iter(self.values(attribute)), None)

    def place(self) -> Place | None:
        """Where it is first spoken of."""
        places = [s.place for said in self.said.values() for s in said]
        return min(places, key=lambda p: (p.document, p.span.line, p.span.column), default=None)

    def add(self, fact: Observation, tool: str) -> None:
        said = Said(value=fact.value, tool=tool, place=fact.place)
        self.said.setdefault(fact.attribute, []).append(said)


def entities(readings: Sequence[Reading], problems: list[Diagnostic]) -> dict[str, list[Entity]]:
    """The things that `readings` speak of, by kind; what would make one of two things that have
    different addresses goes to `problems`, and they stay two."""
    named: dict[tuple[str, str], Entity] = {}
    for reading in readings:
        for fact in reading.facts:
            kind, key = fact.subject
            if fact.subject not in named:
                named[fact.subject] = Entity(kind, [key])
            named[fact.subject].add(fact, reading.tool)
    kinds: dict[str, list[Entity]] = {}
    for entity in named.values():
        kinds.setdefault(entity.kind, []).append(entity)
    return {
        kind: _joined(kind, things, problems) if kind in IDENTITIES else things
        for kind, things in kinds.items()
    }


def key_identity(kind: str, key: str) -> Identity:
    """What the tool's own word for a thing says it is."""
    if ADDRESS.fullmatch(key):
        return "address", key
    if kind == "gpu" and (match := _NUMBERED.fullmatch(key)):
        return "index", int(match[1])
    if kind == "gpu" and _UUID.fullmatch(key):
        return "uuid", key
    return "name", _controller(key)


def _controller(name: Value) -> Value:
    """`nvme0n1` is a namespace of the drive `nvme0`."""
    match = _NAMESPACE.fullmatch(str(name))
    return match[1] if match else name


def identities(entity: Entity) -> Iterator[Identity]:
    """Strongest first."""
    named = [key_identity(entity.kind, key) for key in entity.keys]
    for attribute in IDENTITIES[entity.kind]:
        yield from (i for i in named if i[0] == attribute)
        yield from ((attribute, _controller(value)) for value in entity.values(attribute))
    yield from (i for i in named if i[0] == "name" and "name" not in IDENTITIES[entity.kind])


def addresses(entity: Entity) -> set[Value]:
    return {value for name, value in identities(entity) if name == "address"}


def _joined(kind: str, things: Iterable[Entity], problems: list[Diagnostic]) -> list[Entity]:
    merged: list[Entity] = []
    for attribute in IDENTITIES[kind]:
        merged, things = [], merged or list(things)
        owner: dict[Value, Entity] = {}
        for thing in things:
            own = [value for name, value in identities(thing) if name == attribute]
            target = next((owner[v] for v in own if v in owner), None)
            if target is not None and _same(target, thing, attribute, problems):
                _absorb(target, thing)
            else:
                target = thing
                merged.append(thing)
            owner |= dict.fromkeys(own, target)
    if kind == "nic":
        merged = _by_predictable_name(merged)
    return merged


def _same(target: Entity, thing: Entity, attribute: str, problems: list[Diagnostic]) -> bool:
    """Whether two things that share `attribute` are one: not where their addresses differ."""
    stated, known = addresses(target), addresses(thing)
    if not stated or not known or stated & known:
        return True
    first, second = target.said.get("address"), thing.said.get("address")
    if first and second:
        fact = (
            f"the address of {target.kind} {attribute} {next(iter(target.values(attribute)), '')}"
        )
        pair = [(s.value, s.tool, s.place) for s in (first[0], second[0])]
        problems.append(differs(fact.strip(), pair))
    return False


def _absorb(target: Entity, thing: Entity) -> None:
    target.keys += [key for key in thing.keys if key not in target.keys]
    for attribute, said in thing.said.items():
        target.said.setdefault(attribute, []).extend(said)


def _by_predictable_name(cards: list[Entity]) -> list[Entity]:
    """Cards known by a name that states the place on the bus, joined with the card there."""
    placed = {a: card for card in cards for a in addresses(card)}
    kept: list[Entity] = []
    for card in cards:
        stated = [stated_address(n) for n in [*card.keys, *map(str, card.values("name"))]]
        target = next((placed[a] for a in stated if a in placed), None)
        if target is None or target is card or addresses(card):
            kept.append(card)
        else:
            _absorb(target, card)
    return kept


def stated_address(name: str) -> str | None:
    """`rocep145s0`, `ens` no: the address in a name of systemd's scheme by path, if it is one."""
    match = _PREDICTABLE.fullmatch(name)
    if not match:
        return None
    domain, bus, slot, function = (int(g or 0) for g in match.groups())
    inside = bus < 256 and slot < 32 and domain < 65536
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{function}" if inside else None
