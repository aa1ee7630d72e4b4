"""How GPUs of a fleet are shared: vGPUs of mixed sizes, time slices, bridged GPUs."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpuplan.catalog.load import load_catalog
from gpuplan.cli.main import main
from gpuplan.fleet.build import Asked, Built, build
from gpuplan.fleet.problem import HostType, Problem, Result
from gpuplan.fleet.requests.reading import read_wanted
from gpuplan.fleet.solver import pack, run
from gpuplan.pipeline import compile_files
from tests.support.packing_check import faults

EXAMPLES = Path(__file__).parents[2] / "examples"
FLEET = "apiVersion: gpuplan.dev/inventory/v1\nname: fleet\nhosts:\n"
VDI = """\
- names: [vdi-01]
  node_type: vdi
  cpu_cores: 64
  memory: 512 GiB
  gpus: [{type: l40, count: 1}]
  hypervisor: {disk_path: /dev/vg0, bridge: br0}
  price: $5/hour
"""
MIXED = VDI.replace("br0}", "br0, vgpu_sizes: mixed}")
SHARED = """\
- names: [shared-01]
  node_type: shared
  cpu_cores: 64
  memory: 512 GiB
  gpus: [{type: l40s, count: 2}]
  time_slices: 4
  price: $3/hour
"""
REQUESTS = "apiVersion: gpuplan.dev/requests/v1\nname: r\nrequests:\n"
DESKS = """\
- {name: small, count: 3, gpu_memory: 5 GB, cpu_cores: 2, memory: 8 GiB, sharing: [vgpu]}
- {name: large, gpu_memory: 23 GB, cpu_cores: 2, memory: 8 GiB, sharing: [vgpu]}
"""
SLICES = """\
- {name: a, count: 3, gpu_memory: 11 GB, cpu_cores: 2, memory: 8 GiB, sharing: [time-slice],
   isolation: gpu, team: x}
- {name: b, count: 2, gpu_memory: 11 GB, cpu_cores: 2, memory: 8 GiB, sharing: [time-slice],
   isolation: gpu, team: y}
