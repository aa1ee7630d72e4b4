"""Which readings are of which host."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from gpuplan.frozen import record
from gpuplan.inventory.facts import Reading

UNNAMED = "unnamed"
_NOT_OF_A_NAME = re.compile(r"[^a-z0-9.-]+")
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_KUBERNETES = "kubectl"


@record
class HostReadings:
    """All readings of one host. `named` is false where nothing says what it is called."""

    name: str
    named: bool
    readings: tuple[Reading, ...]


def by_host(given: Iterable[tuple[str, Sequence[Reading]]]) -> tuple[HostReadings, ...]:
    """Readings with the place (folder, archive) that they come from → hosts, sorted by name."""
    places: dict[str, list[Reading]] = {}
    for place, readings in given:
        places.setdefault(place, []).extend(readings)
    names = _one_of_each([r for readings in places.values() for r in readings], places)
    hosts: dict[str, list[Reading]] = {}
    for place, readings in places.items():
        common = _of_place(place, readings, names)
        for reading in readings:
            said = host_name(reading.host or "")
            hosts.setdefault(names.get(said, said) or common, []).append(reading)
    return tuple(
        HostReadings(name=name or UNNAMED, named=bool(name), readings=tuple(_sorted(readings)))
        for name, readings in sorted(hosts.items())
    )


def host_name(text: str) -> str:
    """`text` as a host's name: what cannot stand in one is `-`; empty where nothing is left."""
    name = _NOT_OF_A_NAME.sub("-", text.casefold())[:253].strip(".-")
    return name if _NAME.fullmatch(name) else ""


def _of_place(place: str, readings: Sequence[Reading], names: Mapping[str, str]) -> str:
    """The host of the outputs that name none: the only one that others of the same place name,
    else the place's own name."""
    said = {host_name(r.host) for r in readings if r.host}
    own = host_name(place)
    if len(said) == 1 and any(not r.host for r in readings):
        own = next(iter(said))
    return names.get(own, own)


def _one_of_each(readings: Iterable[Reading], places: Iterable[str]) -> dict[str, str]:
    """Short and full names of one host → the name that Kubernetes uses, else the full one."""
    kubernetes = {host_name(r.host) for r in readings if r.host and _KUBERNETES in r.tool}
    said = {host_name(r.host) for r in readings if r.host} | {host_name(p) for p in places}
    names: dict[str, str] = {}
    for short in said:
        full = [n for n in said if n.startswith(f"{short}.")]
        if "." not in short and short and len(full) == 1:
            chosen = short if short in kubernetes else full[0]
            names[short] = names[full[0]] = chosen
    return names


def _sorted(readings: Iterable[Reading]) -> list[Reading]:
    return sorted(readings, key=lambda r: (r.document, r.tool))
