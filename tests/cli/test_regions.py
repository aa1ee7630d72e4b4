"""One load in several regions: which are taken, what each carries, one budget, one comparison."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.main import main
from gpuplan.pipeline import Result, compile_files
from gpuplan.plan.model import Plan
from tests.cli.test_fields_matter import WORK

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/regions.yaml"
RUN = {
    "name": "tune",
    "task": "finetuning",
    "model": "Qwen/Qwen2.5-3B-Instruct",
    "precision": "bf16",
    "training": {"sequence_length": 2048, "global_batch": 32, "epochs": 1, "lora": {"rank": 8}},
    "dataset": {"name": "example-org/talk", "tokens": 1e7, "size": "60 MB"},
    "slo": {"finish_within": "3 d"},
}
SERVICE = WORK["serving"] | {
    "name": "assistant",
    "load": {
        "requests_per_second": {"mean": 6, "peak": 24},
        "input_tokens": 700,
        "output_tokens": 250,
    },
}
NAMES = ("europe-west4", "europe-west1", "europe-west2", "us-central1")
Change = Callable[[dict[str, Any]], object]


def manifest(*names: str, count: int | None = None, run: bool = False) -> dict[str, Any]:
    regions: dict[str, Any] = {
        "places": [{"region": n, "zones": [f"{n}-a", f"{n}-b"]} for n in names]
    }
    if count is not None:
        regions["count"] = count
    return {
        "apiVersion": "gpuplan.dev/v1",
        "name": "talk",
        "platform": {"target": "gke", "regions": regions, "gpus": ["l4"]},
        "workloads": [RUN, SERVICE] if run else [SERVICE],
    }


def compiled(tree: dict[str, Any], folder: Path) -> Result:
    path = folder / "talk.yaml"
    path.write_text(json.dumps(tree, indent=1))
    return compile_files([path])


def plans(tree: dict[str, Any], folder: Path) -> list[Plan]:
    result = compiled(tree, folder)
    assert result.stacks, result.problems
    return [stack.plan for stack in result.stacks]


def told(tree: dict[str, Any], folder: Path) -> str:
    """All messages, each with its place."""
    result = compiled(tree, folder)
    return "\n".join(f"{d.rule} {d.origin}: {d.message}" for d in result.problems)


def alone(region: str, share: float, folder: Path, *, run: bool) -> Plan:
    """The same load's part, in a manifest of one region."""
    tree = manifest("x", run=run)
    tree["platform"] |= {"region": region, "cluster": {"zones": [f"{region}-a", f"{region}-b"]}}
    del tree["platform"]["regions"]
    rate = {"mean": 24 * share / 4 / (1 + share), "peak": 24 * share}
    for work in tree["workloads"]:
        if work["name"] == "assistant":
            load = {**SERVICE["load"], "requests_per_second": rate}
            tree["workloads"] = [w for w in tree["workloads"] if w is not work]
            tree["workloads"].append({**work, "load": load})
    return plans(tree, folder)[0]


@pytest.mark.parametrize("count", [2, 3])
def test_each_region_carries_what_is_left_of_the_peak(count: int, tmp_path: Path) -> None:
    made = plans(manifest(*NAMES, count=count), tmp_path)
    assert len(made) == count
    for plan in made:
        served = next(m for m in plan.workloads[0].metrics if m.name == "requests_per_second")
        assert served.limit == pytest.approx(24 / (count - 1))
        assert served.estimate.value >= 24 / (count - 1)


@pytest.mark.parametrize("run", [False, True])
def test_the_choice_is_the_cheapest_of_all_choices(run: bool, tmp_path: Path) -> None:
    """Asked one by one, in manifests of one region."""
    found, names = {}, NAMES[:3]
    for count in (2, 3):
        share = 1 / (count - 1)
        part = {n: _month(alone(n, share, tmp_path, run=False)) for n in names}
        whole = {n: _month(alone(n, share, tmp_path, run=run)) for n in names}
        for taken in combinations(names, count):
            for home in taken:
                cost = whole[home] + sum(part[n] for n in taken if n != home)
                found[taken, home] = cost
    best = min(found.values())
    made = plans(manifest(*names, run=run), tmp_path)
    regions = made[0].regions
    assert regions is not None
    assert regions.usd_per_month is not None
    assert float(regions.usd_per_month) == pytest.approx(best, abs=0.01)
    assert sum(_month(p) for p in made) == pytest.approx(best, abs=0.01)
    homes = [m.region for m in regions.members if m.home]
    assert len(homes) == int(run)
    assert [p.region for p in made if any(w.name == "tune" for w in p.workloads)] == homes


