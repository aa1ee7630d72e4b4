"""What is to be packed, as the packer sees it: items in classes of equals, and for each class its
choices: one option on one host type, with what it takes and its share of the host's cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from gpuplan.fleet.problem import Option, Problem, Request
from gpuplan.fleet.solver.chassis import Amounts, Chassis
from gpuplan.fleet.solver.patterns import Geometry
from gpuplan.plan.isolation import own_gpu, own_node

Pool = tuple[str | None, str | None]  # tenant that has the host alone, and the GPU alone
SHARED: Pool = (None, None)
MOST_PARTS = 1024  # of a GPU
Vector = tuple[float, float, float]  # parts of cores, memory and functions


@dataclass(frozen=True, slots=True)
class Choice:
    """An option on a host type. `geometry` is -1 for whole GPUs, and `gpus` then their number, else
    0; `share` is what the larger share of the host costs, in micro-USD per hour."""

    chassis: int
    geometry: int
    part: int
    gpus: int
    wanted: Amounts
    share: float
    option: int

    @property
    def whole(self) -> bool:
        return self.geometry < 0

    def on(self, gpus: int) -> Amounts:
        """What a node gives that has so many of its GPUs."""
        if gpus == self.gpus or not self.whole:
            return self.wanted
        cores, memory, functions = (-(-n * gpus // self.gpus) for n in self.wanted)
        return cores, memory, functions


@dataclass(slots=True)
class Class:
    """Equal items. `pools` are the hosts and GPUs they may be on, the common ones first; `gpus` is
    the least part of a GPU, or the GPUs, that one takes."""

    index: int
    choices: tuple[Choice, ...]
    pools: tuple[Pool, ...]
    size: float
    gpus: Fraction
    priority: int
    items: list[int] = field(default_factory=list)


@dataclass
class Fleet:
    """The problem, compiled. An item is a number; `request[i]` and `number[i]` say whose it is."""

    problem: Problem
    chassis: tuple[Chassis, ...]
    geometries: list[Geometry]
    classes: list[Class]
    class_of: list[int]
    request: list[int]
    number: list[int]
    spread: list[int]
    refused: list[int]
    items: dict[tuple[str, int], int]

    @cached_property
    def least(self) -> tuple[Fraction, int]:
        """The fewest GPUs, and the lowest priority, of any class."""
        return min(k.gpus for k in self.classes), min(k.priority for k in self.classes)

    @cached_property
    def by_gpus(self) -> list[int]:
        """Where each class stands by its GPUs, those of most first; equal ones alike."""
        order = sorted({-kind.gpus for kind in self.classes})
        return [order.index(-kind.gpus) for kind in self.classes]

    def rank(self, item: int) -> int:
        """Who has a place before others; room for growth comes last."""
        return -1 if self.is_growth(item) else self.problem.requests[self.request[item]].priority

    def is_growth(self, item: int) -> bool:
        return self.number[item] >= self.problem.requests[self.request[item]].count


class _Reader:
    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.chassis = tuple(Chassis(i, host) for i, host in enumerate(problem.hosts))
        self.models = {gpu.name: gpu for gpu in problem.gpus}
        self.geometries: list[Geometry] = []
        self.places: dict[tuple[str, str], tuple[int, dict[str, int]]] = {}
        self._options: dict[tuple[Option, ...], tuple[Choice, ...]] = {}
        self._seen: dict[int, tuple[Choice, ...]] = {}
        self.alone_on_gpu = {r.tenant for r in problem.requests if own_gpu(r.isolation)}
        self.alone_on_host = {r.tenant for r in problem.requests if own_node(r.isolation)}
        self._modes()

    def _modes(self) -> None:
        """A geometry for each mode somebody may use, over the parts somebody may use."""
        seen = {id(r.options): r.options for r in self.problem.requests}
        used = {(o.gpu, o.mode, o.part) for options in seen.values() for o in options if o.mode}
        for gpu in self.problem.gpus:
            for mode in gpu.modes:
                parts = tuple(p for p in mode.parts if (gpu.name, mode.name, p.name) in used)
                if parts:
                    names = {part.name: i for i, part in enumerate(parts)}
                    self.places[gpu.name, mode.name] = (len(self.geometries), names)
                    self.geometries.append(Geometry(gpu.name, mode, parts))

    def choices(self, options: tuple[Option, ...]) -> tuple[Choice, ...]:
        known = self._seen.get(id(options))
        if known is None:
            if options not in self._options:
                self._options[options] = self._choices(options)
            known = self._seen[id(options)] = self._options[options]
        return known

    def _choices(self, options: tuple[Option, ...]) -> tuple[Choice, ...]:
        possible = [
            self._choice(n, option, chassis)
            for n, option in enumerate(options)
            for chassis in self.chassis
            if chassis.host.gpu == option.gpu and chassis.available != 0
            if option.host_gpus in (None, chassis.gpus)
        ]
        good = [choice for choice in possible if choice is not None]
        return tuple(sorted(good, key=lambda c: (c.share, c.chassis, c.option)))

    def _choice(self, n: int, option: Option, chassis: Chassis) -> Choice | None:
        geometry = part = -1
        if option.mode is not None:
            geometry, names = self.places.get((option.gpu, option.mode), (-1, {}))
            if option.part not in names:
                return None
            part = names[option.part]
            if self.geometries[geometry].add(0, part) is None:
                return None
        wanted = (option.cores, option.memory_bytes, option.functions)
        choice = Choice(chassis.index, geometry, part, option.gpus, wanted, 0.0, n)
        choice = replace(choice, share=share_of(choice, chassis, self.geometries))
        return choice if fits_empty(chassis, choice) else None

    def gpus(self, choice: Choice) -> Fraction:
        """Those of a choice, a part as its share of one."""
        if choice.whole:
            return Fraction(choice.gpus)
        part = self.geometries[choice.geometry].fractions[choice.part]
        return Fraction(part).limit_denominator(MOST_PARTS)

    def pools(self, request: Request) -> tuple[Pool, ...]:
        own_host: tuple[Pool, ...] = ()
        if request.tenant in self.alone_on_host:
            own_host = ((request.tenant, None),)
        if own_node(request.isolation):
            return own_host
        whole = all(option.mode is None for option in request.options)
        if own_gpu(request.isolation) and not whole:
            return ((None, request.tenant), *own_host)
        if request.tenant in self.alone_on_gpu and not whole:
            return (SHARED, (None, request.tenant), *own_host)
        return (SHARED, *own_host)


def portions(wanted: Sequence[float], room: Sequence[int]) -> Vector:
    """What part of each resource is wanted; none of one that is not there."""
    cores, memory, functions = (w / r if r else 0.0 for w, r in zip(wanted, room, strict=True))
    return cores, memory, functions


def share_of(choice: Choice, chassis: Chassis, geometries: Sequence[Geometry]) -> float:
    """The larger part of a host that it takes, at the host's cost, in micro-USD per hour."""
    gpus = float(choice.gpus)
    if not choice.whole:
        gpus = geometries[choice.geometry].fractions[choice.part]
    return chassis.cost * max(gpus / chassis.gpus, *portions(choice.wanted, chassis.everything))


