"""A packing from contents of whole nodes, beside one that there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gpuplan.fleet.solver.classes import Fleet
from gpuplan.fleet.solver.improve import Packer
from gpuplan.fleet.solver.nodes.contents import Content, Sites, sites_of
from gpuplan.fleet.solver.nodes.cover import Cover
from gpuplan.fleet.solver.nodes.generate import Generator
from gpuplan.fleet.solver.nodes.seat import seat
from gpuplan.fleet.solver.nodes.seen import contents_of
from gpuplan.fleet.solver.outline.formulate import SCALE
from gpuplan.fleet.solver.outline.master import Outline
from gpuplan.fleet.solver.state import State

ENOUGH = 1.0005  # of the bound: contents that come then gain less than rounding loses
PARTS = (0.15, 0.3)  # of the fractional contents that are rounded up in one step, by start
FEW = 2000  # items, up to which there is a second start, with the contents found since


def by_nodes(
    fleet: Fleet, least: Outline, start: Packer, finish: Callable[[Packer], Packer]
) -> list[Packer]:
    """Packings from contents; `finish` places who is left over and improves. None come where GPUs
    can be shared in more ways than are listed, or workloads stand on parts of a host's nodes."""
    sites = sites_of(least.model)
    if not sites.inside:
        return []
    contents = dict.fromkeys([*sites.across, *contents_of(start.state)])
    generator = Generator(fleet, sites, _cover(fleet, sites, contents))
    generator.generate(least.bound / SCALE * ENOUGH)
    found: list[Packer] = []
    for part in PARTS if len(fleet.request) <= FEW else PARTS[:1]:
        contents |= dict.fromkeys(generator.cover.contents.values())
        generator.cover = _cover(fleet, sites, contents)
        generator.pay(least.hosts)
        packer = Packer(State(fleet))
        queues = {kind.index: list(kind.items) for kind in fleet.classes if kind.items}
        seat(packer.state, generator.choose(part), queues)
        found.append(finish(packer))
        contents |= dict.fromkeys(contents_of(packer.state))
    return found


def _cover(fleet: Fleet, sites: Sites, contents: Iterable[Content]) -> Cover:
    available = [chassis.available for chassis in fleet.chassis]
    cover = Cover(fleet, available, list(sites.inside))
    for content in contents:
        if content.site in sites.inside:
            cover.add(content)
    return cover
