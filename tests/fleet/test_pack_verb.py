"""`gpuplan pack`, end to end: files in, an answer or every problem out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gpuplan.catalog.load import load_catalog
from gpuplan.catalog.shapes import Wanted, shapes
from gpuplan.cli.main import main
from gpuplan.fleet.build import Asked, Built, build
from gpuplan.fleet.problem import Problem, Request
from gpuplan.fleet.requests.reading import read_wanted
from gpuplan.fleet.solver import pack
from gpuplan.plan.read import read_plan
from gpuplan.units import GIB
from tests.support.packing_check import faults
from tests.support.work import calls

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
FLEET = EXAMPLES / "inventories" / "fleet.yaml"
HYPERVISORS = EXAMPLES / "inventories" / "hypervisors.yaml"
TEAMS = EXAMPLES / "requests" / "teams.yaml"
HEAD = "apiVersion: gpuplan.dev/requests/v1\nname: plain\nrequests:\n"
ONE = "- {name: one, gpus: 1, cpu_cores: 4, memory: 32 GiB}\n"


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few steps of ruin and recreate: what is right does not depend on their number."""
    monkeypatch.setattr("gpuplan.fleet.solver.run.ruin_work", lambda _: 10_000)


def written(folder: Path, text: str, name: str = "plain.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def built(*paths: Path, inventory: Path | None = FLEET, **more: object) -> Built:
    asked = Asked(inventory=inventory, **more)  # type: ignore[arg-type]
    return build(read_wanted(paths), asked, load_catalog())


def problem_of(*paths: Path, inventory: Path | None = FLEET, **more: object) -> Problem:
    fleet = built(*paths, inventory=inventory, **more)
    assert fleet.problem is not None, fleet.diagnostics
    return fleet.problem


def requests_of(problem: Problem) -> dict[str, Request]:
    return {r.name: r for r in problem.requests}


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """What is said where the input is wrong."""
    assert main(["pack", *map(str, arguments)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err


def test_a_host_keeps_its_reserve_and_gives_the_rest() -> None:
    problem = problem_of(TEAMS)
    h100 = next(h for h in problem.hosts if h.name == "hgx-h100")
    assert [n.cores for n in h100.nodes] == [54, 54], "two cores of each node are the host's"
    kept = "a tenth is the node's, as pods are sized"
    assert [n.memory_bytes for n in h100.nodes] == [921 * GIB] * 2, kept
    assert [n.gpus for n in h100.nodes] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert [c.functions for n in h100.nodes for c in n.cards] == [16, 16]
    assert (h100.available, h100.cost, h100.names[3]) == (4, 23_600_000, "h100-04")
    undescribed = next(h for h in problem.hosts if h.gpu == "l40s")
    assert [n.cores for n in undescribed.nodes] == [62]


def test_gpus_are_cut_as_their_hosts_can() -> None:
    problem = problem_of(TEAMS)
    modes = {g.name: [m.name for m in g.modes] for g in problem.gpus}
    assert modes == {
        "a100-sxm-80gb": ["mig"],
        "a40": ["vgpu"],
        "h100-sxm-80gb": ["mig"],
        "l40s": [],
    }


def test_a_part_of_a_gpu_is_the_smallest_that_is_enough() -> None:
    options = requests_of(problem_of(TEAMS))["teams/embeddings"].options
    found = {(o.gpu, o.part) for o in options}
    assert ("h100-sxm-80gb", "1g.10gb") in found
    assert ("h100-sxm-80gb", "1g.20gb") not in found
    assert {p for g, p in found if g == "a40"} == {"A40-12C", "A40-16C", "A40-24C", None}
    assert {o.gpus for o in options} == {0, 1}, "a part or one whole GPU"


def test_partitions_of_a_board_are_islands_for_guests_only() -> None:
    (board, _) = problem_of(TEAMS, inventory=HYPERVISORS).hosts
    assert (0, 2) in board.islands
    assert (0, 1) not in board.islands, "Hopper's pairs are crossed"
    assert not any(h.islands for h in problem_of(TEAMS).hosts)


def test_gpus_of_one_iommu_group_go_together(tmp_path: Path) -> None:
    text = HYPERVISORS.read_text(encoding="utf-8").replace("iommu_group: 42", "iommu_group: 43")
    (_, host) = problem_of(TEAMS, inventory=written(tmp_path, text, "own.yaml")).hosts
    assert host.together == ((2, 3),)


def test_a_workload_is_sized_as_compile_does(tmp_path: Path) -> None:
    wanted = requests_of(problem_of(EXAMPLES / "assistant-70b.yaml", EXAMPLES / "finetune.yaml"))
    assistant = wanted["assistant-70b/assistant"]
    (planned,) = read_plan(EXAMPLES.parent / "stacks/assistant-70b").workloads
    gpus = planned.gpu_count // planned.replicas
    assert assistant.count + assistant.growth == planned.replicas, "at the horizon"
    assert [(o.gpu, o.gpus) for o in assistant.options] == [("h100-sxm-80gb", gpus)]
    assert [o.cores / o.gpus for o in assistant.options] == [6]
    parts = wanted["finetune/full-8b/0"]
    assert (parts.count, parts.spread) == (2, "finetune/full-8b/0"), "each on its own host"
    assert [(o.gpus, o.functions) for o in parts.options] == [(8, 8)]


def test_replicas_of_today_are_counted_and_room_is_kept_for_those_of_the_horizon(
    tmp_path: Path,
) -> None:
    """As many as the same load asks for without growth: today's, and three times as much."""
    text = (EXAMPLES / "assistant-70b.yaml").read_text(encoding="utf-8")
    growth, rate = "  growth: {factor: 1.3, horizon: 365 d}\n", "{mean: 3, peak: 7}"
    still = text.replace(growth, "  overrides: {tensor_parallel_size: 4}\n")
    still = still.replace(rate, "{mean: 6, peak: 14}")
    three = still.replace("{mean: 6, peak: 14}", "{mean: 18, peak: 42}")
    later = still + growth.replace("1.3", "3")
    grown, today, then = (
        requests_of(problem_of(written(tmp_path, each)))["assistant-70b/assistant"]
        for each in (later, still, three)
    )
    assert (today.growth, then.growth) == (0, 0)
    assert 1 < today.count < then.count
    assert (grown.count, grown.count + grown.growth) == (today.count, then.count)


@pytest.mark.parametrize("hours", [24, 48, 96, 192])
def test_every_way_to_hold_a_workload_has_as_many_nodes_a_replica(
    tmp_path: Path, hours: int
) -> None:
    """Hosts have eight GPUs; on several, each item is one host's part of a replica."""
    text = (EXAMPLES / "finetune.yaml").read_text(encoding="utf-8")
    allowed = text.replace("a100-sxm-80gb]", "a100-sxm-80gb, l40s]")
    fleet = built(
        written(tmp_path, allowed.replace("finish_within: 1 d", f"finish_within: {hours} h"))
    )
    assert fleet.diagnostics == [], "no functions are counted of a workload on one host"
    assert fleet.problem is not None
    for request in fleet.problem.requests:
        several = request.spread is not None
        assert "l40s" not in {o.gpu for o in request.options}, "four to a host: on more of them"
        assert {o.gpus for o in request.options} <= ({8} if several else {1, 2, 4, 8})
        assert all((o.functions > 0) == several for o in request.options)
        assert [(o.gpu, o.part) for o in request.options] == list(
            dict.fromkeys((o.gpu, o.part) for o in request.options)
        ), "the smallest layout of each"


def test_what_is_bought_is_a_shape_at_its_price() -> None:
    fleet = built(TEAMS, buy=("h200-sxm-141gb",))
    (shape,) = shapes(load_catalog(), "h200-sxm-141gb", Wanted())
    assert fleet.problem is not None
    assert shape.price is not None
    assert shape.cpu_cores is not None
    kind = next(h for h in fleet.problem.hosts if h.name == shape.name)
    usd = shape.price.usd_per_hour * 8
    assert kind.cost == usd * 1_000_000
    assert [n.gpus for n in kind.nodes] == [tuple(range(8))]
    assert [n.cores for n in kind.nodes] == [shape.cpu_cores - 2], "two cores are the host's"
    (bought,) = fleet.diagnostics
    assert f"as {shape.name} ({shape.rented}) at ${usd:.2f}/h" in bought.message


def test_equal_workloads_are_sized_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from gpuplan.fleet import sized

    searched = []
    original = sized.search
    monkeypatch.setattr(sized, "search", lambda d, s: searched.append(d.name) or original(d, s))
    text = (EXAMPLES / "images.yaml").read_text(encoding="utf-8")
    block = text[text.index("- name: painter") :]
    more = block.replace("painter", "second").replace("team: shop", "team: other")
    wanted = requests_of(problem_of(written(tmp_path, text + more, "images.yaml")))
    assert searched == ["painter"]
    assert wanted["images/second"].tenant == "other"
    assert wanted["images/second"].options == wanted["images/painter"].options


def test_growth_is_the_larger_of_the_requests_own_and_the_fleets() -> None:
    wanted = requests_of(problem_of(TEAMS, growth=0.1))
    assert wanted["teams/search"].growth == 2, "30 % of 6"
    assert wanted["teams/notebook"].growth == 2, "10 % of 20"


def test_hosts_are_bought_by_gpu_and_by_name() -> None:
    hosts = {h.name: h for h in problem_of(TEAMS, buy=("h200-sxm-141gb", "h100-02")).hosts}
    sold = shapes(load_catalog(), "h200-sxm-141gb", Wanted())
    priced = {s.name: s.price.usd_per_hour * s.gpus for s in sold if s.price}
    assert priced
    for name, usd in priced.items():
        assert (hosts[name].available, hosts[name].cost) == (None, round(usd * 1_000_000))
    more = hosts["hgx-h100-new"]
    assert (more.available, more.cost) == (None, hosts["hgx-h100"].cost)
    assert more.nodes == hosts["hgx-h100"].nodes


def test_json_csv_and_yaml_say_the_same(tmp_path: Path) -> None:
    row = {"name": "a", "count": 3, "gpu_memory": "9 GiB", "compute": 0.1, "gpu": ["l40s", "a40"]}
    row |= {"cpu_cores": 2, "memory": "16 GiB", "growth": "30 %", "team": "x"}
    tree = {"apiVersion": "gpuplan.dev/requests/v1", "name": "plain", "requests": [row]}
    lines = ("name,count,gpu_memory,compute,gpu,cpu_cores,memory,growth,team,spread",)
    lines += ("a,3,9 GiB,10 %,l40s a40,2,16 GiB,0.3,x,",)
    found = [
        problem_of(written(tmp_path, json.dumps(tree), "plain.json")),
        problem_of(written(tmp_path, "\n".join(lines) + "\n", "plain.csv")),
        problem_of(written(tmp_path, HEAD + f"- {json.dumps(row)}\n")),
    ]
    first, second, third = ([replace(r, origin=None) for r in p.requests] for p in found)
    assert first == second == third


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_ten_thousand_requests_are_read_at_once(tmp_path: Path, kind: str) -> None:
    row = {"gpu_memory": "9 GiB", "cpu_cores": 2, "memory": "16 GiB", "team": "x"}
    rows = [{"name": f"r{n}", **row} for n in range(10_000)]
    if kind == "json":
        tree = {"apiVersion": "gpuplan.dev/requests/v1", "name": "plain", "requests": rows}
        text = json.dumps(tree, indent=1)
    else:
        text = "\n".join([",".join(rows[0]), *(",".join(map(str, r.values())) for r in rows)])
    path = written(tmp_path, text, f"plain.{kind}")
    assert len(problem_of(path).requests) == 10_000
    assert calls(lambda: problem_of(path)) < 8_000_000


PROBLEMS = {
    "unknown field": ("gpus: 1", "gpuss: 1", "unknown field 'gpuss'", "did you mean 'gpus'?"),
    "no unit": ("32 GiB", "32", "'memory': a size needs a unit", ""),
    "too many GPUs": ("gpus: 1", "gpus: 9", "no GPU of the fleet serves 'one': 9 GPUs", ""),
    "no GPU": ("gpus: 1, ", "", "neither 'gpus' nor 'gpu_memory'", ""),
    "both": ("gpus: 1", "gpus: 1, gpu_memory: 4 GiB", "both whole GPUs and a part", ""),
    "a part only": ("gpus: 1", "gpus: 1, compute: 10 %", "'compute' is of a part of a GPU", ""),
    "another GPU": ("gpus: 1", "gpus: 1, gpu: [a10]", "no host of the fleet has a 'a10'", "a40"),
    "too large": ("gpus: 1", "gpu_memory: 2 TiB", "serves 'one': 2 TiB of GPU memory", ""),
}


@pytest.mark.parametrize("name", sorted(PROBLEMS))
def test_a_mistake_stands_with_its_line_and_a_caret(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right, wrong, message, hint = PROBLEMS[name]
    said = refused(
        capsys, written(tmp_path, HEAD + ONE.replace(right, wrong)), "--inventory", FLEET
    )
    assert message in said
    assert hint in said
    assert "plain.yaml:4:" in said
    assert "^" in said


def test_mistakes_in_json_and_csv_stand_with_their_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """{"apiVersion": "gpuplan.dev/requests/v1", "name": "plain", "requests": [
  {"name": "one", "gpus": 1, "cpu_cores": "4", "memory": "32 GiB"},
  {"name": "one", "gpus": 1, "cpu_cores": 4, "memory": "32 GiB"}]}
"""
    said = refused(capsys, written(tmp_path, text, "a.json"), "--inventory", FLEET)
    assert "a.json:2:43" in said
    text = text.replace('"4", "memory": "32 GiB"}', '4,\n    "memory": "32 GiB", "colour": 7}')
    said = refused(capsys, written(tmp_path, text, "a.json"), "--inventory", FLEET)
    assert "unknown field 'colour'" in said
    assert "a.json:3:25" in said
    rows = "name,gpus,cpu_cores,memory,colour\none,1,4,32 GiB,\ntwo,1,4,32,\none,1,4,32 GiB,\n"
    said = refused(capsys, written(tmp_path, rows, "b.csv"), "--inventory", FLEET)
    assert "b.csv:1:28" in said
    assert "unknown field 'colour'" in said
    rows = rows.replace(",colour", "").replace(",\n", "\n")
    said = refused(capsys, written(tmp_path, rows, "b.csv"), "--inventory", FLEET)
    assert "b.csv:3:9" in said
    rows = rows.replace("32\n", "32 GiB\n")
    said = refused(capsys, written(tmp_path, rows, "b.csv"), "--inventory", FLEET)
    assert "two requests are called 'one'" in said
    assert "b.csv:4:1" in said


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", '{"apiVersion": "gpuplan.dev/requests/v1", }', "not valid JSON"),
        ("a.json", '{"apiVersion": "gpuplan.dev/requests/v1", "name": NaN}', "no number of JSON"),
        (
            "a.json",
            '{"apiVersion": "gpuplan.dev/requests/v1",\n "name": "a", "name": "b"}',
            "GP002",
        ),
        ("a.csv", 'name,gpus\n"a,1\n', "not valid CSV"),
        ("a.csv", "name,gpus\na,1,2\n", "3 cells under 2 columns"),
        ("a.csv", "", "'requests' must not be empty"),
        ("a.yaml", HEAD + "- &a [*a]\n", "refers to itself"),
    ],
)
def test_broken_texts_are_problems(
    name: str, text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, written(tmp_path, text, name), "--inventory", FLEET)


def test_a_thousand_mistakes_are_not_a_thousand_messages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(ONE.replace("one", f"n{n}").replace("gpus: 1", "gpus: 0") for n in range(1000))
    said = refused(capsys, written(tmp_path, HEAD + rows), "--inventory", FLEET)
    assert "plain.yaml has 980 more problems" in said
    assert said.count("error[") < 30


def test_a_list_too_long_for_yaml_is_not_read_for_minutes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(ONE.replace("one", f"n{n}") for n in range(4000))
    path = written(tmp_path, HEAD + rows)
    assert "save it as JSON or as CSV" in refused(capsys, path, "--inventory", FLEET)
    assert calls(lambda: main(["pack", str(path), "--inventory", str(FLEET)])) < 300_000


@pytest.mark.parametrize(("values", "known"), [(40, True), (41, False)])
def test_as_many_values_as_yaml_takes_in_time_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: int, known: bool
) -> None:
    monkeypatch.setattr("gpuplan.fleet.requests.reading.MAXIMUM_NODES", 80)
    text = HEAD + ONE.replace("one", "a") + ONE.replace("one", "b")
    text += "# " + "- " * (values - text.count(": ") - text.count("- ")) + "\n"
    wanted = read_wanted([written(tmp_path, text)])
    assert [d.message for d in wanted.problems] == (
        [] if known else [f"plain.yaml has some {values} values, too many for YAML"]
    )


def test_problems_of_manifests_lists_and_inventory_are_told_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = written(tmp_path, "apiVersion: gpuplan.dev/v1\nname: x\n", "m.yaml")
    plain = written(tmp_path, HEAD + ONE.replace("gpus", "gpux"))
    fleet = written(tmp_path, FLEET.read_text(encoding="utf-8").replace("l40s,", "l41s,"), "f.yaml")
    said = refused(capsys, manifest, plain, "--inventory", fleet)
    assert "missing field 'platform'" in said
    assert "unknown field 'gpux'" in said
    assert "unknown GPU 'l41s'" in said


def test_an_inventory_that_contradicts_itself_is_a_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = FLEET.read_text(encoding="utf-8").replace("l40s-02", "l40s-01")
    said = refused(capsys, TEAMS, "--inventory", written(tmp_path, text, "f.yaml"))
    assert "two hosts are called 'l40s-01'" in said


def test_absent_facts_are_not_guessed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = FLEET.read_text(encoding="utf-8")
    said = refused(
        capsys, TEAMS, "--inventory",
        written(tmp_path, text.replace("  cpu_cores: 64\n", ""), "f.yaml"),
    )  # fmt: skip
    assert "'cpu_cores' is not stated" in said
    coarse = text.replace("count: 2, numa_node: 0", "count: 2")
    fleet = built(TEAMS, inventory=written(tmp_path, coarse, "g.yaml"))
    assert [d.rule for d in fleet.diagnostics] == ["GP071"]
    assert fleet.problem is not None
    assert len(next(h for h in fleet.problem.hosts if h.gpu == "a40").nodes) == 1


def test_what_cannot_be_bought_or_kept_is_a_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, TEAMS, "--inventory", FLEET, "--buy", "h200-sxm")
    assert "'h200-sxm' cannot be bought" in said
    assert "did you mean 'h200-sxm-141gb'?" in said
    kept = written(tmp_path, '{"placed": [{"request": "x"}]}', "kept.json")
    said = refused(capsys, TEAMS, "--inventory", FLEET, "--keep", kept)
    assert "is no answer of `gpuplan pack --json`" in said
    assert "there is no host to pack on" in refused(capsys, TEAMS)


