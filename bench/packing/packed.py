"""Generated fleets whose packings are recorded: what each costs, what is proven of it, who found no
place, and how much was searched.

    make packed    # writes tests/fleet/packed.csv anew, and tells what differs

`tests/fleet/test_packed.py` fails where one costs more than is recorded, or takes much more search.
One fleet that costs more may be chance, where all together do not: `bench/packing/least_cost.py`
says whether large ones cost more. `usual` effort is what users have; fleets of `contents` are
packed as those of over 20,000 items, without ruin and recreate: what the model, contents and
placing are worth shows there, and in few seconds.
"""

from __future__ import annotations

import csv
import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import highspy

from bench.packing.fleets import fleet, replaced
from gpuplan.fleet.problem import Option, Problem, Result, Ways
from gpuplan.fleet.solver import pack, pack_ways, run
from gpuplan.fleet.solver.state import State

FILE = Path(__file__).parents[2] / "tests/fleet/packed.csv"
MOVE_COST = 1_000_000
Packing = tuple[Problem, Result]


@dataclass
class Work:
    """What does not depend on the machine: places looked at, iterations of the simplex method."""

    looks: int = 0
    iterations: int = 0


@dataclass(frozen=True)
class Row:
    """A packing of a fleet; money in micro-USD per hour. `refused` has requests with the numbers of
    items."""

    fleet: str
    cost: int
    bound: int
    moved: int
    refused: str
    looks: int
    iterations: int


def usual() -> Iterator[tuple[str, Callable[[], Packing]]]:
    """Fleets with the effort that users have."""
    for mix, items, seed in (
        ("core-bound", 60, 5),
        ("giants", 120, 5),
        ("distinct", 120, 5),
    ):
        yield f"{mix} {items}", lambda m=mix, n=items, s=seed: _packed(fleet(m, n, s))


def contents() -> Iterator[tuple[str, Callable[[], Packing]]]:
    """Fleets without ruin and recreate."""
    for mix, items, seed in (
        ("giants", 250, 5),
        ("heavy-tailed", 400, 5),
        ("mixed", 250, 5),
        ("notebooks", 120, 5),
        ("serving", 250, 5),
        ("training", 250, 5),
    ):
        name = f"{mix} {items}, contents"
        yield name, lambda m=mix, n=items, s=seed: _packed(fleet(m, n, s))
    yield "distinct-bound 250 as fewer kinds", lambda: _packed(fleet("distinct-bound", 250, 6))
    yield "mixed 120 on few hosts", lambda: _packed(_few(120))
    yield "mixed 250 of few teams", lambda: _packed(_teams(250))
    yield "serving 160, all apart", lambda: _packed(_apart(160))
    yield "mixed 250, a twentieth changed", lambda: _packed(_changed("mixed", 250))
    yield "core-bound 120, a tenth changed", lambda: _packed(_changed("core-bound", 120, 0.1))
    yield "core-bound 120 in two ways", lambda: pack_ways(_ways("core-bound", 120))


def packings() -> dict[str, Callable[[], tuple[Problem, Result, Work]]]:
    """All, by name."""
    made: dict[str, Callable[[], tuple[Problem, Result, Work]]] = {}
    for name, packing in usual():
        made[name] = lambda p=packing: _counted(p)
    for name, packing in contents():
        made[name] = lambda p=packing: _counted(p, ruin=False)
    return made


def row(name: str, result: Result, work: Work) -> Row:
    refused = " ".join(f"{r.request}:{'+'.join(map(str, r.numbers))}" for r in result.refused)
    moved = len(result.moved)
    return Row(name, result.cost, result.bound, moved, refused, work.looks, work.iterations)


def recorded(text: str | None = None) -> dict[str, Row]:
    """What the file says, by fleet."""
    rows = csv.DictReader(io.StringIO(FILE.read_text("utf-8") if text is None else text))
    made = [Row(**{f.name: _read(f.type, r[f.name]) for f in fields(Row)}) for r in rows]
    return {each.fleet: each for each in made}


def _read(kind: Any, text: str) -> Any:
    return int(text) if kind == "int" else text


def _packed(problem: Problem) -> Packing:
    return problem, pack(problem)