"""


EFFORT = run.ruin_work


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuplan.fleet.solver.run.ruin_work", lambda _: 10_000)


def fleet(folder: Path, hosts: str, requests: str) -> Built:
    inventory, wanted = folder / "fleet.yaml", folder / "requests.yaml"
    inventory.write_text(FLEET + hosts, encoding="utf-8")
    wanted.write_text(REQUESTS + requests, encoding="utf-8")
    return build(read_wanted([wanted]), Asked(inventory=inventory), load_catalog())


def packed(folder: Path, hosts: str, requests: str) -> tuple[Problem, Result]:
    found = fleet(folder, hosts, requests)
    assert found.problem is not None, found.diagnostics
    result = pack(found.problem)
    assert faults(found.problem, result) == []
    return found.problem, result


def said(folder: Path, hosts: str, requests: str) -> list[str]:
    return [d.message for d in fleet(folder, hosts, requests).diagnostics]


def test_sizes_are_mixed_only_where_the_inventory_says_so(tmp_path: Path) -> None:
    _, mixed = packed(tmp_path, MIXED, DESKS)
    assert len(mixed.placed) == 4, "three small ones and a large one share the GPU"
    assert {p.mode for p in mixed.placed} == {"vgpu-mixed"}
    legal = {"L40-6C": (0, 6, 12, 18, 24, 30, 36, 42), "L40-24C": (0, 24)}
    assert all(p.start in legal[p.part or ""] for p in mixed.placed)
    _, equal = packed(tmp_path, VDI, DESKS)
    assert {p.mode for p in equal.placed} == {"vgpu"}
    assert len({p.part for p in equal.placed}) == 1


def test_equal_vgpus_are_more_where_nothing_is_mixed(tmp_path: Path) -> None:
    """L40-4C: 12 of one size, 8 beside others."""
    request = DESKS.splitlines()[0].replace("5 GB", "4 GB").replace("count: 3", "count: 12")
    _, result = packed(tmp_path, MIXED, request + "\n")
    assert Counter((p.mode, p.part) for p in result.placed) == {("vgpu", "L40-4C"): 12}


def test_two_vgpus_share_a_gpu_that_holds_no_more_of_them(tmp_path: Path) -> None:
    """L40-24C: two of one size, and a third needs another GPU."""
    request = DESKS.splitlines()[1].replace("23 GB", "23 GB, count: 2")
    _, result = packed(tmp_path, VDI, request + "\n")
    assert Counter((p.mode, p.part) for p in result.placed) == {("vgpu", "L40-24C"): 2}
    _, short = packed(tmp_path, VDI, request.replace("count: 2", "count: 3") + "\n")
    assert [r.numbers for r in short.refused] == [(2,)]


def test_requests_in_braces_are_read_as_the_yaml_that_they_are(tmp_path: Path) -> None:
    text = "{apiVersion: gpuplan.dev/requests/v1, name: r, requests: [{name: a, gpu_memory: 5 GB,"
    path = tmp_path / "requests.yaml"
    path.write_text(f"{text} cpu_cores: 2, memory: 8 GiB}}]}}\n", encoding="utf-8")
    assert read_wanted([path]).problems == []
    path = tmp_path / "requests.json"
    path.write_text("[]\n", encoding="utf-8")
    assert "a mapping" in read_wanted([path]).problems[0].message


def test_no_compute_is_sure_among_mixed_sizes_but_that_of_one_of_the_most(tmp_path: Path) -> None:
    def modes(compute: str) -> set[str | None]:
        request = DESKS.splitlines()[1].replace("23 GB", f"23 GB, compute: {compute}")
        problem = fleet(tmp_path, MIXED, request + "\n").problem
        assert problem is not None
        return {o.mode for r in problem.requests for o in r.options}

    assert modes("12 %") == {"vgpu", "vgpu-mixed", None}
    assert modes("40 %") == {"vgpu", None}


def test_mixed_sizes_need_placements_that_a_source_lists(tmp_path: Path) -> None:
    t4 = MIXED.replace("l40,", "t4,")
    assert any("no source says where vGPUs of several sizes stand on 't4'" in m
               for m in said(tmp_path, t4, DESKS.replace("23 GB", "7 GB")))  # fmt: skip


def test_time_slices_are_of_one_team_and_an_equal_part_of_the_memory(tmp_path: Path) -> None:
    problem, result = packed(tmp_path, SHARED, SLICES)
    teams: dict[tuple[int, ...], set[str]] = {}
    for item in result.placed:
        assert item.part == "slice-of-4"
        teams.setdefault(item.gpus, set()).add(item.request)
    assert sorted(map(len, teams.values())) == [1, 1]
    (mode,) = next(g for g in problem.gpus if g.name == "l40s").modes
    (part,) = mode.parts
    assert part.maximum * part.memory_bytes <= problem.gpus[0].memory_bytes
    _, large = packed(tmp_path, SHARED, SLICES.splitlines()[0].replace("11 GB", "13 GB")
                      .replace("count: 3", "count: 1") + " isolation: gpu}\n")  # fmt: skip
    assert large.placed[0].mode is None, "more than a quarter of 46068 MiB is a whole GPU"


def test_time_slices_are_used_only_when_asked_for(tmp_path: Path) -> None:
    plain = SLICES.replace(" sharing: [time-slice],", "")
    _, result = packed(tmp_path, SHARED, plain)
    assert {p.mode for p in result.placed} == {None}


def test_time_slices_among_teams_are_refused(tmp_path: Path) -> None:
    request = SLICES.replace("   isolation: gpu, ", "   ")
    found = said(tmp_path, SHARED, request)
    assert any("'a' may be on a time slice" in m for m in found)
    assert any("'b' may be on a time slice" in m for m in found)


def test_hosts_that_share_a_gpu_in_different_ways_are_told(tmp_path: Path) -> None:
    other = SHARED.replace("shared-01", "shared-02").replace("time_slices: 4", "time_slices: 2")
    found = said(tmp_path, SHARED + other, SLICES)
    assert "not all hosts with 'l40s' offer the same time slices, so none is used" in found
    guests = MIXED.replace("  price", "  time_slices: 4\n  price")
    assert any("gives its GPUs to guests" in m for m in said(tmp_path, guests, DESKS))


BRIDGED = """\
- names: [pcie-01]
  cpu_cores: 64
  memory: 512 GiB
  gpus: [{type: h100-nvl-94gb, count: 4}]
  links: [{link: NV12, between: [gpu0, gpu2]}, {link: NV12, between: [gpu1, gpu3]}]
  price: $9/hour
