"""The checker of packed fleets finds each kind of mistake that is put into a right answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gpuplan.fleet.problem import (
    Card,
    GpuModel,
    HostType,
    Moved,
    NumaCapacity,
    Option,
    Placed,
    Problem,
    Refused,
    Request,
    Result,
)
from gpuplan.sharing.modes import Mode, Part
from tests.support.packing_check import faults

GIB = 2**30
EIGHTHS = tuple(range(7))


def part(name: str, size: int, compute: int, maximum: int, starts: tuple[int, ...]) -> Part:
    for media in ("+me.all", "+me", "-me"):
        if name.endswith(media):
            break
    else:
        media = ""
    memory = size * 10 * GIB
    return Part(
        name=name, memory_bytes=memory, starts=starts, size=size, compute=compute,
        maximum=maximum, extension=media,
    )  # fmt: skip


MIG = Mode(
    name="mig",
    way="mig",
    units=8,
    compute_units=7,
    uniform=False,
    parts=(
        part("1g", 1, 1, 7, EIGHTHS),
        part("1g+me", 1, 1, 1, EIGHTHS),
        part("1g+me.all", 1, 1, 1, EIGHTHS),
        part("1g-me", 1, 1, 7, EIGHTHS),
        part("2g", 2, 2, 3, (0, 2, 4)),
        part("3g", 4, 3, 2, (0, 4)),
        part("4g", 4, 4, 1, (0,)),
    ),
)
VGPU = Mode(
    name="vgpu",
    way="vgpu",
    units=0,
    compute_units=0,
    uniform=True,
    parts=(part("8C", 1, 0, 3, ()), part("12C", 1, 0, 2, ())),
)
MODEL = GpuModel(name="big", memory_bytes=80 * GIB, modes=(MIG, VGPU))
HOST = HostType(
    name="host",
    gpu="big",
    nodes=(
        NumaCapacity(gpus=(0, 1), cores=20, memory_bytes=100 * GIB, cards=(Card(functions=2),)),
        NumaCapacity(
            gpus=(2, 3),
            cores=20,
            memory_bytes=100 * GIB,
            cards=(Card(functions=1, gpus=(2,)), Card(functions=1, gpus=(3,))),
        ),
    ),
    islands=((0, 1), (2, 3), (0, 1, 2, 3)),
    cost=1_000_000,
    available=2,
    names=("a", "b"),
)
GROUPED = replace(HOST, name="grouped", islands=(), together=((0, 1),), cost=2_000_000, names=())


def option(part: str | None = None, gpus: int = 0, functions: int = 0, mode: str = "mig") -> Option:
    return Option(
        gpu="big", gpus=gpus, mode=mode if part else None, part=part, cores=4,
        memory_bytes=16 * GIB, functions=functions,
    )  # fmt: skip


def request(name: str, *options: Option, count: int = 1, **more: object) -> Request:
    return Request(name=name, count=count, options=options, **more)  # type: ignore[arg-type]


PROBLEM = Problem(
    gpus=(MODEL,),
    hosts=(HOST, GROUPED),
    requests=(
        request("small", option("1g"), option("8C", mode="vgpu"), count=2, growth=1),
        request("pair", option(gpus=2, functions=2), tenant="pairs"),
        request("third", option("3g"), option("4g"), tenant=""),
        request("apart", option("2g"), count=2, spread="apart"),
        request("giant", option(gpus=5)),
    ),
    kept=(
        Placed(request="third", number=0, host_type="host", host=0, gpus=(0,), mode="mig",
               part="3g", start=0),
    ),
    move_cost=1,
)  # fmt: skip


def placed(
    name: str, number: int, host: int, gpus: tuple[int, ...], *on: object, **more: object
) -> Placed:
    """`on` are the part and its start."""
    part, start = on or (None, None)
    shared = {"mode": "mig", "part": part, "start": start} if part else {}
    return Placed(
        request=name, number=number, host_type="host", host=host, gpus=gpus, **{**shared, **more}
    )  # type: ignore[arg-type]


THIRD = placed("third", 0, 0, (0,), "3g", 4)
PAIR = placed("pair", 0, 0, (2, 3), cards=(0, 1))
RESULT = Result(
    placed=(
        placed("small", 0, 0, (0,), "1g", 0),
        placed("small", 1, 0, (0,), "1g", 1),
        placed("small", 2, 0, (1,), "8C", None, mode="vgpu"),
        PAIR,
        THIRD,
        placed("apart", 0, 0, (0,), "2g", 2),
        placed("apart", 1, 1, (0,), "2g", 0),
    ),
    refused=(
        Refused(
            request="giant", numbers=(0,), resource="gpus", host_type="host", requested=5,
            available=4, unit="1",
        ),
    ),
    moved=(Moved(before=PROBLEM.kept[0], after=THIRD, why="made room"),),
    hosts=(("host", 2),),
    cost=2_000_000,
    bound=1_500_000,
    bound_hosts=1,
)  # fmt: skip

Change = Callable[[Problem, Result], tuple[Problem, Result]]


def put(name: str, number: int = 0, **changes: object) -> Change:
    """An item placed otherwise."""

    def change(problem: Problem, result: Result) -> tuple[Problem, Result]:
        items = [
            replace(p, **changes) if (p.request, p.number) == (name, number) else p  # type: ignore[arg-type]
            for p in result.placed
        ]
        assert items != list(result.placed)
        moved = tuple(
            replace(m, after=i) for m in result.moved for i in items if i.request == "third"
        )
        return problem, replace(result, placed=tuple(items), moved=moved)

    return change


def asked(name: str, **changes: object) -> Change:
    """A request that wants something else."""

    def change(problem: Problem, result: Result) -> tuple[Problem, Result]:
        wanted = [replace(r, **changes) if r.name == name else r for r in problem.requests]  # type: ignore[arg-type]
        return replace(problem, requests=tuple(wanted)), result

    return change


def host(**changes: object) -> Change:
    """A host that has something else."""

    def change(problem: Problem, result: Result) -> tuple[Problem, Result]:
        first, *others = problem.hosts
        return replace(problem, hosts=(replace(first, **changes), *others)), result  # type: ignore[arg-type]

    return change


def answer(**changes: object) -> Change:
    return lambda problem, result: (problem, replace(result, **changes))  # type: ignore[arg-type]


def both(*changes: Change) -> Change:
    def change(problem: Problem, result: Result) -> tuple[Problem, Result]:
        for one in changes:
            problem, result = one(problem, result)
        return problem, result

    return change


def less(node: int, **changes: object) -> Change:
    nodes = [replace(n, **changes) if i == node else n for i, n in enumerate(HOST.nodes)]  # type: ignore[arg-type]
    return host(nodes=tuple(nodes))


def refuse_a_third(problem: Problem, result: Result) -> tuple[Problem, Result]:
    refused = replace(result.refused[0], request="third")
    kept = tuple(p for p in result.placed if p.request != "third")
    return problem, replace(result, placed=kept, refused=(*result.refused, refused), moved=())


SMALL_MEDIA = (option("1g"), option("1g+me"), option("1g+me.all"), option("8C", mode="vgpu"))
MISTAKES: dict[str, tuple[Change, str]] = {
    "an illegal start": (put("apart", start=1), "legal are (0, 2, 4)"),
    "no start": (put("third", start=None), "legal are (0, 4)"),
    "an overlap": (put("small", 1, start=0), "taken twice"),
    "one over the maximum": (
        both(
            put("small", 0, part="8C", mode="vgpu", start=None, gpus=(1,)),
            put("small", 1, part="8C", mode="vgpu", start=None, gpus=(1,)),
            lambda p, r: (
                replace(
                    p,
                    gpus=(
                        replace(
                            MODEL,
                            modes=(
                                MIG,
                                replace(
                                    VGPU, parts=tuple(replace(x, maximum=2) for x in VGPU.parts)
                                ),
                            ),
                        ),
                    ),
                ),
                r,
            ),
        ),
        "3 × 8C, at most 2",
    ),
    "too many compute units": (
        lambda p, r: (
            replace(p, gpus=(replace(MODEL, modes=(replace(MIG, compute_units=6), VGPU)),)),
            r,
        ),
        "7 of 6 compute units",
    ),
    "media engines twice": (
        both(
            asked("small", options=SMALL_MEDIA),
            put("small", 0, part="1g+me"),
            put("small", 1, part="1g+me.all"),
        ),
        "media engines claimed",
    ),
    "media engines beside all of them": (
        both(asked("small", options=SMALL_MEDIA), put("small", 0, part="1g+me.all")),
        "beside one that has them all",
    ),
    "two modes": (put("small", 2, gpus=(0,)), "in the modes"),
    "two sizes of vGPU": (
        both(
            asked("apart", options=(option("2g"), option("12C", mode="vgpu"))),
            put("apart", 0, gpus=(1,), part="12C", mode="vgpu", start=None),
        ),
        "sizes ['12C', '8C'] on one GPU",
    ),
    "a start in a uniform mode": (put("small", 2, start=0), "a start in a uniform mode"),
    "a part of a GPU that is taken whole": (put("small", 2, gpus=(2,)), "has it whole"),
    "no such option": (put("third", part="2g", start=4), "no option is"),
    "a GPU that is not there": (put("small", 2, gpus=(9,)), "GPUs (9,)"),
    "too few cores": (less(0, cores=19), "20 of 19 cores"),
    "too little memory": (less(1, memory_bytes=15 * GIB), "bytes of memory"),
    "too few functions": (less(1, cards=HOST.nodes[1].cards[:1]), "no card 1"),
    "functions of one card": (put("pair", cards=(0, 0)), "2 of 1 functions of card 0"),
    "fewer functions than asked": (put("pair", cards=(0,)), "functions of 1 cards, 2 asked"),
    "no island": (put("pair", gpus=(1, 2), cards=(0, 0)), "no island"),
    "over two nodes": (
        both(host(islands=()), put("pair", gpus=(1, 2), cards=(0, 0))),
        "and one is big enough",
    ),
    "a torn group": (host(together=((1, 2),)), "of the group (1, 2)"),
    "a group with the host's": (host(unpassed=(2,)), "no guest gets (2,) whole"),
    "another tenant on the GPU": (
        both(asked("third", isolation="gpu", tenant="third")),
        "beside tenant ''",
    ),
    "another tenant on the host": (asked("pair", isolation="node"), "(node) beside tenant ''"),
    "two of a spread group on a host": (put("apart", 1, host=0, gpus=(1,)), "of spread 'apart'"),
    "more hosts than there are": (put("apart", 1, host=2), "host 2 of 2 host"),
    "an item left out": (asked("small", count=3), "neither placed nor refused"),
    "an item too many": (asked("small", growth=0), "was not asked for"),
    "an item twice": (lambda p, r: (p, replace(r, placed=(*r.placed, r.placed[0]))), "2 times"),
    "placed and refused": (
        lambda p, r: (p, replace(r, refused=(replace(r.refused[0], request="third"),))),
        "2 times",
    ),
    "a wrong cost": (answer(cost=1_999_999), "the hosts cost 2000000"),
    "wrong hosts": (answer(hosts=(("host", 1),)), "used are {'host': 2}"),
    "a bound above the cost": (answer(bound=2_000_001), "above the cost"),
    "a bound of more hosts": (answer(bound_hosts=3), "bound of 3 hosts"),
    "a move that is not listed": (answer(moved=()), "moved and is not listed"),
    "a move that is none": (put("third", start=0), "listed as moved and stands"),
    "a move without a reason": (
        lambda p, r: (p, replace(r, moved=(replace(r.moved[0], why=""),))),
        "without a reason",
    ),
    "a move that ends elsewhere": (
        lambda p, r: (p, replace(r, moved=(replace(r.moved[0], after=PAIR),))),
        "not listed",
    ),
    "a refusal beside free room": (refuse_a_third, "third was refused, and host 0 has room"),
}


def test_a_right_answer_has_no_faults() -> None:
    assert faults(PROBLEM, RESULT) == []


@pytest.mark.parametrize("name", sorted(MISTAKES))
def test_a_mistake_is_found(name: str) -> None:
    change, said = MISTAKES[name]
    found = faults(*change(PROBLEM, RESULT))
    assert any(said in text for text in found), found


def test_growth_may_stand_beside_its_group_and_its_moves_are_nobodys() -> None:
    near = placed("apart", 2, 0, (1,), "2g", 0)
    without = [p for p in RESULT.placed if p.number < 2 or p.request != "small"]
    problem, result = asked("small", growth=0)(*asked("apart", growth=1)(PROBLEM, RESULT))
    problem = replace(problem, kept=(*problem.kept, replace(near, start=4)))
    assert faults(problem, replace(result, placed=(*without, near))) == []


def test_a_tenant_may_share_with_itself() -> None:
    problem, result = asked("pair", isolation="node", tenant="")(PROBLEM, RESULT)
    assert faults(problem, result) == []
