"""Findings stand where a person can act: at the manifest's line."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from gpuplan.cli.common import today
from gpuplan.cli.main import main

MANIFEST = """\
apiVersion: gpuplan.dev/v1
name: over
platform:
  target: kubernetes
  gpus: [h100-sxm-80gb]
  budget: $100/month
workloads:
- name: assistant
  task: inference
  model: meta-llama/Llama-3.2-1B-Instruct
  load: {requests_per_second: 1, input_tokens: 500, output_tokens: 100}
"""


@pytest.fixture(autouse=True)
def compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    """What `compile` prints of problems, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    Path("over.yaml").write_text(MANIFEST, encoding="utf-8")
    assert main(["compile", "over.yaml"]) == 0
    return capsys.readouterr().err


def test_compile_shows_what_check_would_say(compiled: str) -> None:
    budget = compiled[compiled.index("error[GP204]") :]
    assert budget.splitlines()[1:5] == [
        " --> over.yaml:6:11",
        "  |",
        "6 |   budget: $100/month",
        "  |           ^^^^^^^^^^",
    ]


def test_over_provisioning_is_seen_where_one_gpu_alone_is_allowed(
    compiled: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "warning[GP202]: assistant has" in compiled
    assert "× headroom: 1 × h100-sxm-80gb serves" in compiled
    assert "are idle" not in compiled  # it is rented alone
    Path("over.yaml").write_text(MANIFEST.replace("budget:", "node: {gpus: 8}\n  budget:"), "utf-8")
    assert main(["compile", "over.yaml", "-o", "whole"]) == 0
    whole = capsys.readouterr().err
    assert "warning[GP203]: 7 of 8 GPUs of pool h100-sxm-80gb are idle" in whole


def check(capsys: pytest.CaptureFixture[str], *more: str) -> str:
    assert main(["check", "stacks/over", *more]) == 1
    return capsys.readouterr().out


def test_check_points_into_the_manifest(capsys: pytest.CaptureFixture[str]) -> None:
    text = check(capsys)
    assert " --> over.yaml:6:11\n" in text
    assert "6 |   budget: $100/month\n" in text
    assert "plan.yaml" not in text
    verdicts = json.loads(check(capsys, "--json"))["findings"]
    assert {(v["file"], v["line"]) for v in verdicts} >= {("over.yaml", 6), ("over.yaml", 8)}


def test_a_manifest_elsewhere_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    far = Path("far/away/over.yaml")
    far.parent.mkdir(parents=True)
    Path("over.yaml").rename(far)
    assert " --> stacks/over/plan.yaml:" in check(capsys)
    assert f" --> {far}:6:11\n" in check(capsys, "--manifest", str(far))


def test_the_manifest_of_another_stack_is_not_taken(capsys: pytest.CaptureFixture[str]) -> None:
    text = MANIFEST.replace("name: over", "name: another")
    Path("over.yaml").write_text(text, encoding="utf-8")
    assert " --> stacks/over/plan.yaml:" in check(capsys)


def test_a_manifest_that_has_come_to_ask_for_more_is_not_taken(
    capsys: pytest.CaptureFixture[str],
) -> None:
    more = "- {name: desk, task: notebook, notebook: {users: 1, gpu_memory: 9 GiB}}\n"
    Path("over.yaml").write_text(MANIFEST + more, encoding="utf-8")
    assert " --> stacks/over/plan.yaml:" in check(capsys)


def test_waived_findings_are_not_shown_again(capsys: pytest.CaptureFixture[str]) -> None:
    Path("policies").mkdir()
    waiver = (
        "waivers:\n- rule: GP204\n  match: over/*\n  reason: agreed\n  owner: team\n"
        f"  expires: {today() + timedelta(days=30)}\n"
    )
    Path("policies/waivers.yaml").write_text(waiver, encoding="utf-8")
    assert main(["compile", "over.yaml"]) == 0
    assert "GP204" not in capsys.readouterr().err


INVENTORY_MANIFEST = """\
apiVersion: gpuplan.dev/v1
name: one-vm
platform:
  target: libvirt
  inventory: inv/hosts.yaml
  gpus: [h100-sxm-80gb]
workloads:
- name: assistant
  task: inference
  model: meta-llama/Llama-3.2-1B-Instruct
  load: {requests_per_second: 1, input_tokens: 500, output_tokens: 100}
"""
HOSTS = Path(__file__).parents[2] / "examples" / "inventories" / "hypervisors.yaml"


def idle(text: str) -> list[str]:
    """What is printed of the pool's idle GPUs: where, and the line."""
    lines = text[text.index("warning[GP203]") :].splitlines()
    return [lines[1], *lines[3:5]]


def test_check_points_into_the_inventory_where_compile_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("inv").mkdir()
    Path("inv/hosts.yaml").write_text(HOSTS.read_text("utf-8"), "utf-8")
    Path("vm.yaml").write_text(INVENTORY_MANIFEST, "utf-8")
    assert main(["compile", "vm.yaml"]) == 0
    shown = idle(capsys.readouterr().err)
    assert shown[:2] == [" --> inv/hosts.yaml:6:3", "6 | - names: [hv-01, hv-02]"]
    assert main(["check", "stacks/one-vm"]) == 0
    assert idle(capsys.readouterr().out) == shown
    main(["check", "stacks/one-vm", "--json"])
    found = json.loads(capsys.readouterr().out)["findings"]
    assert ("inv/hosts.yaml", 6) in {(v["file"], v["line"]) for v in found}


def test_hosts_of_another_inventory_are_not_pointed_at(capsys: pytest.CaptureFixture[str]) -> None:
    Path("inv").mkdir()
    Path("inv/hosts.yaml").write_text(HOSTS.read_text("utf-8"), "utf-8")
    Path("vm.yaml").write_text(INVENTORY_MANIFEST, "utf-8")
    assert main(["compile", "vm.yaml"]) == 0
    other = HOSTS.read_text("utf-8").replace("hv-01", "other-01")
    Path("inv/hosts.yaml").write_text(other, "utf-8")
    capsys.readouterr()
    main(["check", "stacks/one-vm"])
    assert " --> stacks/one-vm/plan.yaml:" in idle(capsys.readouterr().out)[0]


def test_stacks_of_several_targets_have_one_manifest(capsys: pytest.CaptureFixture[str]) -> None:
    Path("stacks/over").rename("stacks/over-kubernetes")
    plan = Path("stacks/over-kubernetes/plan.yaml")
    plan.write_text(
        plan.read_text("utf-8").replace("name: over\n", "name: over-kubernetes\n"), "utf-8"
    )
    main(["check", "stacks/over-kubernetes"])
    assert " --> over.yaml:6:11\n" in capsys.readouterr().out


def test_manifests_with_one_name_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    for name, line in (("a", ""), ("b", "# one line more\n")):
        folder = Path(name)
        folder.mkdir()
        text = line + MANIFEST.replace("name: over", f"name: {name}")
        (folder / "m.yaml").write_text(text, "utf-8")
        assert main(["compile", f"{name}/m.yaml", "-o", f"{name}/stacks"]) == 0
    capsys.readouterr()
    assert main(["check", "a/stacks/a", "b/stacks/b"]) == 1
    shown = capsys.readouterr().out
    assert " --> a/m.yaml:6:11\n" in shown
    assert " --> b/m.yaml:7:11\n" in shown


def test_a_manifest_is_found_one_folder_down(capsys: pytest.CaptureFixture[str]) -> None:
    """Below the working folder, but not in a hidden one, where tools keep copies."""
    for folder in (".old", "teams"):
        Path(folder).mkdir()
    Path("over.yaml").rename(".old/over.yaml")
    capsys.readouterr()
    main(["check", "stacks/over"])
    assert " --> stacks/over/plan.yaml:" in capsys.readouterr().out
    Path(".old/over.yaml").rename("teams/over.yaml")
    main(["check", "stacks/over"])
    assert " --> teams/over.yaml:6:11\n" in capsys.readouterr().out
