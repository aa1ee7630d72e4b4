"""One manifest for several targets, and plans for targets that nothing is emitted for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuplan.cli.main import main
from gpuplan.targets import TARGETS
from tests.support.plans import read_plan

ROOT = Path(__file__).parents[2]
CHAT = ROOT / "examples" / "chat.yaml"
BOTH = """\
apiVersion: gpuplan.dev/v1
name: chat
platform: {target: kubernetes, inventory: INVENTORY}
workloads:
- name: assistant
  task: inference
  model: meta-llama/Llama-3.1-8B-Instruct
  load: {requests_per_second: 1, input_tokens: 500, output_tokens: 100}
"""


def manifest(folder: Path, text: str = BOTH) -> str:
    path = folder / "m.yaml"
    inventory = ROOT / "examples" / "inventories" / "hypervisors.yaml"
    path.write_text(text.replace("INVENTORY", str(inventory)), encoding="utf-8")
    return str(path)


def test_several_targets_have_a_stack_each(tmp_path: Path) -> None:
    out = tmp_path / "stacks"
    options = ["-o", str(out), "--target", "libvirt,k8s,libvirt"]
    assert main(["compile", manifest(tmp_path), *options]) == 0
    assert sorted(p.name for p in out.iterdir()) == ["chat-kubernetes", "chat-libvirt"]
    kubernetes, libvirt = (read_plan(out / f"chat-{t}") for t in ("kubernetes", "libvirt"))
    assert (kubernetes.target, kubernetes.name) == ("kubernetes", "chat-kubernetes")
    assert (libvirt.target, len(libvirt.virtual_machines)) == ("libvirt", 1)
    assert main(["compile", manifest(tmp_path), *options, "--check"]) == 0


def test_one_target_replaces_the_manifests_and_keeps_the_name(tmp_path: Path) -> None:
    out = tmp_path / "stacks"
    assert main(["compile", manifest(tmp_path), "-o", str(out), "--target", "libvirt"]) == 0
    assert read_plan(out / "chat").target == "libvirt"


def test_nothing_is_written_where_one_of_the_targets_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "stacks"
    options = ["-o", str(out), "--target", "kubernetes,libvirt"]
    assert main(["compile", str(CHAT), *options]) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert "needs an inventory of the hosts (target libvirt)" in shown
    assert not out.exists()


def test_what_all_targets_have_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = BOTH.replace("Llama-3.1-8B-Instruct", "Llama-3.1-8B-Instrct")
    options = ["-o", str(tmp_path / "stacks"), "--target", "kubernetes,libvirt"]
    assert main(["compile", manifest(tmp_path, text), *options]) == 2
    shown = capsys.readouterr().err
    assert shown.count("error[") == 1
    assert "(target" not in shown


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("kubernets", "unknown target 'kubernets': did you mean 'kubernetes'?"),
        ("kubernetes,", "unknown target '': targets are kubernetes, libvirt,"),
    ],
)
def test_an_unknown_target_is_refused_with_what_was_meant(
    option: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["compile", str(CHAT), "--target", option])
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err


def test_a_target_without_backends_is_refused_with_how_to_plan_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", str(CHAT), "-o", str(tmp_path / "o"), "--target", "vsphere"]) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert "no backend emits for target 'vsphere' yet" in shown
    assert "`gpuplan compile --plan-only` sizes for any target" in shown
    assert not (tmp_path / "o").exists()


def test_a_name_that_a_target_makes_too_long_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = BOTH.replace("name: chat\n", f"name: {'c' * 33}\n", 1)
    options = ["-o", str(tmp_path / "o"), "--target", "kubernetes,libvirt"]
    assert main(["compile", manifest(tmp_path, text), *options]) == 2
    shown = capsys.readouterr().err
    assert f"'{'c' * 33}-libvirt' has 41 characters" in " ".join(shown.split())
    assert f"2 | name: {'c' * 33}" in shown


def test_no_stack_gets_the_name_of_another(tmp_path: Path) -> None:
    other = BOTH.replace("name: chat\n", "name: chat-libvirt\n", 1)
    options = ["-o", str(tmp_path / "o"), "--target", "kubernetes,libvirt"]
    assert main(["compile", manifest(tmp_path, f"{BOTH}---\n{other}"), *options]) == 0
    names = {f"{name}-{t}" for name in ("chat", "chat-libvirt") for t in ("kubernetes", "libvirt")}
    assert {p.name for p in (tmp_path / "o").iterdir()} == names
    assert all("-" not in target for target in TARGETS)


@pytest.mark.parametrize("target", TARGETS)
def test_a_plan_is_made_for_every_target(
    target: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = BOTH
    if TARGETS[target].provider:
        text = BOTH.replace("inventory: INVENTORY", "gpus: [h100-sxm-80gb]")
    path = manifest(tmp_path, text)
    monkeypatch.chdir(tmp_path)
    assert main(["compile", path, "--target", target, "--plan-only", "--json"]) == 0
    (stack,) = json.loads(capsys.readouterr().out)["stacks"]
    assert stack["plan"]["target"] == target
    assert stack["plan"]["workloads"][0]["gpu_count"] >= 1
    assert [p.name for p in tmp_path.iterdir()] == ["m.yaml"]


def test_a_plan_is_the_plan_of_the_stack(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", str(CHAT), "--plan-only", "--json"]) == 0
    (planned,) = json.loads(capsys.readouterr().out)["stacks"]
    assert main(["compile", str(CHAT), "-o", str(tmp_path), "--json"]) == 0
    (compiled,) = json.loads(capsys.readouterr().out)["stacks"]
    assert planned["plan"] == compiled["plan"]


def test_the_answer_says_that_nothing_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["compile", str(CHAT), "--plan-only"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "planned chat for kubernetes; nothing was written: without --plan-only" in shown
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", [["-o", "x"], ["--force"], ["--fresh"], ["--check"]])
def test_options_of_writing_are_refused_for_a_plan(
    option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", str(CHAT), "--plan-only", *option]) == 2
    assert "--plan-only writes nothing" in capsys.readouterr().err


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_shared_gpus_of_bought_nodes_are_sized_for_every_target(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A pool of vGPUs has a name of its own, and stands on the nodes of its GPU."""
    path = tmp_path / "m.yaml"
    path.write_text(
        "apiVersion: gpuplan.dev/v1\n"
        "name: lab\n"
        f"platform: {{target: {target}, gpus: [h100-sxm-80gb, l40s]}}\n"
        "workloads:\n"
        "- {name: desks, task: notebook, notebook: {users: 3, gpu_memory: 10 GiB}}\n",
        encoding="utf-8",
    )
    code = main(["compile", str(path), "--plan-only"])
    shown = capsys.readouterr()
    if TARGETS[target].guests_on_hosts or TARGETS[target].lists_machines:
        assert "needs an inventory" in shown.err
    else:
        assert code == 0, shown.err
        assert "3 replicas" in shown.out
