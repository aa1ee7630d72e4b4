"""The fleet as a linear model over classes: which hosts, which layouts of GPUs, and how many of
each class where. Every packing is a solution, so the model's bound is a bound of every packing.

Per host type, owner and kind of node: GPUs, cores, memory and functions of `mixed` nodes; a
workload that takes all GPUs of a node takes the node, and what is left of its cores is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gpuplan.fleet.solver.chassis import Chassis, NodeKind
from gpuplan.fleet.solver.classes import Choice, Class, Fleet, Pool, Vector, within
from gpuplan.fleet.solver.effort import DUAL_STEPS
from gpuplan.fleet.solver.insert import pools_of
from gpuplan.fleet.solver.model import Columns
from gpuplan.fleet.solver.patterns import SlotAt

SCALE = 1_000_000  # micro-USD in a unit of the objective
EPSILON = 1e-5  # of a GPU's cost: among answers of one cost, fewer GPUs
HIGHER = 8.0  # what an item counts more than one of the priority below; `yielding` makes it strict

NodeGroup = tuple[int, str | None, int]  # chassis, owner of the host, kind of node
Slots = tuple[int, Pool, int, int]  # chassis, pool, kind of node, geometry
Terms = dict[int, float]
Taken = tuple[int, Vector, bool]  # column, amounts, all on one node


@dataclass(frozen=True, slots=True)
class Load:
    """Items of a class by one choice on nodes of one kind, or on several from that one on; `shape`
    counts GPUs by kind of node."""

    kind: Class
    choice: Choice
    pool: Pool
    node: int
    shape: tuple[int, ...]
    spans: bool


@dataclass(slots=True)
class Model:
    """The model and what its columns mean. `demand` are the most items of each class, `ways` the
    columns of each group's ways. `duals` are rows (≤ 0) that hold and may cut."""

    fleet: Fleet
    demand: list[int]
    available: list[int | None]
    columns: Columns = field(default_factory=Columns)
    hosts: dict[tuple[int, str | None], int] = field(default_factory=dict)
    mixed: dict[NodeGroup, int] = field(default_factory=dict)
    loads: dict[int, Load] = field(default_factory=dict)
    layouts: dict[int, tuple[Slots, int]] = field(default_factory=dict)
    short: dict[int, int] = field(default_factory=dict)
    demanded: dict[int, int] = field(default_factory=dict)
    ways: list[list[int]] = field(default_factory=list)
    gpus: dict[NodeGroup, Terms] = field(default_factory=dict)
    nodes: dict[NodeGroup, Terms] = field(default_factory=dict)
    takes: dict[NodeGroup, list[Taken]] = field(default_factory=dict)
    slots: dict[Slots, dict[int, Terms]] = field(default_factory=dict)
    sets: dict[NodeGroup, dict[int, Terms]] = field(default_factory=dict)
    duals: list[Terms] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Group:
    """`number` equal workloads; each runs in one of the `ways`, which take items of classes."""

    number: int
    ways: tuple[dict[int, int], ...]

    def most(self, kind: int) -> int:
        return self.number * max(way.get(kind, 0) for way in self.ways)


def formulate(
    fleet: Fleet,
    demand: list[int],
    available: list[int | None],
    *,
    whole: bool,
    groups: Sequence[Group] = (),
) -> Model:
    """`whole`: all columns are integers, else the hosts and the ways of `groups` alone. Items of
    those come on top of `demand`."""
    most = [n + sum(g.most(c) for g in groups) for c, n in enumerate(demand)]
    model = Model(fleet, most, available)
    taken = _ways(model, groups)
    for kind in fleet.classes:
        if most[kind.index]:
            _demand(model, kind, demand[kind.index], taken.get(kind.index, {}), whole=whole)
    for chassis, owner in dict.fromkeys((chassis, owner) for chassis, owner, _ in model.takes):
        _hosts(model, chassis, owner, whole=whole)
    for key in model.slots:
        _layouts(model, key, whole=whole)
    for group in model.takes:
        _capacity(model, group)
    _availability(model)
    return model


def _ways(model: Model, groups: Sequence[Group]) -> dict[int, Terms]:
    """A column for each way of each group; what they take of each class."""
    taken: dict[int, Terms] = {}
    for group in groups:
        columns = [model.columns.column(0.0, group.number, whole=True) for _ in group.ways]
        model.ways.append(columns)
        model.columns.row(group.number, group.number, dict.fromkeys(columns, 1.0))
        for column, way in zip(columns, group.ways, strict=True):
            for kind, items in way.items():
                taken.setdefault(kind, {})[column] = -items
    return taken


