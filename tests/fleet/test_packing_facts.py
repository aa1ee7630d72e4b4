"""What the packer takes from inventories and lists, and what it says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from gpuplan.catalog.load import load_catalog
from gpuplan.diagnostics import Diagnostic
from gpuplan.fleet import messages
from gpuplan.fleet.host_sharing import uneven
from gpuplan.fleet.hosts import Hosts, hosts, merged, named
from gpuplan.fleet.owned import own_first
from gpuplan.fleet.problem import (
    Addition,
    HostType,
    Moved,
    NumaCapacity,
    Placed,
    Preemption,
    Problem,
    Refused,
    Result,
)
from gpuplan.fleet.requests.csvtext import read_csv
from gpuplan.fleet.requests.lower import grown
from gpuplan.inventory.v1 import Inventory
from gpuplan.sharing.modes import HostSharing
from gpuplan.source import Origin
from gpuplan.units import GIB

HOST: dict[str, Any] = {
    "names": ["a"],
    "gpus": [{"type": "l40s", "count": 2}],
    "cpu_cores": 64,
    "memory": "512 GiB",
    "price": "$4/hour",
}
AT = Origin("fleet.yaml", ("hosts", 0))


def described(*changes: dict[str, Any]) -> Hosts:
    specs = [{k: v for k, v in (HOST | c).items() if v is not None} for c in changes]
    tree = {"apiVersion": "gpuplan.dev/inventory/v1", "name": "fleet", "hosts": specs}
    return hosts(Inventory.model_validate(tree), "fleet.yaml", load_catalog())


def said(problems: Sequence[Diagnostic]) -> list[str]:
    return [d.message for d in problems]


def kind(name: str = "k", cost: int = 1, available: int | None = 1, gpus: int = 1) -> HostType:
    node = NumaCapacity(gpus=tuple(range(gpus)), cores=8, memory_bytes=8, cards=())
    names = tuple(f"{name}{n}" for n in range(available or 0))
    return HostType(
        name=name, gpu="l40s", nodes=(node,), cost=cost, available=available, names=names
    )


@pytest.mark.parametrize(
    ("first", "second", "total"),
    [(2, 3, 5), (0, 3, 3), (2, 0, 2), (None, 3, None), (2, None, None)],
)
def test_hosts_that_differ_in_nothing_are_counted_together(
    first: int | None, second: int | None, total: int | None
) -> None:
    (both,) = merged([kind(available=first), kind(available=second)])
    assert both.available == total
    assert len(both.names) == (first or 0) + (second or 0)


def test_hosts_that_differ_have_names_of_their_own() -> None:
    kinds = merged([kind(), kind(cost=2), kind(gpus=2), kind()])
    assert [k.available for k in kinds] == [2, 1, 1]
    assert [k.name for k in named(kinds)] == ["k", "k-2", "k-3"]


def test_a_host_without_nodes_is_one_node_with_all_it_has() -> None:
    fleet = described({})
    (one,) = fleet.types
    (node,) = one.nodes
    assert (one.name, one.cost, one.available, one.names) == ("2x-l40s", 4_000_000, 1, ("a",))
    assert (node.gpus, node.cards) == ((0, 1), ())
    assert (node.cores, node.memory_bytes) == (62, 460 * GIB), "the host keeps some"
    assert (fleet.problems, fleet.stand_ins) == ((), ())


@pytest.mark.parametrize("names", [["a"], ["a", "b"]])
def test_what_a_host_does_not_say_is_said_of_the_first_of_its_names(names: list[str]) -> None:
    shown = "a" if len(names) == 1 else "a…"
    guest = described({"names": names, "virtualization": "kvm"})
    assert said(guest.problems) == [
        f"{shown} is a guest itself (kvm): its NUMA nodes and links are what its host shows of them"
    ]
    (note,) = said([messages.partly_joined(names, AT)])
    assert f" of {shown}, not all: " in note


@pytest.mark.parametrize(("field", "rest"), [("cpu_cores", "memory"), ("memory", "cpu_cores")])
def test_cores_and_memory_have_to_be_stated(field: str, rest: str) -> None:
    fleet = described({field: None}, {"names": ["b"]})
    (problem,) = fleet.problems
    assert f"'{field}'" in problem.message
    assert f"'{rest}'" not in problem.message
    assert [t.names for t in fleet.types] == [("b",)], "the other host is packed on"


def test_a_host_without_a_price_costs_what_its_gpus_are_listed_at() -> None:
    listed = load_catalog().price("l40s")
    assert listed is not None
    fleet = described({"price": None, "gpus": [{"type": "l40s", "count": 3}]})
    assert fleet.stand_ins == ("l40s",)
    assert fleet.types[0].cost == round(listed.usd_per_hour * 3 * 1_000_000)


NODES = [{"cpus": "0-15", "memory": "256 GiB"}, {"cpus": "16-31", "memory": "256 GiB"}]


def on_nodes(*numbers: int | None, **more: Any) -> HostType:
    gpus = [{"type": "l40s"} | ({} if n is None else {"numa_node": n}) for n in numbers]
    spec = {"cpu_cores": None, "memory": None, "numa_nodes": NODES, "gpus": gpus} | more
    return described(spec).types[0]


def test_gpus_and_functions_are_on_the_nodes_that_are_stated() -> None:
    nics = [
        {"virtual_functions": 4, "numa_node": 1, "type": "x", "address": "0000:41:00.0"},
        {"numa_node": 0, "type": "x", "address": "0000:42:00.0"},
    ]
    first, second = on_nodes(0, 1, 1, nics=nics).nodes
    assert (first.gpus, second.gpus) == ((0,), (1, 2))
    assert (first.cards, [c.functions for c in second.cards]) == ((), [4])
    assert first.cores == second.cores < 16


def test_where_the_node_of_a_gpu_is_not_stated_the_host_is_one_node() -> None:
    (node,) = on_nodes(0, None).nodes
    assert node.gpus == (0, 1)
    apart = on_nodes(0, 1).nodes
    assert node.cores >= sum(n.cores for n in apart)
    assert node.memory_bytes >= sum(n.memory_bytes for n in apart)


def test_ways_of_sharing_that_not_all_hosts_have_are_named() -> None:
    slices, none, guests = HostSharing(slices=4), HostSharing(), HostSharing(virtual=True)
    mixed = HostSharing(virtual=True, mixed=True)

    def lost(*ways: HostSharing) -> list[str]:
        return said(list(uneven([("l40s", way, AT) for way in ways])))

    def text(*words: str) -> str:
        return f"not all hosts with 'l40s' offer the same {' and '.join(words)}, so none is used"

    assert lost(slices, slices) == lost(guests, guests) == lost(none) == []
    assert lost(slices, none) == [text("time slices")]
    assert lost(guests, none) == [text("vGPUs")]
    assert lost(mixed, guests) == [text("vGPUs of mixed sizes")]
    assert lost(mixed, none) == [text("vGPUs", "vGPUs of mixed sizes")]
    assert list(uneven([("l40s", slices, AT), ("a40", none, AT)])) == []
    (listed,) = uneven([("l40s", slices, AT), ("l40s", none, None)])
    (bought,) = uneven([("l40s", slices, None), ("l40s", none, AT)])
    assert (listed.origin, bought.origin) == (AT.child("names"), None)


@pytest.mark.parametrize(
    ("count", "part", "further"),
    [
        (30, 0.1, 3),
        (31, 0.1, 4),
        (7, 0.0, 0),
        (1, 0.5, 1),
        (3, 1.0, 3),
        (1, 4e-6, 1),
        (1, 1e-6, 1),
        (1, 4e-7, 0),
    ],
)
def test_room_for_growth_is_rounded_up_but_for_the_noise_of_floats(
    count: int, part: float, further: int
) -> None:
    assert grown(count, part) == further


# --- lists in CSV --------------------------------------------------------------------------------

ROWS = (
    "name,gpus,gpu,cpu_cores,memory,media",
    "one,1,l40s;a40,4,32 GiB,true",
    "",
    "second-one,2,,16,1 TiB,FALSE",
    "3,x,a10 l4,,8 GiB,maybe",
)


def test_a_cell_is_underlined_from_its_first_character_to_its_last() -> None:
    document, problems = read_csv("a.csv", "\n".join(ROWS) + "\n", "a.csv")
    assert problems == []
    columns = ROWS[0].split(",")
    for number, line in enumerate((2, 4, 5)):
        for field, cell in zip(columns, ROWS[line - 1].split(","), strict=True):
            span = document.span(Origin("a.csv", ("requests", number, field)))
            assert span is not None
            assert (span.line, span.end_line) == (line, line)
            under = ROWS[line - 1][span.column - 1 : span.end_column - 1]
            assert under == cell or (not cell and span.end_column == span.column + 1)
        whole = document.span(Origin("a.csv", ("requests", number)))
        assert whole is not None
        assert (whole.column, whole.end_column) == (1, len(ROWS[line - 1]) + 1)
    for elsewhere in ((), ("name",), ("requests",), ("requests", "gpus")):
        span = document.span(Origin("a.csv", elsewhere))
        assert span is not None
        assert (span.line, span.column, span.end_column) == (1, 1, len(ROWS[0]) + 1)


def test_cells_are_read_by_what_their_column_holds() -> None:
    document, _ = read_csv("a.csv", "\n".join(ROWS), "Büro 7.csv")
    first, second, third = document.data["requests"]
    assert document.data["name"] == "b-ro-7"
    assert first == {
        "name": "one",
        "gpus": 1,
        "gpu": ["l40s", "a40"],
        "cpu_cores": 4,
        "memory": "32 GiB",
        "media": True,
    }
    assert second == {
        "name": "second-one",
        "gpus": 2,
        "cpu_cores": 16,
        "memory": "1 TiB",
        "media": False,
    }
    assert third == {"name": "3", "gpus": "x", "gpu": ["a10", "l4"]} | {
        "memory": "8 GiB",
        "media": "maybe",
    }


@pytest.mark.parametrize(
    ("path", "name"),
    [("teams.csv", "teams"), ("7.csv", "requests-7"), ("-.csv", "requests"), ("x" * 50, "x" * 40)],
)
def test_a_list_is_called_as_its_file(path: str, name: str) -> None:
    assert read_csv("a", ROWS[0], path)[0].data["name"] == name


def test_a_row_that_is_quoted_is_underlined_as_a_whole_and_counts_its_lines() -> None:
    rows = 'name,team\n"a\nb",x\nc,y,z\n'
    document, (problem,) = read_csv("a.csv", rows, "a.csv")
    assert "3 cells under 2 columns" in problem.message
    assert problem.origin is not None
    assert (problem.origin.span.line, problem.origin.span.end_column) == (4, 2)
    span = document.span(Origin("a.csv", ("requests", 0, "team")))
    assert span is not None
    assert (span.line, span.column, span.end_column) == (2, 1, 3)


@pytest.mark.parametrize("row", ['"a",4,GiB', "a,4"], ids=["quoted", "short"])
def test_where_cells_cannot_be_told_the_row_is_underlined(row: str) -> None:
    document, _ = read_csv("a.csv", f"name,gpus,memory\n{row}\n", "a.csv")
    span = document.span(Origin("a.csv", ("requests", 0, "memory")))
    assert span is not None
    assert (span.line, span.column, span.end_column) == (2, 1, len(row) + 1)


# --- hosts that are there before bought ones -----------------------------------------------------


def test_hosts_that_are_there_are_used_before_equal_ones_that_are_bought() -> None:
    """Of three hosts two are there; one is in use, the other one goes first."""
    there, buy = kind("there", available=2), kind("buy", available=None)
    placed = tuple(
        Placed(request="r", number=n, host_type=t, host=h, gpus=(0,))
        for n, (t, h) in enumerate([("there", 0), ("buy", 0), ("buy", 1)])
    )
    result = Result(placed=placed, hosts=(("there", 1), ("buy", 2)), cost=3, bound=3, bound_hosts=3)
    fleet = Problem(gpus=(), hosts=(there, buy), requests=())
    swapped = own_first(fleet, result)
    assert dict(swapped.hosts) == {"there": 2, "buy": 1}
    assert [(p.host_type, p.host) for p in swapped.placed] == [
        ("there", 0),
        ("buy", 0),
        ("there", 1),
    ]
    assert own_first(fleet, swapped) == swapped


def test_all_that_names_a_bought_host_names_the_one_that_takes_its_place() -> None:
    there, buy = kind("there", available=1), kind("buy", available=None)
    bought = Placed(request="r", number=0, host_type="buy", host=0, gpus=(0,))
    own = replace(bought, host_type="there")
    lacking = Addition(host_type="buy", resource="cores", amount=1, unit="1", items=1, host=0)
    hosts_more = replace(lacking, resource="hosts", host=None)
    result = Result(
        placed=(bought,),
        refused=(
            Refused(
                request="s", numbers=(0,), resource="cores", host_type="buy", requested=2,
                available=1, unit="1", enough=(lacking, hosts_more),
            ),
        ),
        moved=(Moved(before=bought, after=bought, why="w"),),
        preemptions=(
            Preemption(
                placed=bought, stopped=(bought,),
                moved=(Moved(before=bought, after=bought, why="w"),),
            ),
        ),
        hosts=(("buy", 1),), cost=1, bound=1, bound_hosts=1,
    )  # fmt: skip
    swapped = own_first(Problem(gpus=(), hosts=(there, buy), requests=()), result)
    assert (swapped.placed, swapped.hosts) == ((own,), (("there", 1),))
    assert swapped.refused[0].enough == (replace(lacking, host_type="there"), hosts_more)
    assert swapped.moved == (Moved(before=bought, after=own, why="w"),), "where it was is no change"
    (proposal,) = swapped.preemptions
    assert (proposal.placed, proposal.stopped) == (own, (own,))
    assert proposal.moved == (Moved(before=own, after=own, why="w"),)