"""
PAIRS = "- {name: pair, count: 2, gpus: 2, cpu_cores: 8, memory: 64 GiB}\n"


def host(found: Built) -> HostType:
    assert found.problem is not None, found.diagnostics
    return found.problem.hosts[0]


def test_workloads_on_several_gpus_take_those_that_a_bridge_joins(tmp_path: Path) -> None:
    _, result = packed(tmp_path, BRIDGED, PAIRS)
    assert {p.gpus for p in result.placed} == {(0, 2), (1, 3)}
    assert any("NVLink joins some of the GPUs" in m for m in said(tmp_path, BRIDGED, PAIRS))


@pytest.mark.parametrize(("gpus", "sets"), [(3, 4), (4, 1)])
def test_workloads_on_more_gpus_than_a_bridge_joins_still_stand(
    tmp_path: Path, gpus: int, sets: int
) -> None:
    request = PAIRS.replace("count: 2, gpus: 2", f"gpus: {gpus}")
    assert sum(len(s) == gpus for s in host(fleet(tmp_path, BRIDGED, request)).islands) == sets
    _, result = packed(tmp_path, BRIDGED, request)
    assert [len(p.gpus) for p in result.placed] == [gpus]


def test_sets_lie_on_the_fewest_numa_nodes(tmp_path: Path) -> None:
    nodes = """numa_nodes:
  - {cpus: "0-31", memory: 256 GiB}
  - {cpus: "32-63", memory: 256 GiB}
"""
    text = BRIDGED.replace("cpu_cores: 64\n  memory: 512 GiB\n", nodes).replace(
        "[{type: h100-nvl-94gb, count: 4}]",
        "[{type: h100-nvl-94gb, count: 4, numa_node: 0}, "
        "{type: h100-nvl-94gb, count: 4, numa_node: 1}]",
    )
    links = ", ".join(f"{{link: NV12, between: [gpu{n}, gpu{n + 1}]}}" for n in (0, 2, 4, 6))
    text = text[: text.index("  links")] + f"  links: [{links}]\n  price: $9/hour\n"
    islands = host(fleet(tmp_path, text, PAIRS)).islands
    assert [s for s in islands if len(s) == 4] == [(0, 1, 2, 3), (4, 5, 6, 7)]


def test_where_all_gpus_are_joined_any_will_do(tmp_path: Path) -> None:
    every = BRIDGED[: BRIDGED.index("  links")]
    every += "  links: [{link: NV18, between: [gpu0, gpu1, gpu2, gpu3]}]\n  price: $9/hour\n"
    assert host(fleet(tmp_path, every, PAIRS)).islands == ()
    assert said(tmp_path, every, PAIRS) == []


def test_what_did_not_fit_is_in_the_first_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path, BRIDGED, PAIRS.replace("count: 2", "count: 3"))
    wanted, there = str(tmp_path / "requests.yaml"), str(tmp_path / "fleet.yaml")
    assert main(["pack", wanted, "--inventory", there]) == 1
    said = capsys.readouterr().out
    assert said.startswith("2 of 3 items on 4 GPUs of 1 host, $9.00/h; no place for 1 item\n")
    assert (
        "1 × r/pair: needs 2 GPUs: none free on 4x-h100-nvl-94gb; enough: 1 more "
        "4x-h100-nvl-94gb ($9.00/h)" in " ".join(said.split())
    )


def test_a_gpu_that_nobody_sells_is_not_mistaken_for_a_typing_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet(tmp_path, BRIDGED, PAIRS)
    wanted, there = str(tmp_path / "requests.yaml"), str(tmp_path / "fleet.yaml")
    assert main(["pack", wanted, "--inventory", there, "--buy", "rtx-2080-ti"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "the catalogue has no node with it" in told
    assert "did you mean" not in told


def test_hosts_that_are_there_come_before_bought_ones_of_the_same_price(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = BRIDGED.replace("[pcie-01]", "[pcie-01, pcie-02]")
    fleet(tmp_path, there, PAIRS.replace("count: 2", "count: 5"))
    wanted, inventory = str(tmp_path / "requests.yaml"), str(tmp_path / "fleet.yaml")
    assert main(["pack", wanted, "--inventory", inventory, "--buy", "pcie-01"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "2 of 2 4x-h100-nvl-94gb ($18.00/h) · 1 4x-h100-nvl-94gb-new ($9.00/h)" in printed


IMPORTED = """\
- names: [cpu-01]
  cpu_cores: 16
  memory: 64 GiB
  gpus: []
