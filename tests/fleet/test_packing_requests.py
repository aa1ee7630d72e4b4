"""What is asked of the packer: lists of requests and manifests, and the options that serve them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpuplan.fleet.options import PartRequest, shares
from gpuplan.fleet.problem import GpuModel, Option
from gpuplan.fleet.requests.reading import read_wanted
from gpuplan.fleet.sized import Holding, Sizer
from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.hardware.offers import Site
from gpuplan.source import Origin, Place, Span
from gpuplan.units import GIB
from tests.fleet.test_pack_verb import EXAMPLES, FLEET, HEAD, built, problem_of, written
from tests.fleet.test_packing_core import FOUR, GB, SLICES
from tests.support.sizing_cases import CHAT_8B, site, wanted

MODEL = GpuModel(name="g", memory_bytes=40 * GB, modes=(FOUR, SLICES))


@pytest.mark.parametrize(
    ("name", "text", "span"),
    [
        ("a.json", '{"apiVersion": "gpuplan.dev/requests/v1", "name": NaN}', Span(1, 51, 1, 52)),
        ("a.json", '{"apiVersion": "gpuplan.dev/requests/v1",\n "name": ?}', Span(2, 10, 2, 11)),
        ("a.yaml", '"apiVersion": gpuplan.dev/requests/v1\n"', Span(2, 2, 2, 3)),
    ],
)
def test_what_is_wrong_in_a_text_is_shown_where_it_is(
    name: str, text: str, span: Span, tmp_path: Path
) -> None:
    first = built(written(tmp_path, text, name)).diagnostics[0]
    assert isinstance(first.origin, Place)
    assert first.origin.span == span


def test_an_empty_table_is_pointed_at_where_its_first_line_would_be(tmp_path: Path) -> None:
    found = read_wanted([written(tmp_path, "", "a.csv")])
    (problem,) = found.problems
    assert isinstance(problem.origin, Origin)
    assert found.sources.locate(problem.origin)[1] == Span(1, 1, 1, 2)


def options(memory_gb: float, **more: object) -> list[tuple[str | None, int]]:
    """The parts that serve a request, and the GPUs of those that are whole."""
    wanted = PartRequest(memory_bytes=round(memory_gb * GB), **more)  # type: ignore[arg-type]
    return [(o.part, o.gpus) for o in shares(MODEL, wanted, 4, 32 * GB, 1)]


def test_parts_and_gpus_serve_what_they_just_hold() -> None:
    assert options(10) == [("1g", 0), (None, 1)]
    assert options(10.1) == [("2g", 0), (None, 1)]
    assert options(20) == [("2g", 0), (None, 1)]
    assert options(20.1) == [(None, 1)], "an instance of the whole GPU is no part of it"
    assert options(40) == [(None, 1)]
    assert options(40.1) == []


def test_compute_and_engines_for_video_are_those_of_the_part() -> None:
    assert options(1, compute=0.25) == [("1g", 0), (None, 1)]
    assert options(1, compute=0.26) == [("2g", 0), (None, 1)]
    assert options(1, media=True) == [("1g+me", 0)]
    ways = ("time-slice",)
    assert options(1, ways=ways, compute=0.25) == [("quarter", 0), (None, 1)]
    assert options(1, ways=ways, compute=0.26) == [(None, 1)]
    assert options(1, compute=1.0) == [(None, 1)]


def test_an_option_has_what_was_asked_beside_the_gpu(tmp_path: Path) -> None:
    rows = (
        "name,gpus,gpu,cpu_cores,memory,virtual_functions,gpu_memory",
        "a,2,l40s,4,32 GiB,3,",
        "b,,l40s,5,33 GiB,,40 GB",
        "c,,h100-sxm-80gb,6,34 GiB,1,10 GB",
    )
    path = written(tmp_path, "\n".join(rows) + "\n", "a.csv")
    (pair,), (whole,), (part, one) = (r.options for r in problem_of(path).requests)
    assert pair == Option(gpu="l40s", gpus=2, cores=4, memory_bytes=32 * GIB, functions=3)
    assert whole == Option(gpu="l40s", gpus=1, cores=5, memory_bytes=33 * GIB)
    assert (part.mode, part.part, part.gpus, part.functions) == ("mig", "1g.10gb", 0, 1)
    assert (one.gpus, one.part, one.cores, one.memory_bytes) == (1, None, 6, 34 * GIB)


@pytest.mark.parametrize(("gpus", "served"), [(4, True), (5, False)])
def test_as_many_gpus_as_the_largest_host_has_are_served(
    tmp_path: Path, gpus: int, served: bool
) -> None:
    text = HEAD + f"- {{name: one, gpus: {gpus}, gpu: [l40s], cpu_cores: 4, memory: 1 GiB}}\n"
    fleet = built(written(tmp_path, text))
    told = [d.message for d in fleet.diagnostics]
    assert (
        told == []
        if served
        else told == [f"no GPU of the fleet serves 'one': {gpus} GPUs of one host"]
    )


def test_what_nothing_serves_says_all_that_was_wanted(tmp_path: Path) -> None:
    one = (
        "- {name: one, gpu_memory: 64 GiB, compute: 0.9, media: true, cpu_cores: 1, memory: 1 GB}\n"
    )
    (problem,) = built(written(tmp_path, HEAD + one)).diagnostics
    assert problem.message == (
        "no GPU of the fleet serves 'one': 64 GiB of GPU memory with 90% of the compute units and "
        "an engine for video"
    )


ABSENT, FEW = "no host of the fleet has a 'v100'", "5 GPUs of one host"


@pytest.mark.parametrize(
    ("gpus", "told"),
    [
        ("[v100]", [(ABSENT, ("gpu", 0))]),
        ("[l40s, v100]", [(ABSENT, ("gpu", 1)), (FEW, ("gpus",))]),
        ("[l40s]", [(FEW, ("gpus",))]),
    ],
)
def test_types_that_no_host_has_are_told_beside_what_the_others_lack(
    tmp_path: Path, gpus: str, told: list[tuple[str, tuple[str | int, ...]]]
) -> None:
    one = f"- {{name: one, gpus: 5, gpu: {gpus}, cpu_cores: 1, memory: 1 GB}}\n"
    found = built(written(tmp_path, HEAD + one)).diagnostics
    places = [d.origin.path[2:] for d in found if isinstance(d.origin, Origin)]
    said = [d.message.rpartition("'one': ")[2] for d in found]
    assert list(zip(said, places, strict=True)) == told


# --- manifests on hosts that are bought ----------------------------------------------------------

SMALL = """\
apiVersion: gpuplan.dev/inventory/v1
name: small
hosts:
- names: [a, b, c, d, e, f]
  gpus: [{type: a10, count: 1}]
  cpu_cores: 64
  memory: 512 GiB
  price: $4/hour
