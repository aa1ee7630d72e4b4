"""What a refused item is told that it lacks: the amounts, on the host type that came nearest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.fleet.problem import HostType, Option, Request, Result
from tests.fleet.test_packing_core import GB, SEVEN, SLICES, ask, host, share, solved, whole

ONE = host(available=1)
FOUR = host(nodes=(4,), available=1)
PAIRS = ((0, 1), (2, 3))
Lack = tuple[str, str | None, float, float]
BOTH = (host("near", cores=8), host("far", cores=4))


def memory(gb: int) -> Option:
    return replace(whole(1), memory_bytes=gb * GB)


def lacks(result: Result) -> list[Lack]:
    rows = [(r.resource, r.host_type, r.requested, r.available) for r in result.refused]
    assert all(requested > available for _, _, requested, available in rows)
    return rows


NEVER: dict[str, tuple[HostType | tuple[HostType, ...], Request, Lack]] = {
    "cores": (BOTH, ask("a", 1, whole(1, cores=9)), ("cpu_cores", "near", 9, 8)),
    "cores, listed last": (BOTH[::-1], ask("a", 1, whole(1, cores=9)), ("cpu_cores", "near", 9, 8)),
    "cores of a part": (BOTH, ask("a", 1, share("1g", cores=9)), ("cpu_cores", "near", 9, 8)),
    "cores of a part, on a node of several GPUs": (
        host(nodes=(4,), cores=8), ask("a", 1, share("1g", cores=9)), ("cpu_cores", "h", 9, 8)
    ),
    "memory": (host(), ask("a", 1, memory(600)), ("host_memory", "h", 600 * GB, 512 * GB)),
    "the scarcer of two": (
        host(cores=9), ask("a", 1, replace(memory(5120), cores=10)),
        ("host_memory", "h", 5120 * GB, 512 * GB),
    ),
    "functions": (
        host(functions=2), ask("a", 1, whole(1, vf=3)), ("virtual_functions", "h", 3, 2)
    ),
    "a node's part": (
        host(nodes=(2, 2), cores=8), ask("a", 1, whole(4, cores=17)), ("cpu_cores", "h", 9, 8)
    ),
    "a node's part of an uneven set": (
        host(nodes=(3, 1), cores=8), ask("a", 1, whole(4, cores=16)), ("cpu_cores", "h", 12, 8)
    ),
    "GPUs": (host(nodes=(2,)), ask("a", 1, whole(3)), ("gpus", "h", 3, 2)),
    "GPUs of all nodes": (host(nodes=(1, 1)), ask("a", 1, whole(3)), ("gpus", "h", 3, 2)),
    "an island": (host(nodes=(4,), islands=PAIRS), ask("a", 1, whole(3)), ("gpus", "h", 3, 2)),
    "whole groups": (host(nodes=(4,), together=PAIRS), ask("a", 1, whole(3)), ("gpus", "h", 3, 2)),
    "a GPU alone": (host(nodes=(4,), together=PAIRS), ask("a", 1, whole(1)), ("gpus", "h", 1, 0)),
    "the most GPUs of all": (
        (host("two", nodes=(2,)), host("three", nodes=(3,)), host("one")),
        ask("a", 1, whole(4)), ("gpus", "three", 4, 3),
    ),
    "hosts": (host(available=0), ask("a", 1, whole(1)), ("hosts", "h", 1, 0)),
    "a type of GPU": (host(), ask("a", 1, whole(3, gpu="big")), ("gpus", None, 3, 0)),
    "a type of GPU for a part": (
        host(), ask("a", 1, share("1g", gpu="big")), ("gpus", None, 1, 0)
    ),
    "a part that no mode has": (host(), ask("a", 1, share("9g")), ("gpu_partitions", "h", 1, 0)),
    "the nearer of two ways": (
        host(cores=8), ask("a", 1, whole(2), whole(1, cores=9)), ("cpu_cores", "h", 9, 8)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NEVER)
def test_what_fits_no_host_is_told_what_the_nearest_has(name: str) -> None:
    kinds, request, lack = NEVER[name]
    assert lacks(solved(kinds, request)) == [lack]


FULL: dict[str, tuple[HostType | tuple[HostType, ...], tuple[Request, ...], Lack]] = {
    "GPUs": (FOUR, (ask("a", 1, whole(3)), ask("b", 1, whole(2))), ("gpus", "h", 2, 1)),
    "GPUs of a node": (
        host(nodes=(3, 3), available=1), (ask("a", 3, whole(2)),), ("gpus", "h", 2, 1)
    ),
    "GPUs of the type that has the larger part of what is wanted": (
        (host(nodes=(4,), available=1), host("two", "big", nodes=(2,), available=1)),
        (
            ask("a", 1, whole(3)), ask("b", 1, whole(1, gpu="big")),
            ask("c", 1, whole(4), whole(2, gpu="big"), priority=0),
        ),
        ("gpus", "two", 2, 1),
    ),
    "GPUs of several nodes": (
        host(nodes=(1, 1), available=1),
        (ask("a", 1, whole(2)), ask("b", 1, whole(2))),
        ("gpus", "h", 2, 0),
    ),
    "cores": (
        host(nodes=(2,), cores=8, available=1),
        (ask("a", 1, whole(1, cores=6)), ask("b", 1, whole(1, cores=6))),
        ("cpu_cores", "h", 6, 2),
    ),
    "cores beside GPUs that are free, rather than GPUs of a host with half of them": (
        (
            host(nodes=(3,), cores=8, available=1),
            host("two", "big", nodes=(2,), available=1),
        ),
        (
            ask("a", 1, whole(1, cores=7)), ask("b", 1, whole(1, gpu="big")),
            ask("c", 1, whole(2, cores=6), whole(2, gpu="big"), priority=0),
        ),
        ("cpu_cores", "h", 6, 1),
    ),
    "cores of the node with most": (
        host(nodes=(2, 2), cores=8, available=1),
        (
            ask("a", 1, whole(1, cores=6)), ask("b", 1, whole(1, cores=5)),
            ask("c", 1, whole(1, cores=4)),
        ),
        ("cpu_cores", "h", 5, 4),
    ),
    "memory": (
        host(nodes=(2,), available=1),
        (ask("a", 1, memory(300)), ask("b", 1, memory(300))),
        ("host_memory", "h", 300 * GB, 212 * GB),
    ),
    "functions": (
        host(functions=3, available=1), (ask("a", 2, share("1g", vf=2)),),
        ("virtual_functions", "h", 2, 1),
    ),
    "cores beside one on several nodes": (
        host(nodes=(2, 2), cores=8, available=1),
        (ask("a", 1, share("1g", cores=6)), ask("b", 1, whole(3, cores=12))),
        ("cpu_cores", "h", 6, 4),
    ),
    "parts": (ONE, (ask("a", 2, share("4g")),), ("gpu_partitions", "h", 1, 0)),
    "parts of the mode": (
        ONE, (ask("a", 1, share("1g")), ask("b", 1, share("quarter", mode="slices"))),
        ("gpu_partitions", "h", 1, 0),
    ),
    "parts of one's own GPU": (
        ONE,
        (
            ask("a", 1, share("1g"), tenant="red", isolation="gpu"),
            ask("b", 1, share("1g"), tenant="blue"),
        ),
        ("gpu_partitions", "h", 1, 0),
    ),
    "a host of one's own": (
        ONE,
        (
            ask("a", 1, whole(1), tenant="red", isolation="node"),
            ask("b", 1, share("1g"), tenant="blue"),
        ),
        ("hosts", "h", 1, 0),
    ),
    "hosts for a group": (
        host(nodes=(4,), available=2), (ask("a", 3, whole(1), spread="s"),), ("hosts", "h", 3, 2)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FULL)
def test_what_finds_the_fleet_full_is_told_what_is_left_of_the_scarcest(name: str) -> None:
    kind, requests, lack = FULL[name]
    (told,) = lacks(solved(kind, *requests, modes=(SEVEN, SLICES)))
    assert told == lack


@pytest.mark.parametrize("cores", [(6, 5, 4), (4, 5, 6), (5, 6, 4)])
def test_of_several_hosts_the_one_with_most_left_is_told(cores: tuple[int, ...]) -> None:
    """Two of three workloads have a host of eight cores each, and no two have room on one."""
    sizes = {f"r{n}": wanted for n, wanted in enumerate(cores)}
    asked = [ask(name, 1, whole(1, cores=wanted)) for name, wanted in sizes.items()]
    result = solved(host(nodes=(2,), cores=8, available=2), *asked)
    most = max(8 - sizes[p.request] for p in result.placed)
    (refused,) = result.refused
    assert lacks(result) == [("cpu_cores", "h", sizes[refused.request], most)]


@pytest.mark.parametrize("part", [whole(1, cores=6), share("1g", cores=6)])
def test_more_of_a_host_is_enough_for_its_team_alone(part: Option) -> None:
    """Four cores more on a host that red has alone are a place for red, and none for blue."""
    red = ask("red", 2, part, tenant="red", isolation="node", priority=2)
    blue = ask("blue", 1, part, tenant="blue")
    told = solved(host(nodes=(2,), cores=8, available=1), red, blue).refused
    enough = {r.request: [(e.resource, e.amount) for e in r.enough] for r in told}
    assert enough == {"red": [("hosts", 1), ("cpu_cores", 4)], "blue": [("hosts", 1)]}