- names: [vm-01]
  virtualization: kvm
  cpu_cores: 32
  memory: 256 GiB
  gpus: [{type: h100-nvl-94gb, count: 2}]
  links: [{link: NV12, between: [gpu0, gpu1]}]
  price: $9/hour
"""


def test_hosts_without_gpus_are_skipped_and_guests_are_told(tmp_path: Path) -> None:
    problem, result = packed(tmp_path, IMPORTED, PAIRS.replace("count: 2, ", ""))
    assert [k.names for k in problem.hosts] == [("vm-01",)]
    assert len(result.placed) == 1
    (told,) = said(tmp_path, IMPORTED, PAIRS)
    assert told.startswith("vm-01 is a guest itself (kvm)")
    (nothing,) = said(tmp_path, IMPORTED[: IMPORTED.index("- names: [vm")], PAIRS)
    assert nothing == "no host of fleet.yaml has a GPU"


def test_gpus_that_no_imported_text_names_are_told_as_such(tmp_path: Path) -> None:
    found = said(tmp_path, IMPORTED.replace("type: h100-nvl-94gb", "type: unknown"), PAIRS)
    assert found == ["the type of this GPU is not known"]


def test_links_count_the_gpus_of_an_entry_with_a_count(tmp_path: Path) -> None:
    found = said(tmp_path, BRIDGED.replace("gpu1, gpu3", "gpu1, gpu4"), PAIRS)
    assert found == ["a link of 'gpu4', but the host has 4 in 'gpus'"]


def test_a_bought_reference_node_has_cores_and_memory() -> None:
    manifest = EXAMPLES / "assistant-70b.yaml"
    asked = Asked(buy=("h100-sxm-80gb",))
    problem = build(read_wanted([manifest]), asked, load_catalog()).problem
    assert problem is not None
    assert pack(problem).refused == ()


@pytest.mark.parametrize(
    ("example", "several"), [("assistant-70b.yaml", True), ("finetune.yaml", False)]
)
def test_a_service_may_stand_in_each_of_its_layouts_and_a_run_in_one(
    example: str, *, several: bool
) -> None:
    asked = Asked(buy=("h100-sxm-80gb",))
    problem = build(read_wanted([EXAMPLES / example]), asked, load_catalog()).problem
    assert problem is not None
    assert [w.ways[0] for w in problem.ways] == ([problem.requests] if several else [])
    asked_of = [r for w in problem.ways for way in w.ways for r in way]
    assert all(r.spread is None for r in asked_of), "who wants no hosts apart has none"
    assert all(len(w.ways) > 1 for w in problem.ways)
    built = build(read_wanted([EXAMPLES / example]), replace(asked, spread=True), load_catalog())
    assert built.problem is not None
    assert all(r.spread for w in built.problem.ways for way in w.ways for r in way)
    counts = {r.name: r.count for r in built.problem.requests}
    placed = pack(built.problem).placed
    assert len(placed) == sum(r.count + r.growth for r in built.problem.requests)
    hosts = [(p.host_type, p.host) for p in placed if p.number < counts[p.request]]
    assert len({*hosts}) == len(hosts) == sum(counts.values()), "room for growth is not apart"


def test_shapes_are_bought_as_compile_buys_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without an inventory a manifest is packed on the nodes that it would be compiled to."""
    manifest = str(EXAMPLES / "chat.yaml")
    assert main(["pack", manifest, "--json"]) == 0
    packed = json.loads(capsys.readouterr().out)
    (compiled,) = compile_files([EXAMPLES / "chat.yaml"]).stacks
    (pool,) = compiled.plan.node_pools
    assert pool.usd_per_hour is not None
    assert packed["usd_per_hour"] == pytest.approx(float(pool.usd_per_hour), abs=1e-5)
    assert {h["type"] for h in packed["hosts"] if h["used"]} == {pool.node_type}


