"""Contents of nodes, generated where they are worth more than a node costs, and then chosen: whole
numbers of them, the fullest first."""

from __future__ import annotations

from collections.abc import Mapping
from math import floor

from gpuplan.fleet.solver.classes import Fleet
from gpuplan.fleet.solver.effort import CONTENT_WORK, LEAST_GAIN, STILL, rounded_at_once
from gpuplan.fleet.solver.nodes.contents import Content, NodeSite, Sites
from gpuplan.fleet.solver.nodes.cover import Answer, Cover, HostKind
from gpuplan.fleet.solver.nodes.pricing import Pricing
from gpuplan.fleet.solver.nodes.turns import Turns

WHOLE = 1e-6


class Generator:
    def __init__(self, fleet: Fleet, sites: Sites, cover: Cover) -> None:
        self.fleet, self.cover = fleet, cover
        most = limits(fleet)
        self.priced = {s: Pricing(fleet, s, loads, most) for s, loads in sites.inside.items()}
        self.low: dict[HostKind, int] = {}
        self.closed = False
        self.work = 0

    def generate(self, enough: float) -> Answer:
        """Until the cost is `enough`, no site has a content that gains, or the work is done; the
        last answer."""
        self.work = CONTENT_WORK
        turns, answer = Turns(self.priced), self.cover.solve()
        while self.work > 0 and answer.objective > enough:
            for site in turns.asked():
                gained = self._price(site, answer, self.cover.left)
                turns.told(site, gained=gained)
                if gained:
                    answer = self.cover.solve()
            if self.cover.cut(answer.values):
                answer = self.cover.solve()
            elif turns.fruitless:
                break
            turns.end()
        return answer

    def _price(self, site: NodeSite, answer: Answer, most: Mapping[int, int]) -> bool:
        """Whether the site has a new content that gains."""
        if self.work <= 0:
            return False
        self.work -= self.priced[site].size
        content = self.priced[site].best(answer.at(site[0]), most, answer.price[site] + LEAST_GAIN)
        return content is not None and self.cover.add(content)

    def pay(self, hosts: Mapping[HostKind, int], *, closed: bool) -> None:
        """So many hosts of each type and owner; what they have may be used as it is. `closed`: and
        no others."""
        self.low = {host: hosts.get(host, 0) for host in self.cover.hosts}
        self.closed = closed
        for host, number in self.low.items():
            self.cover.pay(host, number, closed=closed)

    def choose(self, part: float) -> list[tuple[Content, int]]:
        """So many of each content that all is covered, as far as hosts go. Of those that are
        fractional a part is rounded up, the fullest first; contents for what is left come between.
        """
        self.work, cover = CONTENT_WORK, self.cover
        while any(cover.left.values()):
            answer = cover.solve()
            if cover.cut(answer.values):
                answer = cover.solve()
            order = sorted((-answer.values[c], c) for c in cover.contents)
            positive = [(-value, column) for value, column in order if value < -WHOLE]
            for value, column in positive:
                if value > 1 - WHOLE:
                    cover.choose(column, floor(value + WHOLE))
            if not positive:
                break
            if positive[0][0] < 1 - WHOLE and not self._round(positive, answer.worth, part):
                break
            self._complete()
        return [(cover.contents[column], number) for column, number in cover.chosen.items()]

    def _round(self, positive: list[tuple[float, int]], worth: list[float], part: float) -> bool:
        """Once more of the fullest that can be had; of those beside the first only where almost all
        that they cover is left."""
        cover, taken = self.cover, 0
        for _, column in positive:
            if taken >= rounded_at_once(len(positive), part):
                break
            least = STILL * cover.worth(column, worth)
            if taken and cover.worth(column, worth, cover.left) < least:
                continue
            if self._can(column):
                cover.choose(column, 1)
                taken += 1
            else:
                cover.forbid(column)
        return taken > 0

    def _can(self, column: int) -> bool:
        """Whether there can be as many hosts as one more of it takes."""
        cover, content = self.cover, self.cover.contents[column]
        chassis, owner, _ = content.site
        available = cover.available[chassis]
        if self.closed:
            available = sum(low for host, low in self.low.items() if host[0] == chassis)
        if available is None:
            return True
        others = 0
        for host, low in self.low.items():
            if host[0] == chassis and host[1] != owner:
                used = (-(-n // cover.on_host(s)) for s, n in cover.taken.items() if s[:2] == host)
                others += max(low, *used)
        most = (available - others) * cover.on_host(content.site)
        return cover.taken[content.site] + content.spans <= most

    def _complete(self) -> None:
        """Contents for what is left."""
        answer = self.cover.solve()
        for site, priced in self.priced.items():
            wanted = any(self.cover.left[load.kind.index] for load in priced.loads)
            if wanted and self._price(site, answer, self.cover.left):
                answer = self.cover.solve()


def limits(fleet: Fleet) -> dict[int, int]:
    """The most items of each class on one node: of a spread group one."""
    most = {}
    for kind in fleet.classes:
        groups = {fleet.spread[item] for item in kind.items} - {-1}
        most[kind.index] = len(groups) + sum(fleet.spread[item] < 0 for item in kind.items)
    return most
