"""What a matrix says of pairs of devices → links between groups, and the switches it implies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpuplan.inventory.merge.entities import Entity
from gpuplan.inventory.merge.settle import Settler
from gpuplan.render.commented import Inline

ON_A_SWITCH = ("PIX", "PXB")
Pair = tuple[str, str]


def links(pairs: Iterable[Entity], names: Mapping[str, str], settler: Settler) -> dict[Pair, str]:
    """Every two devices (`gpu0`, `nic3`) with their link; `names` is a device by a tool's word."""
    settled_links: dict[Pair, str] = {}
    for pair in pairs:
        words = pair.keys[0].split(" ")
        devices = [names[w] for w in words if w in names]
        settled = settler.value(pair, "link")
        if len(words) == 2 and len(devices) == 2 and settled and settled.value != "X":
            first, second = sorted(devices, key=order)
            if first != second:
                settled_links[first, second] = str(settled.value)
    return settled_links


def order(name: str) -> tuple[str, int]:
    """`gpu2` before `gpu10` before `nic0`."""
    return name[:3], int(name[3:])


def grouped(links: Mapping[Pair, str]) -> list[dict[str, Any]]:
    """Links as an inventory writes them: groups all of whose members are linked alike, and groups
    linked to groups. Every pair is in exactly one entry."""
    rows: list[dict[str, Any]] = []
    for kind in ("gpu", "nic"):
        inside = {p: v for p, v in links.items() if p[0][:3] == p[1][:3] == kind}
        rows += _groups(inside)
    rows += _between({p: v for p, v in links.items() if p[0][:3] != p[1][:3]})
    return rows


def _groups(links: Mapping[Pair, str]) -> Iterator[dict[str, Any]]:
    """Members whose links to all others are alike are a group; then what is between groups."""
    members = sorted({name for pair in links for name in pair}, key=order)
    groups: list[list[str]] = []
    for name in members:
        alike = (g for g in groups if _alike(g[0], name, members, links))
        group = next(alike, None)
        if group is None:
            groups.append([name])
        else:
            group.append(name)
    for group in groups:
        if len(group) > 1 and (link := links.get((group[0], group[1]))):
            yield {"link": link, "between": Inline(group)}
    firsts = {g[0]: g for g in groups}
    rows: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for number, group in enumerate(groups):
        for link, heads in _by_link(group[0], [g[0] for g in groups[number + 1 :]], links):
            to = tuple(member for head in heads for member in firsts[head])
            rows.setdefault((link, to), []).extend(group)
    for (link, others), between in rows.items():
        yield {"link": link, "between": Inline(between), "to": Inline(others)}


def _alike(first: str, second: str, members: Iterable[str], links: Mapping[Pair, str]) -> bool:
    others = (m for m in members if m not in {first, second})
    return all(links.get(_pair(first, m)) == links.get(_pair(second, m)) for m in others)


def _by_link(
    name: str, others: Iterable[str], links: Mapping[Pair, str]
) -> Iterator[tuple[str, list[str]]]:
    linked: dict[str, list[str]] = {}
    for peer in others:
        if link := links.get(_pair(name, peer)):
            linked.setdefault(link, []).append(peer)
    yield from linked.items()


def _between(links: Mapping[Pair, str]) -> Iterator[dict[str, Any]]:
    """GPUs whose links to the same cards are alike, together."""
    cards = sorted({p[1] for p in links}, key=order)
    rows: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for gpu in sorted({p[0] for p in links}, key=order):
        for link, linked in _by_link(gpu, cards, links):
            rows.setdefault((link, tuple(linked)), []).append(gpu)
    for (link, to), gpus in rows.items():
        yield {"link": link, "between": Inline(gpus), "to": Inline(to)}


def _pair(first: str, second: str) -> Pair:
    return (first, second) if order(first) < order(second) else (second, first)


def switch_groups(links: Mapping[Pair, str]) -> list[list[str]]:
    """Devices that reach each other over PCIe switches alone, from the matrix."""
    groups: list[set[str]] = []
    for pair, link in links.items():
        if link in ON_A_SWITCH:
            touched = [g for g in groups if g & {*pair}]
            groups = [g for g in groups if g not in touched]
            groups.append(set(pair).union(*touched))
    return sorted((sorted(g, key=order) for g in groups), key=lambda g: order(g[0]))