COUNTS = st.lists(st.tuples(st.sampled_from([1, 2, 3, 4, 6, 8]), st.integers(1, 3)), max_size=4)


@settings(max_examples=25)
@example(wanted=[(1, 1), (3, 1), (3, 3), (6, 2)])
@given(wanted=COUNTS)
def test_bought_shapes_cost_no_less_than_the_bound_and_no_more_than_one_alone(
    tmp_path_factory: pytest.TempPathFactory, wanted: list[tuple[int, int]]
) -> None:
    rows = [f"r{n},{count},{gpus},l4,2,16 GiB" for n, (gpus, count) in enumerate(wanted)]
    path = tmp_path_factory.mktemp("shapes") / "wanted.csv"
    path.write_text("\n".join(["name,count,gpus,gpu,cpu_cores,memory", *rows, ""]), "utf-8")
    problem = build(read_wanted([path]), Asked(buy=("l4",)), load_catalog()).problem
    if not wanted:
        assert problem is None
        return
    assert problem is not None
    assert len(problem.hosts) > 1
    result = pack(problem)
    assert result.refused == ()
    prices = {h.name: h.cost for h in problem.hosts}
    assert result.cost == sum(prices[name] * count for name, count in result.hosts)
    alone = [pack(replace(problem, hosts=(host,))) for host in problem.hosts]
    of_one = min(r.cost for r in alone if not r.refused)
    if result.cost > of_one:  # the little effort of these tests may not get there
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("gpuplan.fleet.solver.run.ruin_work", EFFORT)
            result = pack(problem)
    assert result.cost <= of_one
    least = min(h.cost / sum(len(n.gpus) for n in h.nodes) for h in problem.hosts)
    gpus = sum(gpus * count for gpus, count in wanted)
    assert result.bound <= result.cost
    assert gpus * least <= result.cost + 1


def platform(folder: Path, example: str, changed: str) -> Path:
    """An example on rack-7: eight H100 a host, of which the network cards are not described."""
    text = (EXAMPLES / example).read_text(encoding="utf-8")
    (folder / "inventories").mkdir(exist_ok=True)
    rack = (EXAMPLES / "inventories" / "rack-7.yaml").read_text(encoding="utf-8")
    (folder / "inventories" / "rack-7.yaml").write_text(rack, encoding="utf-8")
    path = folder / example
    text = text.replace("  provider: gcp\n  region: us-central1\n", "")
    path.write_text(text.replace("gpus: [h100-sxm-80gb, a100-sxm-80gb]", changed), encoding="utf-8")
    return path


@pytest.mark.parametrize("example", ["lab.yaml", "finetune.yaml", "assistant-70b.yaml"])
def test_a_manifest_takes_no_more_hosts_than_compile_plans(
    tmp_path: Path, example: str, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = "gpus: [h100-sxm-80gb]\n  inventory: inventories/rack-7.yaml"
    path = platform(tmp_path, example, changed)
    asked = Asked(inventory=tmp_path / "inventories" / "rack-7.yaml")
    problem = build(read_wanted([path]), asked, load_catalog()).problem
    assert problem is not None
    result = pack(problem)
    assert result.refused == ()
    assert main(["compile", str(path), "-o", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    (line,) = (words for words in map(str.split, printed.splitlines()) if words[:1] == ["nodes"])
    assert sum(n for _, n in result.hosts) <= int(line[1])