def _month(plan: Plan) -> float:
    assert plan.cost.usd_per_month is not None
    return float(plan.cost.usd_per_month)


def test_limits_and_quotas_come_before_the_price(tmp_path: Path) -> None:
    tree = manifest(*NAMES, count=2)
    regions = tree["platform"]["regions"]
    regions |= {"latency": "60 ms", "residency": ["EU", "UK"]}
    for place, latency, law in zip(
        regions["places"],
        ("18 ms", "25 ms", "20 ms", "120 ms"),
        ("EU", "EU", "UK", "US"),
        strict=True,
    ):
        place |= {"latency": latency, "residency": law}
    regions["places"][0]["quotas"] = {"NVIDIA_L4_GPUS": 1}
    made = plans(tree, tmp_path)
    assert [p.region for p in made] == ["europe-west1", "europe-west2"]
    assert made[0].regions == made[1].regions
    assert made[0].regions is not None
    why = {r.target: r.why for r in made[0].regions.left_out}
    assert why["us-central1"] == "120 ms away, of 60 ms; data in US, and not in EU or UK"
    assert why["europe-west4"].startswith("with 2 regions it needs ")
    assert "GPUs of NVIDIA_L4_GPUS, of 1 granted" in why["europe-west4"]
    regions["places"][2]["residency"] = "CH"
    failed = told(tree, tmp_path)
    assert "fewer than 2 regions are left" in failed
    assert "europe-west2: data in CH, and not in EU or UK" in failed


def test_a_quota_that_nothing_counts_against_is_named_at_its_line(tmp_path: Path) -> None:
    tree = manifest(*NAMES[:2])
    tree["platform"]["regions"]["places"][1]["quotas"] = {"NVIDIA_L4_GPU": 100}
    assert (
        "GP014 talk.yaml:platform.regions.places[1].quotas.NVIDIA_L4_GPU: "
        "no plan here counts against a quota 'NVIDIA_L4_GPU'" in told(tree, tmp_path)
    )


def _places(tree: dict[str, Any]) -> Any:
    return tree["platform"]["regions"]["places"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t["platform"].update(region="us-east4"), "platform.region: 'region' is of one"),
        (
            lambda t: t["platform"].update(cluster={"zones": ["us-east4-a"]}),
            "platform.cluster.zones: 'zones' is of one region",
        ),
        (
            lambda t: _places(t)[1].update(region="europe-west4"),
            "[1].region: region 'europe-west4' is there",
        ),
        (
            lambda t: _places(t)[1].update(region="europe-west11"),
            "[1].region: no prices of gcp are known",
        ),
        (
            lambda t: t["platform"]["regions"].update(count=4),
            "count: 4 regions are to be taken of 2",
        ),
        (lambda t: t["platform"].update(target="kubernetes"), "target 'kubernetes' has no regions"),
        (lambda t: t.update(workloads=[RUN]), "no service has a load that several regions"),
        (
            lambda t: t.update(workloads=[RUN, {**SERVICE, "after": ["tune"]}]),
            "workloads[1].after[0]: 'assistant' is in every region",
        ),
        (lambda t: _places(t)[1].update(zones=["us-east4-a"]), "platform.regions.places[1].zones"),
        (lambda t: t.update(name="a" * 30), "name: the stack's name"),
    ],
)
def test_what_contradicts_itself_is_named_where_it_stands(
    change: Change, message: str, tmp_path: Path
) -> None:
    tree = manifest(*NAMES[:2])
    change(tree)
    result = compiled(tree, tmp_path)
    assert not result.stacks
    assert message in told(tree, tmp_path)


def test_workloads_stand_where_the_manifest_has_them(tmp_path: Path) -> None:
    """The region that is no home has the service alone, second in the manifest."""
    for plan in plans(manifest(*NAMES[:2], run=True), tmp_path):
        places = {w.name: w.origin.path for w in plan.workloads if w.origin}
        assert places["assistant"] == ("workloads", 1)
        assert places.get("tune", ("workloads", 0)) == ("workloads", 0)


