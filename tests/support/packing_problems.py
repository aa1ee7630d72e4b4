"""Small problems in which every rule binds somewhere, and their least cost by trying all."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from gpuplan.fleet.problem import (
    Card,
    GpuModel,
    HostType,
    NumaCapacity,
    Option,
    Problem,
    Request,
)
from gpuplan.fleet.solver.classes import compile_fleet
from gpuplan.sharing.modes import Mode, Part
from tests.support.packing_check import Room, Where, _places, _stands, _tries

GIB = 2**30
RANKS = range(2, -2, -1)
Left = tuple[Fraction, ...]  # GPUs without a place, of each rank
# Seeds of problems with several items that all find a place, and are tried in a second.
TRIED = (1026, 1045, 1057, 1075, 1106, 1123, 1124, 1140, 1157, 1211, 1219, 1232, 1233, 1243)
MIG = Mode(
    name="mig",
    way="mig",
    units=8,
    compute_units=7,
    uniform=False,
    parts=tuple(
        Part(name=n, memory_bytes=m * GIB, starts=s, size=z, compute=c, maximum=x, extension=e)
        for n, m, s, z, c, x, e in (
            ("1g", 10, tuple(range(7)), 1, 1, 7, ""),
            ("1g+me", 10, tuple(range(7)), 1, 1, 1, "+me"),
            ("1g2", 20, (0, 2, 4, 6), 2, 1, 4, ""),
            ("2g", 20, (0, 2, 4), 2, 2, 3, ""),
            ("3g", 40, (0, 4), 4, 3, 2, ""),
            ("4g", 40, (0,), 4, 4, 1, ""),
        )
    ),
)
QUARTERS = Mode(
    name="mig",
    way="mig",
    units=12,
    compute_units=4,
    uniform=False,
    parts=tuple(
        Part(name=n, memory_bytes=m * GIB, starts=s, size=z, compute=c, maximum=x, extension=e)
        for n, m, s, z, c, x, e in (
            ("1g", 24, (0, 3, 6, 9), 3, 1, 4, ""),
            ("1g+me.all", 24, (0, 3, 6, 9), 3, 1, 1, "+me.all"),
            ("1g-me", 24, (0, 3, 6, 9), 3, 1, 4, "-me"),
            ("2g", 48, (0, 6), 6, 2, 2, ""),
            ("2g-me", 48, (0, 6), 6, 2, 2, "-me"),
        )
    ),
)
VGPU = Mode(
    name="vgpu",
    way="vgpu",
    units=0,
    compute_units=0,
    uniform=True,
    parts=tuple(
        Part(name=f"{size}C", memory_bytes=size * GIB, starts=(), size=1, compute=0, maximum=most)
        for size, most in ((8, 6), (16, 3), (24, 2))
    ),
)
MIXED = Mode(
    name="vgpu-mixed",
    way="vgpu",
    units=6,
    compute_units=6,
    uniform=False,
    parts=(
        Part(
            name="m8", memory_bytes=8 * GIB, starts=(0, 1, 2, 3, 4, 5), size=1, compute=1, maximum=5
        ),
        Part(name="m16", memory_bytes=16 * GIB, starts=(0, 2, 4), size=2, compute=2, maximum=3),
        Part(name="m24", memory_bytes=24 * GIB, starts=(0, 3), size=3, compute=3, maximum=2),
    ),
)
MODELS = (
    GpuModel(name="seven", memory_bytes=80 * GIB, modes=(MIG, VGPU)),
    GpuModel(name="four", memory_bytes=96 * GIB, modes=(QUARTERS,)),
    GpuModel(name="cards", memory_bytes=48 * GIB, modes=(VGPU, MIXED)),
)


def hosts(draw: random.Random) -> Iterator[HostType]:
    """Boards with islands, groups that go together or to none, uneven nodes, cards with
    functions."""
    for number in range(draw.choice((1, 2, 3))):
        model = draw.choice(MODELS)
        counts = draw.choice(((2,), (2, 2), (1, 1), (3, 1), (4,)))
        gpus = list(range(sum(counts)))
        nodes = []
        for count in counts:
            own, gpus = tuple(gpus[:count]), gpus[count:]
            cards = tuple(
                Card(functions=draw.choice((1, 2))) for _ in range(draw.choice((0, 1, 2)))
            )
            nodes.append(
                NumaCapacity(
                    gpus=own, cores=draw.choice((6, 8, 12)), memory_bytes=64 * GIB, cards=cards
                )
            )
        shape = draw.choice(("plain", "plain", "islands", "together"))
        pairs = tuple((g, g + 1) for g in range(0, sum(counts) - 1, 2))
        yield HostType(
            name=f"host{number}",
            gpu=model.name,
            nodes=tuple(nodes),
            islands=pairs if shape == "islands" else (),
            together=pairs[:1] if shape == "together" else (),
            unpassed=(3,) if shape == "together" and sum(counts) == 4 else (),
            cost=draw.choice((1_000_000, 1_500_000, 2_700_000)),
            available=draw.choice((None, None, 1, 2)),
        )


def options(draw: random.Random) -> tuple[Option, ...]:
    """One to three ways: whole GPUs or parts, of any model."""
    cores, memory = draw.choice((1, 2, 4)), draw.choice((8, 16, 30)) * GIB
    functions = draw.choice((0, 0, 0, 1, 2))
    found: dict[Option, None] = {}
    for _ in range(draw.choice((1, 2, 3))):
        model = draw.choice(MODELS)
        one = Option(
            gpu=model.name, gpus=draw.choice((1, 1, 2, 2, 3)), cores=cores, memory_bytes=memory,
            functions=functions,
        )  # fmt: skip
        if draw.random() < 0.7:
            mode = draw.choice(model.modes)
            one = replace(one, gpus=0, mode=mode.name, part=draw.choice(mode.parts).name)
        found[one] = None
    return tuple(found)


def problem(seed: int, most: int) -> Problem:
    """Up to `most` requests of one to four items, of three teams."""
    draw = random.Random(seed)
    kinds = tuple(hosts(draw))
    requests = []
    for number in range(draw.randint(1, most)):
        count = draw.choice((1, 1, 2, 3, 4))
        requests.append(
            Request(
                name=f"r{number}",
                count=count,
                options=options(draw),
                tenant=draw.choice("abc"),
                isolation=draw.choice(("shared", "shared", "gpu", "node")),
                spread=draw.choice((None, None, "near", f"r{number}")),
                growth=draw.choice((0, 0, 0, 1)),
            )
        )
    return Problem(gpus=MODELS, hosts=kinds, requests=tuple(requests))


class _Search:
    """Depth first over items and all their places; a branch ends where it cannot be better."""

    def __init__(self, asked: Problem) -> None:
        self.asked = asked
        self.items = [(r, n) for r in asked.requests for n in range(r.count + r.growth)]
        self.rooms: dict[Where, Room] = {}
        self.best: tuple[int, int] | None = None

    def go(self, number: int, cost: int, gpus: int) -> None:
        if self.best is not None and (cost, gpus) >= self.best:
            return
        if number == len(self.items):
            self.best = cost, gpus
            return
        self._anywhere(number, (cost, gpus))

    def _anywhere(self, number: int, spent: tuple[int, int]) -> None:
        request, item = self.items[number]
        near = _apart(self.rooms, request) if item < request.count else set()
        for place, room in list(_places(self.asked, self.rooms)):
            if place not in near:
                self._stand(number, spent, place, room)

    def _stand(self, number: int, spent: tuple[int, int], place: Where, room: Room) -> None:
        request, item = self.items[number]
        dearer = 0 if place in self.rooms else room.kind.cost
        used = {gpu for other, _, _ in room.items for gpu in other.gpus}
        for tried in _tries(self.asked, room, request, item, place):
            if _stands(self.asked, room, tried):
                self.rooms.setdefault(place, room).items.append(tried)
                more = len(set(tried[0].gpus) - used)
                self.go(number + 1, spent[0] + dearer, spent[1] + more)
                room.items.pop()
                if not room.items:
                    del self.rooms[place]


def least_cost(asked: Problem) -> tuple[int, int] | None:
    """The least cost that places every item and the fewest GPUs at that cost, found by trying
    everything; None where nothing places all."""
    search = _Search(asked)
    search.go(0, 0, 0)
    return search.best


class _Refusing(_Search):
    """Depth first, where items may also be left out, those that count most first."""

    def __init__(self, asked: Problem) -> None:
        super().__init__(asked)
        self.gpus = gpus_of(asked)
        self.items = [i for i in self.items if (i[0].name, i[1]) in self.gpus]
        self.items.sort(key=lambda item: rank(*item), reverse=True)
        self.left = dict.fromkeys(RANKS, Fraction())
        self.least: tuple[Left, int, int] | None = None

    def go(self, number: int, cost: int, gpus: int) -> None:
        key = (tuple(self.left.values()), cost, gpus)
        if self.least is not None and key >= self.least:
            return
        if number == len(self.items):
            self.least = key
            return
        self._anywhere(number, (cost, gpus))
        request, item = self.items[number]
        left, mine = rank(request, item), self.gpus[request.name, item]
        self.left[left] += mine
        self.go(number + 1, cost, gpus)
        self.left[left] -= mine


def rank(request: Request, number: int) -> int:
    """What an item counts; room for growth least."""
    return request.priority if number < request.count else -1


def gpus_of(asked: Problem) -> dict[tuple[str, int], Fraction]:
    """What each item counts in GPUs, of those that an empty host has room for."""
    fleet = compile_fleet(asked)
    return {
        (request.name, number): fleet.classes[
            fleet.class_of[fleet.items[request.name, number]]
        ].gpus
        for request in asked.requests
        for number in range(request.count + request.growth)
        if any(
            _stands(asked, Room(kind), tried)
            for kind in asked.hosts
            for tried in _tries(asked, Room(kind), request, number, (kind.name, 0))
        )
    }


def least_left(asked: Problem) -> tuple[Left, int, int]:
    """The least GPUs without a place by rank, the highest first, then the least cost and the fewest
    GPUs, found by trying everything."""
    search = _Refusing(asked)
    search.go(0, 0, 0)
    assert search.least is not None, "all may be left out"
    return search.least


def _apart(rooms: dict[Where, Room], request: Request) -> set[Where]:
    """The hosts that an item of the request must not be on."""
    if request.spread is None:
        return set()
    return {
        place
        for place, room in rooms.items()
        for item, other, _ in room.items
        if other.spread == request.spread and item.number < other.count
    }
