"""All items covered by contents of whole nodes, at least cost: a linear model that grows.

Rows: the demand of each class, the nodes of each site that its hosts have, the hosts that there
are. Columns: hosts, contents, and what is left uncovered, at more than it can cost."""

from __future__ import annotations

from dataclasses import dataclass

from gpuplan.fleet.solver.classes import Fleet
from gpuplan.fleet.solver.model import Columns, Program
from gpuplan.fleet.solver.nodes.contents import Content, Site
from gpuplan.fleet.solver.outline.formulate import EPSILON, SCALE, unplaced_hosts
from gpuplan.fleet.solver.outline.tighten import Limit, group_sizes

Host = tuple[int, str | None]
INFINITY = float("inf")


@dataclass(frozen=True, slots=True)
class Answer:
    """The objective, the columns' values, what an item of each class is worth, and what a node of
    each site costs."""

    objective: float
    values: list[float]
    worth: list[float]
    price: dict[Site, float]
    less: dict[tuple[int, int], float]

    def at(self, chassis: int) -> list[float]:
        """What an item of each class is worth on a host of the type."""
        worth = list(self.worth)
        for (kind, where), amount in self.less.items():
            if where == chassis:
                worth[kind] += amount
        return worth


class Cover:
    def __init__(
        self, fleet: Fleet, demand: dict[int, int], available: list[int | None], sites: list[Site]
    ) -> None:
        self.fleet, self.available = fleet, available
        self.model = Columns()
        self.rows: dict[int, int] = {}
        self.nodes: dict[Site, int] = {}
        self.hosts: dict[Host, int] = {}
        self.contents: dict[int, Content] = {}
        self._known: set[Content] = set()
        self.left = dict(demand)
        self.chosen: dict[int, int] = {}
        self.taken = dict.fromkeys(sites, 0)
        self._demand(demand)
        self._hosts(sites)
        self.spread: dict[tuple[int, int], Limit] = {}
        self.tangents: dict[int, tuple[int, int]] = {}
        self._spread(demand)
        self.program = Program(self.model)

    def _demand(self, demand: dict[int, int]) -> None:
        dearest = max(chassis.cost for chassis in self.fleet.chassis) / SCALE
        for kind in self.fleet.classes:
            number = demand.get(kind.index, 0)
            if number:
                short = self.model.column(unplaced_hosts(self.fleet, kind) * dearest)
                self.rows[kind.index] = len(self.model.rows)
                self.model.row(number, INFINITY, {short: 1})

    def _hosts(self, sites: list[Site]) -> None:
        owned: dict[int, dict[int, float]] = {}
        for chassis, owner in dict.fromkeys((chassis, owner) for chassis, owner, _ in sites):
            available = self.available[chassis]
            upper = INFINITY if available is None else available
            cost = self.fleet.chassis[chassis].cost / SCALE
            column = self.model.column(cost, upper, whole=True)
            self.hosts[chassis, owner] = column
            owned.setdefault(chassis, {})[column] = 1.0
        for site in sites:
            chassis, owner, node = site
            self.nodes[site] = len(self.model.rows)
            count = self.fleet.chassis[chassis].kinds[node].count
            self.model.row(-INFINITY, 0, {self.hosts[chassis, owner]: -count})
        for chassis, terms in owned.items():
            number = self.available[chassis]
            if number is not None and len(terms) > 1:
                self.model.row(-INFINITY, number, terms)

    def _spread(self, demand: dict[int, int]) -> None:
        """As many hosts as the largest spread group of a class has items; the most of them on some
        hosts of a type is cut in where an answer has more."""
        for kind in self.fleet.classes:
            sizes = group_sizes(self.fleet, kind.items)
            if not demand.get(kind.index) or not sizes or sizes[-1] < 2:
                continue
            alone = len(kind.items) - sum(sizes)
            hosts: dict[int, float] = {}
            for choice in kind.choices:
                owned = [
                    self.hosts[choice.chassis, pool[0]]
                    for pool in kind.pools
                    if (choice.chassis, pool[0]) in self.hosts
                ]
                hosts |= dict.fromkeys(owned, 1.0)
                limit = Limit([], list(dict.fromkeys(owned)), alone, sizes)
                self.spread[kind.index, choice.chassis] = limit
            if hosts:
                self.model.row(sizes[-1], INFINITY, hosts)

    def cut(self, values: list[float]) -> int:
        """Tangents where more items of a class stand on hosts of a type than may. How many."""
        stand: dict[tuple[int, int], float] = {}
        for column, content in self.contents.items():
            number = values[column] + self.chosen.get(column, 0)
            if number > 1e-9:
                for kind, each in content.counts().items():
                    key = (kind, content.site[0])
                    if key in self.spread:
                        stand[key] = stand.get(key, 0.0) + each * number
        broken = 0
        for key, number in stand.items():
            limit = self.spread[key]
            have = sum(values[c] for c in limit.hosts)
            hosts = int(have + 1e-6)
            slope = limit.slope(hosts)
            if number > limit.most(hosts) + slope * (have - hosts) + 1e-4:
                self._tangent(key, limit, hosts)
                broken += 1
        return broken

    def _tangent(self, key: tuple[int, int], limit: Limit, hosts: int) -> None:
        slope, kind = limit.slope(hosts), key[0]
        terms = dict.fromkeys(limit.hosts, -float(slope))
        high = float(limit.most(hosts) - slope * hosts)
        for column, content in self.contents.items():
            each = content.counts().get(kind, 0) if content.site[0] == key[1] else 0
            if each:
                terms[column] = each
                high -= each * self.chosen.get(column, 0)
        self.tangents[len(self.model.rows)] = key
        self.model.row(-INFINITY, high, terms)
        self.program.add_row(-INFINITY, high, terms)

    def add(self, content: Content) -> bool:
        """A new column; False where it is known."""
        if content in self._known:
            return False
        self._known.add(content)
        counts = content.counts()
        terms = {self.rows[kind]: float(min(n, self.left[kind])) for kind, n in counts.items()}
        terms[self.nodes[content.site]] = content.spans
        for row, (kind, at) in self.tangents.items():
            if at == content.site[0] and kind in counts:
                terms[row] = counts[kind]
        chassis = self.fleet.chassis[content.site[0]]
        gpus = len(content.shared) + sum(i.number * i.choice.gpus for i in content.items)
        cost = EPSILON * gpus * chassis.cost / chassis.gpus / SCALE
        column = self.model.column(cost, whole=True)
        for row, amount in terms.items():
            self.model.rows[row][2][column] = amount
        self.contents[column] = content
        self.program.column(cost, terms)
        return True

    def choose(self, column: int, number: int) -> None:
        """A content, so many times more. What it covers is not demanded any more, and no content
        counts more items of a class than are left."""
        content = self.contents[column]
        self.chosen[column] = self.chosen.get(column, 0) + number
        self.taken[content.site] += content.spans * number
        taken = -float(self.taken[content.site])
        self.program.row(self.nodes[content.site], -INFINITY, taken)
        less = []
        for kind, each in content.counts().items():
            if self.left[kind]:
                self.left[kind] = max(0, self.left[kind] - each * number)
                self.program.row(self.rows[kind], self.left[kind], INFINITY)
                less.append(kind)
        for row, (kind, at) in self.tangents.items():
            each = content.counts().get(kind, 0) if at == content.site[0] else 0
            if each:
                low, high, terms = self.model.rows[row]
                high -= each * number
                self.model.rows[row] = (low, high, terms)
                self.program.row(row, low, high)
        for other, content in self.contents.items():
            for kind, each in content.counts().items():
                if kind in less and each > self.left[kind]:
                    self.program.term(self.rows[kind], other, self.left[kind])

    def worth_of(self, column: int, worth: list[float]) -> float:
        """Of what a content still covers."""
        counts = self.contents[column].counts()
        return sum(worth[kind] * min(n, self.left[kind]) for kind, n in counts.items())

    def whole_worth(self, column: int, worth: list[float]) -> float:
        return sum(worth[kind] * n for kind, n in self.contents[column].counts().items())

    def solve(self) -> Answer:
        values, duals = self.program.values()
        worth = [0.0] * len(self.fleet.classes)
        for kind, row in self.rows.items():
            worth[kind] = duals[row]
        less: dict[tuple[int, int], float] = {}
        for row, key in self.tangents.items():
            less[key] = less.get(key, 0.0) + duals[row]
        price = {site: -duals[row] for site, row in self.nodes.items()}
        return Answer(self.program.objective(), values, worth, price, less)