def fits_empty(chassis: Chassis, choice: Choice) -> bool:
    """Whether one such item fits an empty host of the type."""
    if not choice.whole:
        return any(kind.gpus and within(choice.wanted, kind.room) for kind in chassis.kinds)
    return any(
        all(within(choice.on(n), chassis.room[j]) for j, n in chassis.parts_of(m))
        for m in sets_on_empty(chassis, choice.gpus)
    )


def sets_on_empty(chassis: Chassis, gpus: int) -> list[int]:
    """Sets of GPUs for a workload on so many, one a node or on several nodes."""
    inside = (
        [chassis.pick(mask, gpus) for mask in chassis.masks] if chassis.within_node(gpus) else []
    )
    return [mask for mask in inside if mask] + list(chassis.spans(chassis.mask, gpus))


def within(wanted: Amounts, free: Amounts) -> bool:
    return all(w <= f for w, f in zip(wanted, free, strict=True))


def compile_fleet(problem: Problem) -> Fleet:
    reader = _Reader(problem)
    fleet = Fleet(
        problem=problem,
        chassis=reader.chassis,
        geometries=reader.geometries,
        classes=[],
        class_of=[],
        request=[],
        number=[],
        spread=[],
        refused=[],
        items={},
    )
    classes: dict[tuple[int, tuple[Pool, ...], int], Class] = {}
    groups: dict[str, int] = {}
    for r, request in enumerate(problem.requests):
        choices, pools = reader.choices(request.options), reader.pools(request)
        key = (id(choices), pools, request.priority)
        if key not in classes and choices:
            size = min(choice.share for choice in choices)
            gpus = min(reader.gpus(choice) for choice in choices)
            classes[key] = Class(len(classes), choices, pools, size, gpus, request.priority)
        _add_items(fleet, r, classes.get(key), groups)
    fleet.classes.extend(classes.values())
    deal_groups(fleet)
    return fleet


def _add_items(fleet: Fleet, r: int, kind: Class | None, groups: dict[str, int]) -> None:
    request = fleet.problem.requests[r]
    for number in range(request.count + request.growth):
        item = len(fleet.request)
        fleet.request.append(r)
        fleet.number.append(number)
        spread = request.spread if number < request.count else None
        fleet.spread.append(-1 if spread is None else groups.setdefault(spread, len(groups)))
        fleet.class_of.append(kind.index if kind else -1)
        fleet.items[request.name, number] = item
        (kind.items if kind else fleet.refused).append(item)


def deal_groups(fleet: Fleet) -> None:
    """The first of each spread group first, then the second ones: what stands together in a
    class's list may stand together on a host."""
    seen: dict[int, int] = {}
    rank = []
    for group in fleet.spread:
        rank.append(seen.get(group, 0) if group >= 0 else 0)
        seen[group] = rank[-1] + 1
    for kind in fleet.classes:
        kind.items.sort(key=lambda item: (rank[item], item))