"""


def gpus_of(folder: Path, allowed: str, buy: tuple[str, ...], peak: int = 4) -> set[str]:
    """The GPU types that a chat service may stand on, beside the six hosts of an inventory."""
    inventory = written(folder, SMALL, "small.yaml")
    text = (EXAMPLES / "chat.yaml").read_text(encoding="utf-8")
    text = text.replace("  gpus: [l4, a10, l40s]\n", allowed).replace("peak: 4", f"peak: {peak}")
    text = text.replace("  budget: $5,000/month\n", "").replace("mean: 1.5", f"mean: {peak}")
    fleet = built(written(folder, text, "chat.yaml"), inventory=inventory, buy=buy)
    if fleet.problem is None:
        assert "GP010" in {d.rule for d in fleet.diagnostics}
        return set()
    (request,) = fleet.problem.requests
    return {option.gpu for option in request.options}


ANY = ""
BOTH = "  gpus: [a10, l40s]\n"


def test_a_manifest_stands_on_what_is_there_and_on_what_is_bought(tmp_path: Path) -> None:
    assert gpus_of(tmp_path, ANY, ()) == {"a10"}
    assert gpus_of(tmp_path, ANY, ("l40s",)) == {"l40s"}, "one, instead of five"
    assert gpus_of(tmp_path, BOTH, ("l40s",)) == {"l40s"}


def test_of_what_is_bought_a_manifest_takes_the_types_that_it_allows(tmp_path: Path) -> None:
    assert gpus_of(tmp_path, BOTH, ("l4",)) == {"a10"}
    assert gpus_of(tmp_path, "  gpus: [l40s]\n", ("l4", "l40s")) == {"l40s"}, "none is there"


def test_more_of_a_host_that_is_there_is_bought_without_limit(tmp_path: Path) -> None:
    assert gpus_of(tmp_path, ANY, (), peak=40) == set(), "six hosts are not enough"
    assert gpus_of(tmp_path, ANY, ("a",), peak=40) == {"a10"}


def test_growth_is_room_beside_the_items_and_never_less_than_none(tmp_path: Path) -> None:
    one = "- {name: one, gpus: 1, count: 4, cpu_cores: 4, memory: 32 GiB%s}\n"
    path = written(tmp_path, HEAD + one % "", "a.yaml")
    grown = written(tmp_path, HEAD + one % ", growth: 0.5", "b.yaml")
    assert [r.growth for r in problem_of(path).requests] == [0]
    assert [r.growth for r in problem_of(grown).requests] == [2]
    assert [r.growth for r in problem_of(path, inventory=FLEET, growth=0.25).requests] == [1]


# --- workloads of manifests ----------------------------------------------------------------------


def test_a_workload_may_stand_on_hosts_of_any_number_of_gpus_that_holds_it() -> None:
    where = site("l40s")
    (offer,) = where.gpus
    most = offer.gpus_per_node
    numbers = (most, 1, most * 2)
    alone = Sizer(where)(wanted(CHAT_8B))
    beside = Sizer(where, hosts={"l40s": frozenset(numbers), "a10": frozenset({3})})(
        wanted(CHAT_8B)
    )
    assert isinstance(alone, Holding)
    assert isinstance(beside, Holding)
    for before, after in zip(alone.ways, beside.ways, strict=True):
        assert {o.host_gpus for o in before.options} == {most}
        whole = [(o.gpus, o.host_gpus) for o in after.options if not o.part]
        assert {g for g, _ in whole} == {o.gpus for o in before.options if not o.part}
        for gpus in {g for g, _ in whole}:
            assert {h for g, h in whole if g == gpus} == {n for n in numbers if n >= gpus}


def held(demand: Demand, where: Site) -> Holding:
    holding = Sizer(where)(demand)
    assert isinstance(holding, Holding)
    return holding


def test_a_guest_needs_memory_beside_its_own() -> None:
    (pod,), (guest,) = (
        held(wanted(CHAT_8B), replace(site("l40s"), target=target)).ways[0].options
        for target in ("kubernetes", "libvirt")
    )
    assert guest == replace(pod, memory_bytes=pod.memory_bytes + GIB)


def test_of_gpus_that_do_on_some_day_those_that_need_most_today_say_how_many_run() -> None:
    """An H200 serves today's load alone, two H100 do, and two of either serve what it grows to."""
    rates = {f"load.requests_per_second.{part}": 23.0 for part in ("mean", "peak")}
    text = CHAT_8B + "    growth: {factor: 1.4, horizon: 365 d}\n"
    demand = wanted(text, numbers=rates)
    small, large = (held(demand, site(gpu)).ways[0] for gpu in ("h100-sxm-80gb", "h200-sxm-141gb"))
    assert [(way.replicas, way.growth) for way in (small, large)] == [(2, 0), (1, 1)]
    both = held(demand, site("h100-sxm-80gb", "h200-sxm-141gb"))
    (either,) = (way for way in both.ways if way.replicas + way.growth == 2)
    assert {o.gpu for o in either.options} == {"h100-sxm-80gb", "h200-sxm-141gb"}
    assert (either.replicas, either.growth) == (2, 0)


def test_of_what_a_manifest_allows_that_is_sized_which_is_there_or_bought(tmp_path: Path) -> None:
    """The fleet has one type of three, and one of the others is bought."""
    text = (EXAMPLES / "assistant-70b.yaml").read_text(encoding="utf-8")
    there, bought, neither = "h100-sxm-80gb", "h200-sxm-141gb", "b200-sxm-180gb"

    def sized(*allowed: str, buy: tuple[str, ...] = ()) -> set[str]:
        gpus = f"  gpus: [{', '.join(allowed)}]\n  storage:"
        path = written(tmp_path, text.replace("  storage:", gpus), "either.yaml")
        return {o.gpu for r in problem_of(path, buy=buy).requests for o in r.options}

    assert sized(bought, neither, buy=(bought,)) == {bought}
    assert sized(there, neither) == {there}
