"""All items covered by contents of whole nodes, at least cost: a linear model that grows.

Rows: the demand of each class, the nodes of each site that its hosts have, the hosts that there
are, and hosts for spread groups. Columns: hosts, contents, and what is left uncovered, at more than
it can cost. What is chosen leaves the model: its items are not demanded any more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuplan.fleet.solver.classes import Fleet
from gpuplan.fleet.solver.model import Columns, Program
from gpuplan.fleet.solver.nodes.contents import Content, NodeSite
from gpuplan.fleet.solver.nodes.spread import Spread
from gpuplan.fleet.solver.outline.formulate import EPSILON, SCALE, unplaced_hosts

HostKind = tuple[int, str | None]
INFINITY = float("inf")


@dataclass(frozen=True, slots=True)
class Answer:
    """The columns' values, what an item of each class is worth, what a node of each site costs, and
    what items of a class (first) are worth less on hosts of a type (second)."""

    objective: float
    values: list[float]
    worth: list[float]
    price: dict[NodeSite, float]
    less: dict[tuple[int, int], float]

    def at(self, chassis: int) -> list[float]:
        """What an item of each class is worth on a host of the type."""
        worth = list(self.worth)
        for (kind, where), amount in self.less.items():
            if where == chassis:
                worth[kind] += amount
        return worth


class Cover:
    """`left`: items of each class that no chosen content covers; `taken`: nodes of chosen ones."""

    def __init__(self, fleet: Fleet, available: list[int | None], sites: list[NodeSite]) -> None:
        self.fleet, self.available = fleet, available
        self.left = {kind.index: len(kind.items) for kind in fleet.classes}
        self.contents: dict[int, Content] = {}
        self.chosen: dict[int, int] = {}
        self.taken = dict.fromkeys(sites, 0)
        self.hosts: dict[HostKind, int] = {}
        self._columns: dict[int, list[int]] = {}  # of the contents that have a class
        self._rows: dict[int, int] = {}
        self._short: dict[int, int] = {}  # columns of what is left uncovered
        self._nodes: dict[NodeSite, int] = {}
        self._known: set[Content] = set()
        self._upper: dict[HostKind, float] = {}
        model = Columns()
        self._demand(model)
        self._hosts(model, sites)
        self._spread = Spread(fleet, model, self.hosts)
        self.program = Program(model)

    def _demand(self, model: Columns) -> None:
        dearest = max(chassis.cost for chassis in self.fleet.chassis) / SCALE
        for kind in self.fleet.classes:
            short = model.column(unplaced_hosts(self.fleet, kind) * dearest)
            self._rows[kind.index] = len(model.rows)
            self._short[kind.index] = short
            model.row(len(kind.items), INFINITY, {short: 1})

    def _hosts(self, model: Columns, sites: list[NodeSite]) -> None:
        owned: dict[int, dict[int, float]] = {}
        for host in dict.fromkeys((chassis, owner) for chassis, owner, _ in sites):
            available = self.available[host[0]]
            self._upper[host] = INFINITY if available is None else available
            cost = self.fleet.chassis[host[0]].cost / SCALE
            self.hosts[host] = model.column(cost, self._upper[host])
            owned.setdefault(host[0], {})[self.hosts[host]] = 1.0
        for site in sites:
            self._nodes[site] = len(model.rows)
            model.row(-INFINITY, 0, {self.hosts[site[:2]]: -self.on_host(site)})
        for chassis, terms in owned.items():
            number = self.available[chassis]
            if number is not None and len(terms) > 1:
                model.row(-INFINITY, number, terms)

    def on_host(self, site: NodeSite) -> int:
        """Nodes of the site on one host."""
        return self.fleet.chassis[site[0]].kinds[site[2]].count

    def add(self, content: Content) -> bool:
        """A new column; False where it is known."""
        if content in self._known:
            return False
        self._known.add(content)
        counts = content.counts
        terms = {self._rows[kind]: float(min(n, self.left[kind])) for kind, n in counts.items()}
        terms[self._nodes[content.site]] = content.spans
        terms |= self._spread.terms(content)
        chassis = self.fleet.chassis[content.site[0]]
        cost = EPSILON * content.gpus * chassis.cost / chassis.gpus / SCALE
        column = self.program.column(cost, terms)
        self.contents[column] = content
        for kind in counts:
            self._columns.setdefault(kind, []).append(column)
        return True

    def pay(self, host: HostKind, number: int, *, closed: bool) -> None:
        """At least so many of the hosts, which cost nothing more from here on; `closed`: and no
        others."""
        upper = number if closed else max(number, self._upper[host])
        self.program.bound(self.hosts[host], number, upper)
        self._spread.paid[self.hosts[host]] = number

    def forbid(self, column: int) -> None:
        self.program.bound(column, 0, 0)

    def choose(self, column: int, number: int) -> None:
        """A content, so many times more. No content counts more items of a class than are left."""
        content = self.contents[column]
        self.chosen[column] = self.chosen.get(column, 0) + number
        self.taken[content.site] += content.spans * number
        taken = -float(self.taken[content.site])
        self.program.row(self._nodes[content.site], -INFINITY, taken)
        covered = {k: min(self.left[k], n * number) for k, n in content.counts.items()}
        self._spread.choose(self.program, content, covered)
        for kind, items in covered.items():
            if items:
                self.left[kind] -= items
                self.program.row(self._rows[kind], self.left[kind], INFINITY)
                self._shorten(kind)

    def _shorten(self, kind: int) -> None:
        for column in self._columns.get(kind, ()):
            if self.contents[column].counts[kind] > self.left[kind]:
                self.program.term(self._rows[kind], column, self.left[kind])

    def worth(
        self, column: int, worth: list[float], left: Mapping[int, int] | None = None
    ) -> float:
        """Of a content; with `left`, of what is left of what it covers."""
        counts = self.contents[column].counts.items()
        return sum(worth[k] * (n if left is None else min(n, left[k])) for k, n in counts)

    def cut(self, values: list[float]) -> int:
        """Rows for spread groups that an answer breaks are added; how many."""
        numbers = [(column, each, values[column]) for column, each in self.contents.items()]
        return self._spread.cut(self.program, numbers, values)

    def solve(self) -> Answer:
        values, duals = self.program.values()
        if not self.program.feasible():
            self._spread.relax(self.program, self._short)
            values, duals = self.program.values()
        worth = [duals[self._rows[kind.index]] for kind in self.fleet.classes]
        price = {site: -duals[row] for site, row in self._nodes.items()}
        return Answer(self.program.objective(), values, worth, price, self._spread.less(duals))
