"""The content of one node that is worth most, at what an item of each class is worth."""

from __future__ import annotations

from collections.abc import Mapping

from gpuplan.fleet.solver.classes import Fleet, Pool
from gpuplan.fleet.solver.effort import CONTENT_GAP, CONTENT_NODES, PROOF_GAP, PROOF_NODES
from gpuplan.fleet.solver.model import Columns, Program, Solved, solve
from gpuplan.fleet.solver.nodes.contents import Content, Item, NodeSite, Shared, Slot
from gpuplan.fleet.solver.outline.formulate import Load, chosen_layouts, slot_list

SlotsOf = tuple[Pool, int]  # pool, geometry


class Pricing:
    """A knapsack with GPUs in layouts, cores, memory and functions. Its linear relaxation stays in
    the solver; it says which columns no content that gains can have. `most`: items of each class on
    a node."""

    def __init__(
        self, fleet: Fleet, site: NodeSite, loads: list[Load], most: Mapping[int, int]
    ) -> None:
        self.fleet, self.site, self.loads, self.most = fleet, site, loads, most
        self.kind = fleet.chassis[site[0]].kinds[site[2]]
        self.columns = Columns()
        self.layouts: list[tuple[SlotsOf, tuple[Slot, ...]]] = []
        self._formulate()
        self.size = len(self.columns.cost)
        self.program = Program(self.columns)

    def _formulate(self) -> None:
        columns, gpus = self.columns, dict[int, float]()
        sets: dict[int, dict[int, float]] = {}
        room: list[dict[int, float]] = [{}, {}, {}]
        used: dict[SlotsOf, dict[int, dict[int, float]]] = {}
        for load in self.loads:
            choice = load.choice
            column = columns.column(0.0, self.most[load.kind.index])
            for terms, share in zip(room, self._shares(load), strict=True):
                terms.update({column: share} if share else {})
            if choice.whole:
                gpus[column] = choice.gpus
                sets.setdefault(choice.gpus, {})[column] = 1
            else:
                parts = used.setdefault((load.pool, choice.geometry), {})
                parts.setdefault(choice.part, {})[column] = 1
        for key, parts in used.items():
            gpus |= dict.fromkeys(self._layouts(key, parts), 1.0)
        columns.row(-float("inf"), self.kind.gpus, gpus)
        for terms in room:
            columns.row(-float("inf"), 1, terms)
        for number, terms in sets.items():
            columns.row(-float("inf"), self.kind.most[number], terms)

    def _shares(self, load: Load) -> list[float]:
        """Of the node's cores, memory and functions; more than all of what is not there."""
        room = zip(load.choice.wanted, self.kind.room, strict=True)
        return [wanted / free if free else 2.0 * (wanted > 0) for wanted, free in room]

    def _layouts(self, key: SlotsOf, parts: dict[int, dict[int, float]]) -> list[int]:
        """The columns of the layouts that matter to the parts, with the rows of their slots."""
        layouts = self.fleet.geometries[key[1]].layouts
        assert layouts is not None, "sites have no others"
        made = []
        for number in chosen_layouts([[p for p, _ in each] for each in layouts], list(parts)):
            column = self.columns.column(0.0, self.kind.gpus)
            self.layouts.append((key, slot_list(self.fleet, key[1], number)))
            made.append(column)
            for part, terms in parts.items():
                n = sum(p == part for p, _ in layouts[number])
                if n:
                    terms[column] = -n
        for terms in parts.values():
            self.columns.row(-float("inf"), 0, terms)
        return made

    def best(self, worth: list[float], left: Mapping[int, int], least: float) -> Content | None:
        """The content, if it is worth more than `least`. `left`: items of each class."""
        kinds = [load.kind.index for load in self.loads]
        upper = [min(self.most[kind], left[kind]) for kind in kinds]
        answer = self._search(worth, upper, least, CONTENT_GAP, CONTENT_NODES)
        if answer is None:
            return None
        near, costs, solved = answer
        values = {near[n]: round(v) for n, v in enumerate(solved.values) if round(v)}
        total = -sum(costs[n] * v for n, v in values.items())
        return self._content(values) if total > least else None

    def ceiling(self, worth: list[float], least: float) -> float:
        """No content is worth more; `least` where none is worth as much."""
        upper = [self.most[load.kind.index] for load in self.loads]
        answer = self._search(worth, upper, least, PROOF_GAP, PROOF_NODES)
        return least if answer is None else max(least, -answer[2].bound)

    def _search(
        self, worth: list[float], upper: list[int], least: float, gap: float, nodes: int
    ) -> tuple[list[int], list[float], Solved] | None:
        """Whole numbers at these bounds of the loads: the columns that were looked at, the costs of
        all columns, the answer. A content with any other column is worth `least` at most."""
        costs = [-worth[load.kind.index] for load in self.loads] + [0.0] * len(self.layouts)
        upper = [*upper, *[self.kind.gpus] * len(self.layouts)]
        objective, reduced = self.program.priced(costs, upper)
        if -objective <= least:
            return None
        near = [n for n, r in enumerate(reduced) if upper[n] and r <= -objective - least]
        part = self._part(near, costs, upper)
        return near, costs, solve(part, gap=gap, nodes=nodes)

    def _part(self, near: list[int], costs: list[float], upper: list[int]) -> Columns:
        """The knapsack over some of its columns."""
        place = {column: n for n, column in enumerate(near)}
        small = Columns([costs[n] for n in near], [upper[n] for n in near], [True] * len(near))
        for low, high, terms in self.columns.rows:
            small.row(low, high, {place[c]: v for c, v in terms.items() if c in place})
        return small

    def _content(self, values: dict[int, int]) -> Content:
        items, shared = [], []
        for n, number in sorted(values.items()):
            if n < len(self.loads):
                load = self.loads[n]
                items.append(Item(load.kind.index, load.choice, load.pool, number))
            else:
                (pool, geometry), slots = self.layouts[n - len(self.loads)]
                shared += [Shared(pool, geometry, slots)] * number
        return Content(self.site, tuple(items), tuple(shared))