def _demand(model: Model, kind: Class, number: int, taken: Terms, *, whole: bool) -> None:
    terms: Terms = dict(taken)
    for choice in kind.choices:
        if model.available[choice.chassis] == 0:
            continue
        for pool in pools_of(choice, kind):
            for load in _loads_of(model.fleet.chassis[choice.chassis], kind, choice, pool):
                column = _load(model, load, whole=whole)
                terms[column] = 1
    dearest = max(chassis.cost for chassis in model.fleet.chassis) / SCALE
    column = model.columns.column(unplaced_hosts(model.fleet, kind) * dearest, whole=whole)
    model.short[kind.index] = column
    terms[column] = 1
    model.demanded[kind.index] = len(model.columns.rows)
    model.columns.row(number, number, terms)


def unplaced_hosts(fleet: Fleet, kind: Class) -> float:
    """What an item that finds no place counts, in hosts: more than it can save; by its GPUs, so
    that parts do not outweigh the GPU that they would fill, and more of a higher priority."""
    least, lowest = fleet.least
    return 2.0 * float(kind.gpus / least) * HIGHER ** (kind.priority - lowest)


def by_number(model: Model) -> Columns:
    """The same model, with the hosts counted instead of paid."""
    cost = [0.0] * len(model.columns.cost)
    for column in model.hosts.values():
        cost[column] = 1.0
    for number, column in model.short.items():
        cost[column] = unplaced_hosts(model.fleet, model.fleet.classes[number])
    return replace(model.columns, cost=cost)


def _first(shape: Sequence[int]) -> int:
    """The first kind of node that has some of the GPUs."""
    return next(node for node, gpus in enumerate(shape) if gpus)


def _loads_of(chassis: Chassis, kind: Class, choice: Choice, pool: Pool) -> list[Load]:
    if choice.whole:
        shapes = chassis.shapes(choice.gpus)
        return [Load(kind, choice, pool, _first(shape), shape, spans) for shape, spans in shapes]
    return [
        Load(kind, choice, pool, node, (), spans=False)
        for node, here in enumerate(chassis.kinds)
        if here.gpus and within(choice.wanted, here.room)
    ]


def _tie(chassis: Chassis) -> float:
    """A little for each GPU, so that of equal costs the fewest GPUs win."""
    return EPSILON * chassis.cost / chassis.gpus / SCALE


def _load(model: Model, load: Load, *, whole: bool) -> int:
    chassis = model.fleet.chassis[load.choice.chassis]
    column = model.columns.column(_tie(chassis) * load.choice.gpus, whole=whole)
    model.loads[column] = load
    if not load.choice.whole:
        group = (chassis.index, load.pool[0], load.node)
        model.takes.setdefault(group, []).append((column, load.choice.wanted, True))
        slots = model.slots.setdefault(
            (chassis.index, load.pool, load.node, load.choice.geometry), {}
        )
        slots.setdefault(load.choice.part, {})[column] = 1
        return column
    for node, gpus in enumerate(load.shape):
        if gpus:
            _whole_load(model, load, column, node, gpus)
    return column


def _whole_load(model: Model, load: Load, column: int, node: int, gpus: int) -> None:
    choice, chassis = load.choice, model.fleet.chassis[load.choice.chassis]
    kind = chassis.kinds[node]
    group = (chassis.index, load.pool[0], node)
    model.takes.setdefault(group, [])
    full = takes_nodes(kind, gpus, spans=load.spans)
    if full:
        model.nodes.setdefault(group, {})[column] = full
        return
    model.gpus.setdefault(group, {})[column] = gpus
    cores, memory, functions = (n * gpus / choice.gpus for n in choice.wanted)
    model.takes[group].append((column, (cores, memory, functions), not load.spans))
    if not load.spans:
        model.sets.setdefault(group, {}).setdefault(gpus, {})[column] = 1


def takes_nodes(kind: NodeKind, gpus: int, *, spans: bool) -> int:
    """The nodes that are full with this one workload; 0 if others may stand beside it."""
    if not spans:
        return int(gpus == kind.gpus)
    return kind.count if gpus == kind.count * kind.gpus else 0


def _hosts(model: Model, index: int, owner: str | None, *, whole: bool) -> None:
    chassis = model.fleet.chassis[index]
    available = model.available[index]
    upper = float("inf") if available is None else available
    hosts = model.columns.column(chassis.cost / SCALE, upper, whole=True)
    model.hosts[index, owner] = hosts
    for node, kind in enumerate(chassis.kinds):
        group = (index, owner, node)
        if group in model.takes:
            model.mixed[group] = model.columns.column(0.0, whole=whole)
            filled = model.nodes.get(group, {})
            model.columns.row(
                -float("inf"), 0, {model.mixed[group]: 1, **filled, hosts: -kind.count}
            )


