"""Descriptions of hosts → the inventory document, equal hosts folded into one entry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from gpuplan.frozen import record
from gpuplan.inventory.merge.host import Described
from gpuplan.inventory.words import API_VERSION
from gpuplan.render.commented import Inline, Route, dumps

TITLE = (
    "Written by `gpuplan inventory import`; a comment says where the values below it were read. "
    "For guests on these hosts (target: libvirt) each needs 'hypervisor', with 'disk_path' and "
    "'bridge'."
)


@record
class Folded:
    """Equal hosts; `first` stands for all."""

    names: tuple[str, ...]
    first: Described
    uuids: tuple[tuple[str, tuple[str | None, ...]], ...]
    serials: tuple[tuple[str, dict[str, str]], ...]


def folded(hosts: Iterable[Described]) -> tuple[Folded, ...]:
    """Hosts with equal entries together, sorted by their first name."""
    groups: list[list[Described]] = []
    for host in sorted(hosts, key=lambda h: natural(h.name)):
        group = next((g for g in groups if g[0].tree == host.tree), None)
        if group is None:
            groups.append([host])
        else:
            group.append(host)
    return tuple(
        Folded(
            names=tuple(h.name for h in group),
            first=group[0],
            uuids=tuple((h.name, h.uuids) for h in group if any(h.uuids)),
            serials=tuple((h.name, h.serials) for h in group if h.serials),
        )
        for group in groups
    )


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """`gpu-2` before `gpu-10`."""
    parts: list[tuple[int, int | str]] = []
    for digit, text in _runs(name):
        parts.append((0, int(text)) if digit else (1, text))
    return tuple(parts)


def _runs(name: str) -> Iterator[tuple[bool, str]]:
    start = 0
    for end in range(1, len(name) + 1):
        if end == len(name) or name[end].isdecimal() != name[start].isdecimal():
            yield name[start].isdecimal(), name[start:end]
            start = end


@record
class Written:
    """The document as YAML, and as the plain data that it is read as."""

    text: str
    data: dict[str, Any]


def written(name: str, hosts: Sequence[Folded]) -> Written:
    entries: list[dict[str, Any]] = []
    comments: dict[Route, str] = {}
    for number, host in enumerate(hosts):
        entry = {"names": Inline(host.names), **host.first.tree}
        if host.uuids:
            entry["gpu_uuids"] = {n: Inline(uuids) for n, uuids in host.uuids}
        entries.append(entry)
        if host.serials:
            entry["serials"] = dict(host.serials)
        comments |= _comments(("hosts", number), host.first)
    tree = {"apiVersion": API_VERSION, "name": name, "hosts": entries}
    return Written(text=dumps(tree, comments, TITLE), data=_plain(tree))


def _plain(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _plain(value) for key, value in tree.items()}
    return [_plain(v) for v in tree] if isinstance(tree, list | tuple) else tree


def _comments(at: Route, host: Described) -> dict[Route, str]:
    return {(*at, *route): note for route, note in host.comments.items()}
