"""Generated fleets: hosts with prices, flavours of workloads, teams; all synthetic and seeded.

A mix says which flavours come how often and what the hosts have. Prices are round numbers near
those of the catalogue; cheap hosts are few, the newest may be bought without limit.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from gpuplan.catalog.load import load_catalog
from gpuplan.fleet.options import PartRequest, gpu_model, shares, whole
from gpuplan.fleet.problem import (
    Card,
    GpuModel,
    HostType,
    NumaCapacity,
    Option,
    Placed,
    Problem,
    Request,
    Result,
)
from gpuplan.sharing.modes import HostSharing
from gpuplan.units import GIB

GB = 10**9
TEAMS = 12
ALONE_ON_HOST = ("team-10", "team-11")
ALONE_ON_GPU = ("team-08", "team-09")


@dataclass(frozen=True, slots=True)
class Machine:
    """A host: GPUs and NUMA nodes, physical cores and GiB of memory of a node after reserves,
    virtual functions of its one card, USD per hour, and hosts there are for 1,000 items."""

    name: str
    gpu: str
    gpus: int
    nodes: int
    cores: int
    memory: int
    functions: int
    usd: float
    there: float | None
    linked: bool = True


MACHINES = (
    Machine("a100-40x8", "a100-sxm-40gb", 8, 2, 62, 464, 16, 10.80, 4),
    Machine("a100-80x8", "a100-sxm-80gb", 8, 2, 62, 960, 16, 16.00, 5),
    Machine("h100x8", "h100-sxm-80gb", 8, 2, 54, 960, 32, 23.60, 5),
    Machine("h100x4", "h100-pcie-80gb", 4, 2, 30, 480, 8, 10.90, 4),
    Machine("h200x8", "h200-sxm-141gb", 8, 2, 54, 960, 32, 28.00, None),
    Machine("b200x8", "b200-sxm-180gb", 8, 2, 54, 1888, 32, 44.00, None),
    Machine("l40sx4", "l40s", 4, 2, 30, 352, 8, 6.20, 10, linked=False),
    Machine("l40sx1", "l40s", 1, 1, 14, 112, 4, 1.70, 20, linked=False),
)


@dataclass(frozen=True, slots=True)
class Flavour:
    """What an item wants: whole GPUs, or memory (GB) and sevenths of the compute of one; physical
    cores, GiB of memory, virtual functions."""

    gpus: int
    memory: int
    sevenths: int
    cores: int
    ram: int
    functions: int
    weight: float


def _fractions() -> Iterator[Flavour]:
    sizes = ((4, 0, 9.0), (5, 1, 9.0), (8, 1, 9.0), (10, 1, 8.0), (16, 1, 8.0), (18, 2, 6.0))
    sizes += ((20, 2, 6.0), (24, 2, 5.0), (34, 2, 5.0), (35, 3, 5.0), (40, 3, 4.0), (40, 4, 3.0))
    for memory, sevenths, weight in sizes:
        yield Flavour(0, memory, sevenths, max(1, memory // 8), max(8, memory), 0, weight / 2)
        yield Flavour(0, memory, sevenths, max(2, memory // 4), max(16, 2 * memory), 1, weight / 2)


FRACTIONS = tuple(_fractions())
ONES = (
    Flavour(1, 0, 0, 6, 64, 0, 4),
    Flavour(1, 0, 0, 8, 96, 0, 3),
    Flavour(1, 0, 0, 12, 120, 1, 2),
    Flavour(1, 0, 0, 4, 48, 0, 1),
    Flavour(1, 0, 0, 10, 180, 0, 1),
)
TWOS = (
    Flavour(2, 0, 0, 12, 160, 0, 3),
    Flavour(2, 0, 0, 16, 240, 2, 1),
    Flavour(2, 0, 0, 20, 200, 0, 1),
)
FOURS = (
    Flavour(4, 0, 0, 24, 400, 4, 3),
    Flavour(4, 0, 0, 32, 440, 4, 2),
    Flavour(4, 0, 0, 33, 400, 0, 1),
)
EIGHTS = (Flavour(8, 0, 0, 60, 880, 8, 2), Flavour(8, 0, 0, 66, 900, 8, 1))
FLAVOURS = (FRACTIONS, ONES, TWOS, FOURS, EIGHTS)


@dataclass(frozen=True, slots=True)
class Mix:
    """Parts of items that are fractions, whole GPUs by 1, 2, 4 and 8; parts of the hosts' cores and
    memory. `tail`: the most items of a request, few have many; `distinct`: cores and memory of
    almost every request differ."""

    parts: tuple[float, ...]
    cores: float = 1.0
    memory: float = 1.0
    tail: int = 6
    distinct: bool = False


ORDINARY = (0.77, 0.105, 0.05, 0.06, 0.015)
MIXES = {
    "mixed": Mix(ORDINARY),
    "core-bound": Mix(ORDINARY, cores=0.62),
    "serving": Mix((0.90, 0.06, 0.03, 0.01, 0.0)),
    "training": Mix((0.30, 0.20, 0.15, 0.25, 0.10)),
}
# Never looked at while the packer was made; --mix names them.
UNSEEN = {
    "memory-bound": Mix(ORDINARY, memory=0.55),
    "notebooks": Mix((0.97, 0.03, 0.0, 0.0, 0.0)),
    "giants": Mix((0.20, 0.10, 0.10, 0.30, 0.30)),
    "heavy-tailed": Mix(ORDINARY, tail=200),
    "distinct": Mix(ORDINARY, distinct=True),
    "distinct-bound": Mix(ORDINARY, cores=0.62, distinct=True),
}


def fleet(mix: str, items: int, seed: int) -> Problem:
    """`items` items of `mix`; the same arguments make the same fleet."""
    chosen = (MIXES | UNSEEN)[mix]
    models = _models()
    hosts = tuple(_host(m, items, chosen) for m in MACHINES)
    requests = tuple(_requests(_Draw(mix, seed), chosen, items, models))
    return Problem(gpus=tuple(models.values()), hosts=hosts, requests=requests)


def replaced(problem: Problem, result: Result, part: float, mix: str, seed: int) -> Problem:
    """The fleet after `part` of its items went and as many others came; the rest stands."""
    draw = _Draw(f"{mix} changed", seed)
    total = sum(r.count for r in problem.requests)
    order = list(range(len(problem.requests)))
    draw.random.shuffle(order)
    gone, left = 0, set(order)
    for number in order:
        if gone >= part * total:
            break
        left.discard(number)
        gone += problem.requests[number].count
    stay = tuple(problem.requests[n] for n in sorted(left))
    came = _requests(draw, (MIXES | UNSEEN)[mix], gone, {m.name: m for m in problem.gpus})
    new = tuple(replace(r, name=f"new-{r.name}", spread=_again(r.spread)) for r in came)
    names = {r.name for r in stay}
    kept: tuple[Placed, ...] = tuple(p for p in result.placed if p.request in names)
    return replace(problem, requests=(*stay, *new), kept=kept)


def _again(spread: str | None) -> str | None:
    return None if spread is None else f"new-{spread}"


class _Draw:
    def __init__(self, mix: str, seed: int) -> None:
        self.random = random.Random(f"{mix} {seed}")
        self.teams = [f"team-{n:02}" for n in range(TEAMS)]
        self.weights = [1 / (n + 1) for n in range(TEAMS)]

    def flavour(self, mix: Mix) -> Flavour:
        (kind,) = self.random.choices(FLAVOURS, mix.parts)
        (flavour,) = self.random.choices(kind, [f.weight for f in kind])
        if not mix.distinct:
            return flavour
        cores = max(1, round(flavour.cores * self.random.uniform(0.6, 1.05)))
        return replace(
            flavour, cores=cores, ram=round(flavour.ram * self.random.uniform(0.6, 1.05))
        )

    def number(self, mix: Mix) -> int:
        """Items of a request."""
        if mix.tail == 6:
            return self.random.choice((1, 1, 1, 2, 3, 4, 5, 6))
        return min(mix.tail, int(self.random.paretovariate(0.8)))

    def team(self) -> str:
        return self.random.choices(self.teams, self.weights)[0]


def _models() -> dict[str, GpuModel]:
    """The catalogue's GPUs; only the L40S is given out as vGPUs."""
    catalog = load_catalog()
    models = {}
    for name in sorted({m.gpu for m in MACHINES}):
        gpu = catalog.gpu(name)
        assert gpu is not None, name
        models[name] = gpu_model(gpu, HostSharing(virtual=name == "l40s"))
    return models