def test_stacks_budget_and_comparison_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tree = manifest(*NAMES[:3], count=2, run=True)
    tree["platform"]["budget"] = "$300/month"
    Path("talk.yaml").write_text(json.dumps(tree, indent=1))
    assert main(["compile", "talk.yaml", "-o", "was", "--fail-on", "error"]) == 1
    shown = capsys.readouterr()
    assert "talk in 2 regions: " in shown.out
    flat = " ".join((shown.out + shown.err).split())
    assert flat.count("all regions of talk cost") == 1  # not once for each stack
    stacks = sorted(p.name for p in Path("was").iterdir())
    assert len(stacks) == 2
    assert all(s.startswith("talk-europe-west") for s in stacks)
    readme = Path("was", stacks[0], "README.md").read_text()
    assert "## Regions" in readme
    assert f"`../{stacks[1]}`" in readme
    assert main(["check", "was", "--json"]) == 1
    verdicts = json.loads(capsys.readouterr().out)["findings"]
    assert [v["rule"] for v in verdicts if v["rule"] == "GP204"] == ["GP204"]

    kept = [s.removeprefix("talk-") for s in stacks]
    other = next(n for n in NAMES[:3] if n not in kept)
    tree["platform"]["regions"]["places"] = [
        {"region": n, "zones": [f"{n}-a"]} for n in (kept[0], other)
    ]
    Path("talk.yaml").write_text(json.dumps(tree, indent=1))
    assert main(["compile", "talk.yaml", "-o", "now"]) == 0
    capsys.readouterr()
    assert main(["diff", "was", "now", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    (regions,) = data["regions"]
    assert regions["changed"]
    assert f"{other} joined; {kept[1]} left" in regions["summary"]
    assert {s["name"]: s["status"] for s in data["stacks"]} == {
        f"talk-{kept[0]}": "changed",
        f"talk-{kept[1]}": "removed",
        f"talk-{other}": "added",
    }
    for form in ("text", "markdown"):
        assert main(["diff", "was", "now", "--format", form]) == 0
        assert f"{other} joined" in " ".join(capsys.readouterr().out.split())
    assert main(["diff", "was", "was", "--exit-code"]) == 0


def test_a_stack_of_a_region_that_is_not_taken_any_more_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tree = manifest(*NAMES[:3], count=2)
    Path("talk.yaml").write_text(json.dumps(tree, indent=1))
    assert main(["compile", "talk.yaml"]) == 0
    first = next(iter(sorted(p.name for p in Path("stacks").iterdir())))
    for place in _places(tree):
        place["latency"] = "90 ms" if place["region"] == first.removeprefix("talk-") else "10 ms"
    tree["platform"]["regions"]["latency"] = "60 ms"
    Path("talk.yaml").write_text(json.dumps(tree, indent=1))
    capsys.readouterr()
    assert main(["compile", "talk.yaml"]) == 0
    shown = " ".join(capsys.readouterr().err.split())
    assert f"stack {first} is there, and 'talk' is not in its region any more" in shown
    assert Path("stacks", first).is_dir()


def test_the_example_compiles_and_compares(capsys: pytest.CaptureFixture[str]) -> None:
    result = compile_files([EXAMPLE])
    assert len(result.stacks) == 2, result.problems
    assert main(["compare", str(EXAMPLE), "--targets", "gke", "--horizon", "3mo", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert "2 regions" in [c["name"] for c in data["courses"]]
    assert main(["capacity", str(EXAMPLE), "--nodes", "4"]) == 2
    assert "this question is about one region" in capsys.readouterr().err


def test_explain_says_what_each_region_carries_and_why_others_do_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stack = ROOT / "stacks" / "regions-europe-west1"
    assert main(["explain", str(stack), "regions"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    month = r"at least \$([\d,]+)/month of a budget of \$10,000/month"
    west4 = r"europe-west4 at least \$([\d,]+) in the dearest month, 18 ms away, data in EU"
    west1 = r"europe-west1 \$([\d,]+) in the dearest month, 25 ms away, data in EU, this stack"
    total, first, second = (
        int(re.findall(words, said)[0].replace(",", "")) for words in (month, west4, west1)
    )
    assert abs(total - first - second) <= 1, "each of the three is rounded"
    assert "peak / (2 - 1), all of the peak, and for mean / 2" in said
    assert "is in europe-west4 alone" in said
    assert "europe-west2 data in UK, and not in EU" in said
    wanted = r"europe-west3 with 2 regions it needs (\d+) GPUs of NVIDIA_L4_GPUS, of 1 granted"
    assert int(re.findall(wanted, said)[0]) > 1
    assert main(["explain", str(stack)]) == 0
    assert "gpuplan explain STACK regions" in capsys.readouterr().out
    assert main(["explain", str(stack), "regions", "--json"]) == 0
    members = json.loads(capsys.readouterr().out)["members"]
    assert [m["region"] for m in members] == ["europe-west4", "europe-west1"]
