"""A packing from contents of whole nodes, beside one that there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gpuplan.fleet.solver.classes import Fleet
from gpuplan.fleet.solver.effort import ENOUGH, starts
from gpuplan.fleet.solver.improve import Packer, unplaced
from gpuplan.fleet.solver.nodes.contents import Content, Sites, sites_of
from gpuplan.fleet.solver.nodes.cover import Cover
from gpuplan.fleet.solver.nodes.generate import Generator
from gpuplan.fleet.solver.nodes.proof import proven
from gpuplan.fleet.solver.nodes.seat import seat
from gpuplan.fleet.solver.nodes.seen import contents_of
from gpuplan.fleet.solver.outline.formulate import SCALE
from gpuplan.fleet.solver.outline.master import Outline
from gpuplan.fleet.solver.state import State


def by_nodes(
    fleet: Fleet, least: Outline, start: Packer, finish: Callable[[Packer], Packer]
) -> tuple[list[Packer], int]:
    """Packings from contents, and a bound of every packing's cost; `finish` places who is left over
    and improves. None come where GPUs can be shared in more ways than are listed."""
    sites = sites_of(least.model)
    if not sites.inside:
        return [], least.bound
    contents = dict.fromkeys([*sites.across, *contents_of(start.state)])
    generator = Generator(fleet, sites, _cover(fleet, sites, contents))
    enough = least.bound / SCALE * ENOUGH
    answer, bound = generator.generate(enough), least.bound
    if sites.whole and answer.objective > enough and not unplaced(fleet, start.state):
        bound = max(bound, proven(generator, answer, start.state.cost))
    packers: list[Packer] = []
    for closed, part in starts(len(fleet.request)):
        contents |= dict.fromkeys(generator.cover.contents.values())
        generator.cover = _cover(fleet, sites, contents)
        generator.pay(least.hosts, closed=closed)
        packer = Packer(State(fleet))
        queues = {kind.index: list(kind.items) for kind in fleet.classes if kind.items}
        seat(packer.state, generator.choose(part), queues)
        packers.append(finish(packer))
        contents |= dict.fromkeys(contents_of(packer.state))
    return packers, bound


def _cover(fleet: Fleet, sites: Sites, contents: Iterable[Content]) -> Cover:
    available = [chassis.available for chassis in fleet.chassis]
    cover = Cover(fleet, available, sites.all)
    for content in contents:
        if content.site in cover.taken:
            cover.add(content)
    return cover