def packed(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int = 0) -> str:
    assert main(["pack", *map(str, arguments), "--inventory", str(FLEET)]) == code
    return capsys.readouterr().out


def test_the_answer_comes_first_then_the_bound_then_each_gpu(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = packed(capsys, TEAMS).splitlines()
    assert said[0].startswith("54 of 54 items and room for 2 more on ")
    assert said[1].strip().startswith("proven least")
    layout = said[said.index("  layout") + 1 :]
    assert "GPU 0-7    whole teams/pretrain" in "\n".join(layout)
    assert not any("#" in line for line in layout), "items are folded"
    assert max(map(len, said)) <= 100
    every = packed(capsys, TEAMS, "--all")
    assert "teams/pretrain #0" in every


def test_every_item_of_the_examples_stands_rightly() -> None:
    problem = problem_of(TEAMS, EXAMPLES / "assistant-70b.yaml", EXAMPLES / "images.yaml")
    assert faults(problem, pack(problem)) == []


def test_every_guest_of_a_hypervisor_stands_rightly() -> None:
    files = (EXAMPLES / "notebooks.yaml", EXAMPLES / "passthrough.yaml")
    problem = problem_of(*files, inventory=HYPERVISORS)
    result = pack(problem)
    assert faults(problem, result) == []
    parts = {p.part for p in result.placed if p.request == "notebooks/notebook"}
    assert parts <= {p.name for g in problem.gpus for m in g.modes for p in m.parts} | {None}


def test_what_found_no_place_says_what_was_short(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = written(tmp_path, HEAD + ONE.replace("gpus: 1", "gpus: 8, count: 7"))
    said = packed(capsys, many, code=1)
    assert "no place for" in said
    assert "1 × plain/one: " in said
    tree = json.loads(packed(capsys, many, "--json", code=1))
    assert (tree["items"], tree["placed_items"]) == (7, 6)
    (refused,) = tree["refused"]
    assert refused["request"] == "plain/one"
    assert refused["resource"]


def test_json_has_the_same_bytes_again_and_no_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    first, again = (packed(capsys, TEAMS, "--json") for _ in range(2))
    assert first == again
    tree = json.loads(first)
    assert tree["gpus_used"] > 0
    assert tree["usd_per_hour"] >= tree["bound_usd_per_hour"] > 0
    assert "seconds" not in tree


def test_what_stands_is_kept_and_a_host_is_known_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = written(tmp_path, packed(capsys, TEAMS, "--json"), "now.json")
    again = json.loads(packed(capsys, TEAMS, "--json", "--keep", now, "--move-cost", "1000"))
    assert again["moved"] == []
    assert again["placed"] == json.loads(now.read_text(encoding="utf-8"))["placed"]
    names = "[h100-01, h100-02, h100-03, h100-04]"
    other = "[h100-04, h100-03, h100-02, h100-01]"
    turned = FLEET.read_text(encoding="utf-8").replace(names, other)
    problem = problem_of(TEAMS, inventory=written(tmp_path, turned, "fleet.yaml"), keep=now)
    hosts = {h.name: h for h in problem.hosts}
    before = {(p["request"], p["number"]): p["host_name"] for p in again["placed"]}
    after = {(p.request, p.number): hosts[p.host_type].names[p.host] for p in problem.kept}
    assert after == before


def test_a_rack_of_72_gpus_is_packed_to_its_last_part(tmp_path: Path) -> None:
    rack = """apiVersion: gpuplan.dev/inventory/v1
name: racks
hosts:
- names: [rack-1, rack-2]
  cpu_cores: 2592
  memory: 17 TiB
  gpus: [{type: gb200-186gb, count: 72}]
  price: $400/hour
"""
    part = "gpu_memory: 20 GiB, sharing: [mig], count: 1000, cpu_cores: 1, memory: 8 GiB"
    asked = written(tmp_path, HEAD + f"- {{name: part, {part}}}\n")
    problem = problem_of(asked, inventory=written(tmp_path, rack, "racks.yaml"))
    result = pack(problem)
    assert faults(problem, result) == []
    assert not result.refused
    assert max(gpu for placed in result.placed for gpu in placed.gpus) > 63


def test_more_items_than_are_packed_are_refused_before_they_are_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = HEAD + ONE.replace("gpus: 1", "gpus: 1, count: 1000000000")
    said = refused(capsys, written(tmp_path, text), "--inventory", FLEET)
    assert "1,000,000,000 items are to be packed, and 200,000 are at most" in said
    assert "plain.yaml:4" in said
    path = written(tmp_path, text)
    assert calls(lambda: main(["pack", str(path), "--inventory", str(FLEET)])) < 1_000_000


def test_a_header_of_thousands_of_unknown_columns_is_no_page_of_messages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = ",".join(f"column_{n}" for n in range(24_000))
    path = written(tmp_path, f"{columns}\n", "plain.csv")
    said = refused(capsys, path)
    assert "plain.csv has 23,980 more problems" in said
    assert said.count("error[GP003]") == 20
    assert calls(lambda: main(["pack", str(path)])) < 3_000_000


@pytest.mark.parametrize(("columns", "more"), [(20, False), (21, True)])
def test_twenty_unknown_columns_are_shown_and_the_others_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], columns: int, more: bool
) -> None:
    header = ",".join(f"column_{n}" for n in range(columns))
    said = refused(capsys, written(tmp_path, f"{header}\n", "plain.csv"))
    assert said.count("error[GP003]") == 20
    assert ("plain.csv has 1 more problem" in said) == more


