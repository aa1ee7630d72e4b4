"""Contents of nodes, generated where they are worth more than a node costs, and then chosen: whole
numbers of them, the fullest first."""

from __future__ import annotations

from collections.abc import Mapping
from math import floor

from gpuplan.fleet.solver.classes import Fleet
from gpuplan.fleet.solver.nodes.contents import Content, Site, Sites
from gpuplan.fleet.solver.nodes.cover import Answer, Cover, Host
from gpuplan.fleet.solver.nodes.pricing import Pricing

LEAST = 1e-4  # USD per hour that a content has to gain
MOST_PRICINGS = 500  # knapsacks solved
FIXED = 0.15  # of the fractional contents, in one step


class Generator:
    """`most`: items of a class that one node may have."""

    def __init__(self, fleet: Fleet, sites: Sites, demand: dict[int, int], cover: Cover) -> None:
        self.fleet, self.demand, self.cover = fleet, demand, cover
        self.low: dict[Host, int] = {}
        self.priced = {
            site: Pricing(fleet, site, loads, limits(fleet, site))
            for site, loads in sites.inside.items()
        }
        self.fruitless = dict.fromkeys(self.priced, 0)
        self.left = MOST_PRICINGS

    def generate(self, enough: float) -> None:
        """Until the cost is that, no site has a content that gains, or so many were asked for. A site that had none
        is asked less often."""
        answer = self.cover.solve()
        turn, final = 0, False
        while self.left > 0 and answer.objective > enough:
            added = 0
            for site in self.priced:
                if not final and turn % (1 + 2 * self.fruitless[site]):
                    continue
                if self._price(site, answer, self.demand):
                    answer = self.cover.solve()
                    added += 1
            cuts = self.cover.cut(answer.values)
            if cuts:
                answer = self.cover.solve()
            elif not added and final:
                return
            final = not added
            turn += 1

    def _price(
        self, site: Site, answer: Answer, most: dict[int, int]
    ) -> Content | None:
        if not self.left:
            return None
        self.left -= 1
        found = self.priced[site].best(answer.at(site[0]), most, answer.price[site] + LEAST)
        if found is not None and self.cover.add(found):
            self.fruitless[site] = 0
            return found
        self.fruitless[site] += 1
        return None

    def pay(self, hosts: Mapping[Host, int]) -> None:
        """At least so many hosts of each type and owner; they cost nothing more from here on."""
        for host, column in self.cover.hosts.items():
            self.low[host] = hosts.get(host, 0)
            self.cover.program.bound(column, self.low[host], self.cover.model.upper[column])

    def choose(self) -> list[tuple[Content, int]]:
        """So many of each content that all is covered: of those that are fractional the fullest are
        taken once more, step by step, and contents for what is left are generated between."""
        self.left = MOST_PRICINGS
        cover, first = self.cover, True
        while any(cover.left.values()):
            answer = cover.solve()
            if cover.cut(answer.values):
                answer = cover.solve()
            order = sorted((-answer.values[c], c) for c in cover.contents)
            positive = [(-v, column) for v, column in order if v < -1e-6]
            if not positive:
                break
            for value, column in positive:
                if value > 1 - 1e-6:
                    cover.choose(column, floor(value + 1e-6))
            if positive[0][0] < 1 - 1e-6 and not self._round(positive, answer.worth):
                break
            self._complete()
        return [(content, cover.chosen[c]) for c, content in cover.contents.items() if c in cover.chosen]

    def _round(self, positive: list[tuple[float, int]], worth: list[float]) -> bool:
        """Once more of the fullest contents that can be had; of those beside the first only where
        almost all that they cover is still left."""
        most = max(1, int(len(positive) * FIXED))
        taken = 0
        for _, column in positive:
            if taken == most:
                break
            before = self.cover.whole_worth(column, worth)
            if not self._can(column) or (taken and self.cover.worth_of(column, worth) < 0.9*before):
                continue
            self.cover.choose(column, 1)
            taken += 1
        return taken > 0

    def _can(self, column: int) -> bool:
        """Whether there can be as many hosts; else no more of it."""
        cover, site = self.cover, self.cover.contents[column].site
        chassis, owner, node = site
        available = cover.available[chassis]
        if available is None:
            return True
        kinds = self.fleet.chassis[chassis].kinds
        others = 0
        for host, low in self.low.items():
            if host[0] == chassis and host[1] != owner:
                used = [-(-n // kinds[s[2]].count) for s, n in cover.taken.items() if s[:2] == host]
                others += max(low, *used)
        if cover.taken[site] + cover.contents[column].spans <= (available - others) * kinds[node].count:
            return True
        cover.program.bound(column, 0, 0)
        return False

    def _complete(self) -> None:
        """Contents for what is left."""
        answer = self.cover.solve()
        for site, priced in self.priced.items():
            if any(self.cover.left[load.kind.index] for load in priced.loads):
                if self._price(site, answer, self.cover.left):
                    answer = self.cover.solve()


def limits(fleet: Fleet, site: Site) -> dict[int, int]:
    """Items of a class on one node: of a spread group one on a host."""
    count = fleet.chassis[site[0]].kinds[site[2]].count
    most = {}
    for kind in fleet.classes:
        groups = {fleet.spread[item] for item in kind.items}
        alone = sum(fleet.spread[item] < 0 for item in kind.items)
        groups.discard(-1)
        most[kind.index] = alone + (max(1, len(groups) // count) if groups else 0)
    return most
