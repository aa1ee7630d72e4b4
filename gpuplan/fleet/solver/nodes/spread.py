"""Rows that keep the items of a spread group on different hosts, as far as numbers can say it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuplan.fleet.solver.classes import Fleet
from gpuplan.fleet.solver.model import Columns, Program
from gpuplan.fleet.solver.nodes.contents import Content
from gpuplan.fleet.solver.outline.tighten import Limit, group_sizes

INFINITY = float("inf")
At = tuple[int, int]  # class, host type
ContentCount = tuple[int, Content, float]  # column, content, how often


class Spread:
    """As many hosts as the largest group of a class has items; and tangents to the most items of a
    class that some hosts of a type may have, where an answer has more."""

    def __init__(
        self, fleet: Fleet, model: Columns, hosts: Mapping[tuple[int, str | None], int]
    ) -> None:
        self._limits: dict[At, Limit] = {}
        self._rows: dict[int, At] = {}
        self._high: dict[int, float] = {}
        self._least: dict[int, float] = {}  # what hosts that are paid let a row have at least
        self._chosen: dict[At, int] = {}  # items that chosen contents cover
        self._wide: dict[int, int] = {}  # the row of each class that has groups
        self.paid: dict[int, int] = {}  # hosts, by their column
        for kind in fleet.classes:
            sizes = group_sizes(fleet, kind.items)
            if not sizes or sizes[-1] < 2:
                continue
            everywhere: dict[int, float] = {}
            for choice in kind.choices:
                keys = dict.fromkeys((choice.chassis, owner) for owner, _ in kind.pools)
                columns = [hosts[key] for key in keys if key in hosts]
                everywhere |= dict.fromkeys(columns, 1.0)
                alone = len(kind.items) - sum(sizes)
                self._limits[kind.index, choice.chassis] = Limit([], columns, alone, sizes)
            if everywhere:
                self._wide[kind.index] = len(model.rows)
                model.row(sizes[-1], INFINITY, everywhere)

    def relax(self, program: Program, short: Mapping[int, int]) -> None:
        """Where hosts are too few for a group: who is left uncovered wants none. `short`: the
        columns of those of each class."""
        for kind, row in self._wide.items():
            program.term(row, short[kind], 1.0)

    def terms(self, content: Content) -> dict[int, float]:
        """A content's amounts in the tangents that there are."""
        return {
            row: float(content.counts[kind])
            for row, (kind, at) in self._rows.items()
            if at == content.site[0] and kind in content.counts
        }

    def choose(self, program: Program, content: Content, covered: Mapping[int, int]) -> None:
        """`covered`: the items of each class for which the content was chosen. Where they are more
        than may stand on the hosts that are paid, those get no more of them."""
        for kind, number in covered.items():
            at = (kind, content.site[0])
            self._chosen[at] = self._chosen.get(at, 0) + number
        for row in self.terms(content):
            self._high[row] -= covered.get(self._rows[row][0], 0)
            program.row(row, -INFINITY, max(self._high[row], self._least[row]))

    def less(self, duals: list[float]) -> dict[At, float]:
        sums: dict[At, float] = {}
        for row, at in self._rows.items():
            sums[at] = sums.get(at, 0.0) + duals[row]
        return sums

    def cut(self, program: Program, numbers: Iterable[ContentCount], values: list[float]) -> int:
        """A tangent where more items of a class stand on hosts of a type than may; how many."""
        numbers = list(numbers)
        stand: dict[At, float] = {at: self._chosen.get(at, 0) for at in self._limits}
        for _, content, number in numbers:
            if number > 1e-9:
                for kind, each in content.counts.items():
                    at = (kind, content.site[0])
                    if at in self._limits:
                        stand[at] = stand.get(at, 0.0) + each * number
        broken = 0
        for at, items in stand.items():
            limit = self._limits[at]
            have = sum(values[column] for column in limit.hosts)
            hosts = int(have + 1e-6)
            if items > limit.most(hosts) + limit.slope(hosts) * (have - hosts) + 1e-4:
                self._tangent(program, at, hosts, numbers)
                broken += 1
        return broken

    def _tangent(
        self, program: Program, at: At, hosts: int, numbers: Iterable[ContentCount]
    ) -> None:
        limit, (kind, chassis) = self._limits[at], at
        slope = limit.slope(hosts)
        terms = dict.fromkeys(limit.hosts, -float(slope))
        high = float(limit.most(hosts) - slope * hosts - self._chosen.get(at, 0))
        least = -float(slope * sum(self.paid.get(column, 0) for column in limit.hosts))
        for column, content, _ in numbers:
            each = content.counts.get(kind, 0) if content.site[0] == chassis else 0
            if each:
                terms[column] = each
        row = program.add_row(-INFINITY, max(high, least), terms)
        self._rows[row], self._high[row], self._least[row] = at, high, least
