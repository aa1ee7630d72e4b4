"""What is read and bought does not hang on what stands before it: names, types, documents, rows."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import pytest

from gpuplan.catalog.load import load_catalog
from gpuplan.catalog.shapes import Wanted, rates_by_place
from gpuplan.fleet.buy import with_bought
from gpuplan.fleet.hosts import Hosts
from gpuplan.fleet.requests.reading import read_wanted
from gpuplan.source import Origin, Sources
from tests.fleet.test_pack_verb import HEAD, ONE, problem_of, written
from tests.fleet.test_packing_core import ask, host, whole
from tests.fleet.test_packing_facts import described

BAD = "apiVersion: gpuplan.dev/requests/v1\nname: {name}\nrequests:\n- {{name: x, gpus: 1}}\n"


def bought(fleet: Hosts, *names: str, where: Wanted = Wanted()) -> set[str]:  # noqa: B008
    return {t.gpu for t in with_bought(fleet, names, load_catalog(), where).types}


def test_all_that_is_named_is_bought_in_whichever_order() -> None:
    """A host of the inventory, its type, and a GPU of the catalogue."""
    fleet = described({"names": ["a"], "gpus": [{"type": "a40"}]}, {"names": ["b"]})
    (kind, other) = (t.gpu for t in fleet.types)
    for names in permutations(("a", "l40s", "b")):
        more = with_bought(fleet, names, load_catalog(), Wanted())
        new = [t for t in more.types if t.available is None]
        assert {t.gpu for t in new} == {kind, other, "l40s"}


def test_a_gpu_that_a_place_has_not_keeps_no_other_from_being_bought() -> None:
    catalog = load_catalog()
    gpus = ("l40s", "a10", "b200-sxm-180gb")
    rates = rates_by_place(catalog, gpus, Wanted())
    place, there = next((p, r) for p, r in sorted(rates.items()) if 0 < len(r) < len(gpus))
    for names in permutations(gpus):
        assert bought(Hosts(), *names, where=Wanted(place=place)) == set(there)


@pytest.mark.parametrize("gpus", ["[v100, l40s]", "[l40s, v100]"])
def test_a_type_that_no_host_has_keeps_no_other_from_serving(gpus: str, tmp_path: Path) -> None:
    one = f"- {{name: one, gpus: 1, gpu: {gpus}, cpu_cores: 1, memory: 1 GB}}\n"
    (request,) = problem_of(written(tmp_path, HEAD + one)).requests
    assert {option.gpu for option in request.options} == {"l40s"}


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_faults_of_all_documents_of_a_file_are_told(
    order: tuple[int, ...], tmp_path: Path
) -> None:
    """Two with values that are missing, and one that is right."""
    documents = (BAD.format(name="a"), BAD.format(name="b"), HEAD + ONE)
    text = "---\n".join(documents[n] for n in order)
    wanted = read_wanted([written(tmp_path, text)])
    told = [p.message for p in wanted.problems]
    assert told == ["missing field 'cpu_cores'", "missing field 'memory'"] * 2
    assert [each.requests.name for each in wanted.lists] == ["plain"]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_rows_without_meaning_and_rows_that_are_too_long_leave_the_others(
    order: tuple[int, ...], tmp_path: Path
) -> None:
    rows = (",,,", "one,1,4,32 GiB", "two,1,4,32 GiB,more")
    text = "\n".join(("", "name,gpus,cpu_cores,memory", *(rows[n] for n in order), ""))
    wanted = read_wanted([written(tmp_path, text, "plain.csv")])
    (told,) = wanted.problems
    assert "5 cells under 4 columns" in told.message
    assert told.origin.span.line == 3 + order.index(2)  # type: ignore[union-attr]


def test_what_stands_on_bought_hosts_stays_and_on_others_as_many_as_there_are(
    tmp_path: Path,
) -> None:
    from gpuplan.fleet.kept import read_kept

    hosts = (host("bought"), host("two", available=2), host("none", available=0))
    places = [(kind, n) for kind in ("bought", "two", "none", "gone") for n in (0, 1, 2, 70)]
    rows = [
        {"request": "a", "number": n, "host_type": kind, "host": number, "gpus": [0]}
        for n, (kind, number) in enumerate(places)
    ]
    rows.append({**rows[0], "request": "given up", "host": 3})
    path = written(tmp_path, json.dumps({"placed": rows}), "kept.json")
    kept, problems = read_kept(path, hosts, (ask("a", len(places), whole(1)),), Sources())
    assert problems == []
    assert [(p.host_type, p.host) for p in kept] == [
        *(("bought", n) for n in (0, 1, 2, 70)),
        ("two", 0),
        ("two", 1),
    ]


def test_what_stands_on_a_host_that_is_gone_keeps_nobody_else_from_staying(
    tmp_path: Path,
) -> None:
    from gpuplan.fleet.kept import read_kept

    problem = problem_of(written(tmp_path, HEAD + ONE.replace("gpus: 1", "gpus: 1, count: 3")))
    kind = next(k for k in problem.hosts if k.names)
    rows = [
        {"request": "plain/one", "number": n, "host_type": kind.name, "host": 0, "gpus": [n],
         "host_name": name}
        for n, name in ((0, kind.names[0]), (1, "gone"), (2, kind.names[0]), (3, kind.names[0]))
    ]  # fmt: skip
    for order in permutations(rows):  # the fourth of three is asked for no more
        path = written(tmp_path, json.dumps({"placed": order}), "kept.json")
        kept, problems = read_kept(path, problem.hosts, problem.requests, Sources())
        assert problems == []
        assert sorted(p.number for p in kept) == [0, 2]
    assert isinstance(problem.requests[0].origin, Origin)