def _counted(packing: Callable[[], Packing], *, ruin: bool = True) -> tuple[Problem, Result, Work]:
    with ExitStack() as stack:
        if not ruin:
            stack.enter_context(patch.object(run, "ruin_work", lambda _: 0))
        work = stack.enter_context(counting())
        problem, result = packing()
    return problem, result, work


@contextmanager
def counting() -> Iterator[Work]:
    """What the solver does meanwhile; known at the end."""
    work, states = Work(), list[State]()
    started, solve = State.__init__, highspy.Highs.run

    def start(state: State, *arguments: Any) -> None:
        started(state, *arguments)
        states.append(state)

    def solved(solver: Any) -> Any:
        status = solve(solver)
        work.iterations += max(0, solver.getInfo().simplex_iteration_count)
        return status

    with patch.object(State, "__init__", start), patch.object(highspy.Highs, "run", solved):
        yield work
    work.looks = sum(state.work for state in states)


def _few(items: int) -> Problem:
    """Fewer hosts than all need, and four priorities."""
    problem = fleet("mixed", items, 3)
    hosts = tuple(replace(h, available=1) for h in problem.hosts)
    requests = tuple(replace(r, priority=n % 4) for n, r in enumerate(problem.requests))
    return replace(problem, hosts=hosts, requests=requests)


def _teams(items: int) -> Problem:
    """Three teams, of which two are alone on their hosts or GPUs."""
    problem = fleet("mixed", items, 4)
    alone = ("shared", "node", "gpu")
    requests = tuple(
        replace(r, tenant=f"team-{n % 3}", isolation=alone[n % 3])
        for n, r in enumerate(problem.requests)
    )
    return replace(problem, requests=requests)


def _apart(items: int) -> Problem:
    """Every request's items on different hosts."""
    problem = fleet("serving", items, 6)
    return replace(problem, requests=tuple(replace(r, spread=r.name) for r in problem.requests))


def _changed(mix: str, items: int, part: float = 0.05) -> Problem:
    """Some went, others came, with room for growth; what stands is kept, and a move has a price."""
    problem = fleet(mix, items, 5)
    changed = replaced(problem, run.pack(problem, contents=False), part, mix, 5)
    requests = tuple(replace(r, growth=n % 7 == 0) for n, r in enumerate(changed.requests))
    return replace(changed, requests=requests, move_cost=MOVE_COST)


def _ways(mix: str, items: int) -> Problem:
    """Workloads on single GPUs that may run on half as many pairs."""
    problem = fleet(mix, items, 1)
    ways = []
    pairs: dict[int, tuple[Option, ...]] = {}
    for request in problem.requests:
        if all(option.gpus == 1 for option in request.options):
            options = pairs.setdefault(id(request.options), tuple(map(_pair, request.options)))
            other = replace(request, count=-(-request.count // 2), options=options)
            ways.append(Ways(ways=((request,), (other,))))
    return replace(problem, ways=tuple(ways))


def _pair(option: Option) -> Option:
    """Two GPUs, for less than twice the cores and memory."""
    cores, memory = 3 * option.cores // 2, 3 * option.memory_bytes // 2
    return replace(option, gpus=2, cores=cores, memory_bytes=memory)


def main() -> int:
    before = recorded() if FILE.exists() else {}
    rows = []
    for name, packed in packings().items():
        started = time.process_time()
        _, result, work = packed()
        seconds = time.process_time() - started
        now = row(name, result, work)
        rows.append(now)
        print(f"{name:<34}{seconds:5.1f} s  {_difference(now, before.get(name))}", flush=True)
    both = [(r, before[r.fleet]) for r in rows if r.fleet in before]
    if both:
        more = sum(new.cost for new, _ in both) / sum(old.cost for _, old in both) - 1
        print(f"all that were recorded cost {more:+.3%}")
    with FILE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(asdict, rows))
    return 0


def _difference(now: Row, old: Row | None) -> str:
    if old is None:
        return f"new: {now.cost / 1e6:,.2f} USD/h, {now.cost / now.bound - 1:.2%} beyond its bound"
    if now == old:
        return "as recorded"
    return ", ".join(
        f"{name} {getattr(old, name)} -> {getattr(now, name)}"
        for name in (f.name for f in fields(Row))
        if getattr(now, name) != getattr(old, name)
    )


if __name__ == "__main__":
    sys.exit(main())