def _host(machine: Machine, items: int, mix: Mix) -> HostType:
    each = machine.gpus // machine.nodes
    nodes = tuple(
        NumaCapacity(
            gpus=tuple(range(n * each, (n + 1) * each)),
            cores=math.floor(machine.cores * mix.cores),
            memory_bytes=math.floor(machine.memory * mix.memory) * GIB,
            cards=(Card(functions=machine.functions),),
        )
        for n in range(machine.nodes)
    )
    pairs = tuple((g, g + 1) for g in range(0, machine.gpus, 2)) if machine.gpus == 4 else ()
    there = machine.there
    return HostType(
        name=machine.name,
        gpu=machine.gpu,
        nodes=nodes,
        islands=pairs if machine.linked else (),
        cost=round(machine.usd * 1_000_000),
        available=None if there is None else max(1, round(there * items / 1000)),
    )


def _requests(draw: _Draw, mix: Mix, items: int, models: dict[str, GpuModel]) -> Iterator[Request]:
    """Groups of one to six replicas, of which half stand on different hosts."""
    made: dict[Flavour, tuple[Option, ...]] = {}
    left, number = items, 0
    while left:
        flavour, team = draw.flavour(mix), draw.team()
        count = min(left, draw.number(mix))
        if flavour not in made:
            made[flavour] = tuple(_options(flavour, models))
        name = f"r{number:05}"
        spread = 1 < count <= 6 and draw.random.random() < 0.5
        yield Request(
            name=name,
            count=count,
            options=made[flavour],
            tenant=team,
            isolation="node"
            if team in ALONE_ON_HOST
            else "gpu"
            if team in ALONE_ON_GPU
            else "shared",
            spread=name if spread else None,
        )
        left, number = left - count, number + 1


def _options(flavour: Flavour, models: dict[str, GpuModel]) -> Iterator[Option]:
    """The smallest parts of each GPU; several whole GPUs only where NVLink joins them."""
    asked = (flavour.cores, flavour.ram * GIB, flavour.functions)
    linked = {m.gpu: m.gpus for m in MACHINES if m.linked}
    for name, model in models.items():
        if flavour.gpus == 0:
            wanted = PartRequest(memory_bytes=flavour.memory * GB, compute=flavour.sevenths / 7)
            yield from shares(model, wanted, *asked)
        elif flavour.gpus == 1 or flavour.gpus <= min(linked.get(name, 0), _most(name)):
            yield whole(name, flavour.gpus, *asked)


def _most(gpu: str) -> int:
    """GPUs that one island has: pairs on hosts of four."""
    return max((2 if m.gpus == 4 else m.gpus) for m in MACHINES if m.gpu == gpu)
