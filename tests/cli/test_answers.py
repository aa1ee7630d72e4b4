"""Words and numbers of answers that once misled their readers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.main import main
from gpuplan.pipeline import compile_files
from gpuplan.plan.diff import FieldChange
from gpuplan.plan.figures import Figure
from gpuplan.render import yaml
from gpuplan.report.changes.diffwords import figure_text, setting_lines
from tests.support.changing_manifests import INVENTORY

CHAT: dict[str, Any] = {
    "name": "chat",
    "task": "inference",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "load": {"requests_per_second": 3, "input_tokens": 600, "output_tokens": 200},
    "slo": {"time_to_first_token": "1 s", "time_per_output_token": "60 ms"},
}
BULK: dict[str, Any] = {
    "name": "bulk",
    "task": "batch",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "load": {"requests": 1000000, "input_tokens": 500, "output_tokens": 100},
    "slo": {"finish_within": "4 h"},
}
PAINT: dict[str, Any] = {
    "name": "paint",
    "task": "batch",
    "model": "black-forest-labs/FLUX.1-dev",
    "load": {"requests": 10000, "images": {"mean": "1024x1024", "steps": 28}},
    "slo": {"finish_within": "20 h"},
    "command": ["python", "make.py"],
}
NODE = {"target": "kubernetes", "gpus": ["h100-sxm-80gb"], "node": {"gpus": 8}}


def manifest(folder: Path, platform: dict[str, Any], *workloads: dict[str, Any]) -> Path:
    path = folder / "m.yaml"
    tree = {"apiVersion": "gpuplan.dev/v1", "name": "m", "platform": platform}
    path.write_text(yaml.dumps(tree | {"workloads": list(workloads)}), "utf-8")
    return path


def said(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    return " ".join((captured.out + captured.err).replace("|", " ").split())


@pytest.mark.parametrize(
    ("provider", "region", "words"),
    [
        ("gcp", "us-west2", "nearest are us-west1, us-west3, us-west4"),
        ("gcp", "us-westt1", "did you mean 'us-west1'?"),
        ("aws", "us-west-2", "nearest is us-east-1"),
    ],
)
def test_a_region_without_prices_names_the_nearest_ones(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    provider: str,
    region: str,
    words: str,
) -> None:
    path = manifest(
        tmp_path, {"target": "kubernetes", "provider": provider, "region": region}, CHAT
    )
    assert main(["compile", str(path), "--plan-only"]) == 2
    shown = said(capsys)
    assert f"no prices of {provider} are known for region '{region}'" in shown
    assert words in shown


def test_a_region_of_another_continent_is_near_to_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    platform = {"target": "kubernetes", "provider": "aws", "region": "eu-west-1"}
    assert main(["compile", str(manifest(tmp_path, platform, CHAT)), "--plan-only"]) == 2
    shown = said(capsys)
    assert "did you mean" not in shown
    assert "nearest" not in shown


def test_no_price_is_offered_that_nobody_sells_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """389 × a10 would win at one cent an hour."""
    prices = {"a10": "$1.10/h", "h100-sxm-80gb": "$0.01/h"}
    platform = {"target": "kubernetes", "gpus": list(prices), "prices": prices, "node": {"gpus": 1}}
    busy = CHAT | {"load": CHAT["load"] | {"requests_per_second": 200}}
    assert main(["compile", str(manifest(tmp_path, platform, busy)), "--plan-only"]) == 0
    shown = said(capsys)
    assert "× a10: fits, $" in shown
    assert "win" not in shown


def test_another_machine_for_work_that_ends_is_priced_by_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prices = {"l40s": "$2/h", "h100-sxm-80gb": "$9/h"}
    platform = {"target": "kubernetes", "gpus": list(prices), "prices": prices, "node": {"gpus": 1}}
    assert main(["compile", str(manifest(tmp_path, platform, BULK)), "--plan-only", "--json"]) == 0
    (stack,) = json.loads(capsys.readouterr().out)["stacks"]
    (work,) = stack["plan"]["workloads"]
    (other,) = work["alternatives"]
    run = float(other["usd_per_hour"]) * other["seconds"] / 3600
    main(["compile", str(manifest(tmp_path, platform, BULK)), "--plan-only"])
    assert f"fits, ${run:.2f} for the run of " in said(capsys)


def test_nodes_of_an_inventory_are_all_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rack.yaml").write_text(INVENTORY.replace("n1, n2, n3, n4", "n1"), "utf-8")
    busy = CHAT | {"load": CHAT["load"] | {"requests_per_second": 5000}}
    path = manifest(tmp_path, {"target": "kubernetes", "inventory": "rack.yaml"}, busy)
    assert main(["compile", str(path), "--plan-only"]) == 2
    assert "node.count" not in said(capsys)


def test_each_price_names_its_pool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prices = {"l40s": "$2/h", "h100-sxm-80gb": "$7/h"}
    platform = {"target": "kubernetes", "gpus": list(prices), "prices": prices, "node": {"gpus": 1}}
    large = CHAT | {"name": "large", "overrides": {"gpu": "h100-sxm-80gb"}}
    assert main(["compile", str(manifest(tmp_path, platform, CHAT, large)), "--plan-only"]) == 0
    shown = said(capsys)
    assert "prices l40s: $2.00/h a node" in shown
    assert "h100-sxm-80gb: $7.00/h a node" in shown


def test_what_is_idle_has_its_price(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    platform = NODE | {"prices": {"h100-sxm-80gb": "$7/h"}}
    assert main(["compile", str(manifest(tmp_path, platform, CHAT)), "--plan-only"]) == 0
    assert "7 of 8 GPUs idle ($49.00/h): would hold 7 more of chat" in said(capsys)


def test_a_miss_by_far_is_told_in_times_the_limit() -> None:
    far = Figure(name="time_to_finish_headroom", unit="%", base=12.0, head=-2273.0)
    assert figure_text(far) == "12 % → 23.7 × the limit"


@pytest.mark.parametrize("work", [BULK, PAINT])
def test_a_batch_fills_the_nodes_that_are_paid_for(tmp_path: Path, work: dict[str, Any]) -> None:
    (stack,) = compile_files([manifest(tmp_path, NODE, work)]).stacks
    (found,) = stack.plan.workloads
    assert (found.replicas, found.gpu_count) == (8, 8)
    numbers = {e.quantity: e.value for e in stack.plan.evidence}
    name = found.name
    assert numbers[f"{name}.least.replicas"] < 8
    limit = next(m for m in found.metrics if m.name == "time_to_finish").estimate.value
    least = work | {"overrides": {"replicas": int(numbers[f"{name}.least.replicas"])}}
    (few,) = compile_files([manifest(tmp_path, NODE, least)]).stacks
    slower = next(m for m in few.plan.workloads[0].metrics if m.name == "time_to_finish")
    assert limit < slower.estimate.value


def test_a_batch_leaves_nodes_to_others(tmp_path: Path) -> None:
    """Two share what one of them would fill."""
    (stack,) = compile_files([manifest(tmp_path, NODE, BULK, CHAT)]).stacks
    (pool,) = stack.plan.node_pools
    assert pool.node_count == 1


def test_a_fleet_is_the_inventory_that_the_manifest_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rack.yaml").write_text(INVENTORY, "utf-8")
    path = manifest(tmp_path, {"target": "kubernetes", "inventory": "rack.yaml"}, CHAT)
    assert main(["pack", str(path), "--json"]) == 0
    own = json.loads(capsys.readouterr().out)
    assert main(["pack", str(path), "--inventory", str(tmp_path / "rack.yaml"), "--json"]) == 0
    assert own == json.loads(capsys.readouterr().out)


def test_a_remedy_says_why_the_nodes_cost_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = INVENTORY.replace("  gpus:", "  price: $8/h\n  gpus:")
    small = text[text.index("- names:") :].replace("n1, n2, n3, n4", "s1, s2")
    text += small.replace("h100-sxm-80gb", "l4").replace("dgx-h100", "small")
    (tmp_path / "rack.yaml").write_text(text, "utf-8")
    slow = CHAT | {"slo": {"time_per_output_token": "8 ms"}, "precision": "bf16"}
    platform = {"target": "kubernetes", "inventory": "rack.yaml", "gpus": ["l4"]}
    assert main(["compile", str(manifest(tmp_path, platform, slow)), "--plan-only"]) == 2
    shown = said(capsys)
    assert "/h ($8.00/h with the rest of its node)" in shown


def problems(path: Path) -> dict[str, Any]:
    return {p.rule: p for p in compile_files([path]).problems}


def test_remedies_of_what_is_missing_are_data(tmp_path: Path) -> None:
    path = manifest(tmp_path, NODE, {k: v for k, v in CHAT.items() if k != "name"})
    ((change,),) = problems(path)["GP004"].remedies
    assert change.origin.path == ("workloads", 0, "name")
    assert isinstance(change.value, str)


def test_remedies_of_what_engines_cannot_start_are_data(tmp_path: Path) -> None:
    own = {"name": "mine", "image": "registry.example/mine:1"}
    found = problems(manifest(tmp_path, NODE, CHAT | {"engine": own}))["GP016"]
    assert {r[0].origin.path[-1] for r in found.remedies} == {"engine"}
    for remedy in found.remedies:
        path = manifest(tmp_path, NODE, CHAT | {"engine": remedy[0].value})
        assert "GP016" not in problems(path)


def test_remedies_of_what_a_node_has_too_little_of_are_data(tmp_path: Path) -> None:
    text = INVENTORY.replace("cpu_cores: 112", "cpu_cores: 8")
    (tmp_path / "rack.yaml").write_text(text, "utf-8")
    platform = {"target": "kubernetes", "inventory": "rack.yaml"}
    greedy = CHAT | {"overrides": {"cpu_cores_per_gpu": 30}}
    found = problems(manifest(tmp_path, platform, greedy))["GP041"]
    ((change,),) = found.remedies
    assert change.origin.path[-1] == "cpu_cores_per_gpu"
    less = CHAT | {"overrides": {"cpu_cores_per_gpu": int(change.value)}}
    assert "GP041" not in problems(manifest(tmp_path, platform, less))


def test_one_notebook_is_not_several(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = {"name": "desk", "task": "notebook", "notebook": {"users": 1, "gpu_memory": "9 GiB"}}
    assert main(["compile", str(manifest(tmp_path, NODE, one)), "--plan-only"]) == 0
    assert "1 notebook with 9 GiB of GPU memory 1 ×" in said(capsys)


def test_work_that_ends_on_idle_gpus_costs_nothing_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prices = {"h100-sxm-80gb": "$5/h"}
    small = BULK | {"load": BULK["load"] | {"requests": 1000}}
    main(
        ["compile", str(manifest(tmp_path, NODE | {"prices": prices}, CHAT, small)), "--plan-only"]
    )
    shown = said(capsys)
    assert "$40.00/h, $29,200/month; what ends takes GPUs that are paid for anyway" in shown
    assert not re.search(r"\$0\.00(?!\d)", shown)


def test_the_nodes_that_all_pools_take_together_are_a_remedy(tmp_path: Path) -> None:
    node = {"target": "kubernetes", "gpus": ["l40s"], "node": {"gpus": 1, "count": 2}}
    two = [CHAT | {"name": name, "overrides": {"replicas": 2}} for name in ("one", "other")]
    found = problems(manifest(tmp_path, node, *two))["GP041"]
    assert "'one' (2 GPUs), 'other' (2 GPUs)" in found.message
    ((change,),) = found.remedies
    assert "`platform.node.count: 4` instead of 2" in found.help
    enough = node | {"node": {"gpus": 1, "count": change.value}}
    assert "GP041" not in problems(manifest(tmp_path, enough, *two))


@pytest.mark.parametrize(
    ("target", "region", "command"),
    [
        ("eks", "us-east-1", "--region us-east-1 --filters Name=instance-type,Values=g6"),
        ("gke", "us-central1", 'list --filter="zone~^us-central1- AND name=(g2-standard-'),
    ],
)
def test_zones_are_asked_for_by_a_command_that_lists_those_of_the_machines(
    target: str, region: str, command: str, tmp_path: Path
) -> None:
    platform = {"target": target, "region": region, "gpus": ["l4"]}
    assert command in problems(manifest(tmp_path, platform, CHAT))["GP012"].help


@pytest.mark.parametrize(
    ("base", "head", "words"),
    [
        ("a short one", "another", "a short one → another"),
        (
            f"{'the same words ' * 9}until May",
            f"{'the same words ' * 9}until June",
            "until May → …",
        ),
        (f"/{'data' * 20}/one", f"/{'data' * 20}/two", "/one → …"),
        ("short", "no longer short " * 9, "short → no longer"),
        (f"X{' word' * 40}", f"Y{' word' * 40}", ": X word"),
    ],
)
def test_a_change_within_long_texts_is_seen(base: str, head: str, words: str) -> None:
    change = FieldChange(path="workloads[chat].notes", base=json.dumps(base), head=json.dumps(head))
    (line,) = setting_lines([change])
    shown = line.removeprefix("chat notes: ").split(" → ")
    assert words in line
    assert shown[0] != shown[1]
    assert all(len(text) <= 62 for text in shown)