def _layouts(model: Model, key: Slots, *, whole: bool) -> None:
    """Columns for the layouts that matter to the parts in use."""
    index, pool, node, number = key
    chassis, geometry, used = (
        model.fleet.chassis[index],
        model.fleet.geometries[number],
        model.slots[key],
    )
    cost = _tie(chassis)
    gpus = model.gpus.setdefault((index, pool[0], node), {})
    if geometry.layouts is None:
        column = model.columns.column(cost, whole=whole)
        gpus[column] = 1
        _volume(model, key, column)
        return
    for layout in chosen_layouts([[p for p, _ in each] for each in geometry.layouts], list(used)):
        column = model.columns.column(cost, whole=whole)
        model.layouts[column] = (key, layout)
        gpus[column] = 1
        for part, terms in used.items():
            n = sum(p == part for p, _ in geometry.layouts[layout])
            if n:
                terms[column] = -n
    for terms in used.values():
        model.columns.row(-float("inf"), 0, terms)


def chosen_layouts(layouts: Sequence[Sequence[int]], used: list[int]) -> list[int]:
    """Numbers of the layouts that no other covers, over the parts in use."""
    counts = {n: tuple(each.count(p) for p in used) for n, each in enumerate(layouts)}
    first: dict[tuple[int, ...], int] = {}
    for n, each in counts.items():
        first.setdefault(each, n)
    ordered = sorted(first, key=lambda c: (-sum(c), c))
    kept: list[tuple[int, ...]] = []
    for each in ordered:
        if not any(all(map(int.__ge__, k, each)) for k in kept):
            kept.append(each)
    return [first[each] for each in sorted(kept)]


def _volume(model: Model, key: Slots, column: int) -> None:
    """Too many layouts to list: units, compute units and numbers bound them."""
    geometry, used = model.fleet.geometries[key[3]], model.slots[key]
    mode = geometry.mode
    units: Terms = {column: -mode.units}
    compute: Terms = {column: -mode.compute_units}
    for p, terms in used.items():
        part = geometry.parts[p]
        units.update(dict.fromkeys(terms, part.size))
        compute.update(dict.fromkeys(terms, part.compute))
        model.columns.row(-float("inf"), 0, {**terms, column: -part.maximum})
    model.columns.row(-float("inf"), 0, units)
    model.columns.row(-float("inf"), 0, compute)


def _capacity(model: Model, group: NodeGroup) -> None:
    chassis = model.fleet.chassis[group[0]]
    kind, mixed = chassis.kinds[group[2]], model.mixed[group]
    infinity = float("inf")
    if group in model.gpus:
        model.columns.row(-infinity, 0, {**model.gpus[group], mixed: -kind.gpus})
    for k, terms in model.sets.get(group, {}).items():
        if k > 1 or kind.most[1] < kind.gpus:
            model.columns.row(-infinity, 0, {**terms, mixed: -kind.most[k]})
    for r, capacity in enumerate(kind.room):
        taken = [(column, wanted[r], one) for column, wanted, one in model.takes[group]]
        if not capacity:
            continue
        every = {column: amount / capacity for column, amount, _ in taken if amount}
        model.columns.row(-infinity, 0, {**every, mixed: -1} if every else {})
        shares = [(column, amount / capacity) for column, amount, one in taken if one and amount]
        for steps in DUAL_STEPS:
            terms = {c: rounded(share, steps) for c, share in shares}
            if any(terms[c] > share for c, share in shares):
                model.duals.append({**{c: v for c, v in terms.items() if v}, mixed: -1})


def rounded(share: float, steps: int) -> float:
    """A dual feasible function: shares that fit a node together still sum to at most 1. Source:
    Fekete and Schepers, New classes of fast lower bounds for bin packing problems (2001)."""
    scaled = share * (steps + 1)
    nearest = round(scaled)
    if abs(scaled - nearest) < 1e-9:
        return share
    return int(scaled) / steps


def _availability(model: Model) -> None:
    for chassis in model.fleet.chassis:
        number = model.available[chassis.index]
        owned = {c: 1.0 for (t, _), c in model.hosts.items() if t == chassis.index}
        if number is not None and len(owned) > 1:
            model.columns.row(-float("inf"), number, owned)


def slot_list(fleet: Fleet, geometry: int, layout: int) -> tuple[SlotAt, ...]:
    """The parts of a layout, and where they start."""
    layouts = fleet.geometries[geometry].layouts
    assert layouts is not None, "a layout that is not listed"
    return layouts[layout]