ROW = {"request": "teams/x", "number": 0, "host_type": "hgx-h100", "host": 0, "gpus": [0]}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "not valid JSON: expecting value"),
        ("[" * 5_000, "is nested too deeply to be read"),
        ('{"placed": [{"number": ' + "9" * 5_000, "a number has more than 4,300 digits"),
        ("[]", "the document is no object"),
        ('{"placed": 7}', "placed: "),
        (json.dumps({"placed": [ROW, ROW | {"host": -1}]}), "placed[1].host: "),
        (json.dumps({"placed": [ROW | {"gpus": ["0", None]}]}), "placed[0].gpus[1]: "),
        (json.dumps({"placed": [ROW | {"mode": "magic"}]}), "placed[0].mode: "),
        (json.dumps({"placed": [ROW | {"number": 1e300}]}), "placed[0].number: "),
    ],
    ids=range(9),
)
def test_a_result_that_is_none_is_refused_by_its_first_fault(
    text: str, fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = written(tmp_path, text, "kept.json")
    said = " ".join(refused(capsys, TEAMS, "--inventory", FLEET, "--keep", kept).split())
    assert fault in said
    assert "kept.json:1:" in said or "too deeply" in fault, "where it stands"
    assert "GP073" in said or "GP001" in said
    assert len(said) < 600
