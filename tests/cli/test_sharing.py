"""How GPUs are shared by guests, as a manifest asks for it: teams apart, parts by either name, one
GPU a team, a fabric that reaches the guests, and why."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.main import main
from gpuplan.plan.model import Plan
from gpuplan.plan.serialize import load
from gpuplan.render import yaml
from tests.tools.program import ROOT


class Work:
    """A manifest beside the example's inventories, compiled in a folder of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        shutil.copytree(ROOT / "examples/inventories", folder / "inventories")

    def compile(self, *workloads: dict[str, Any], **platform: Any) -> tuple[int, str]:
        site = {"target": "libvirt", "inventory": "inventories/hypervisors.yaml"} | platform
        tree = {
            "apiVersion": "gpuplan.dev/v1",
            "name": "shares",
            "platform": {name: value for name, value in site.items() if value is not None},
            "workloads": list(workloads),
        }
        (self.folder / "shares.yaml").write_text(yaml.dumps(tree), "utf-8")
        code = main(
            ["compile", str(self.folder / "shares.yaml"), "-o", str(self.folder / "out"), "--fresh"]
        )
        read = self.capsys.readouterr()
        return code, " ".join((read.out + read.err).replace("|", " ").split())

    @property
    def stack(self) -> Path:
        return self.folder / "out/shares"

    @property
    def plan(self) -> Plan:
        return load((self.stack / "plan.yaml").read_text("utf-8"))

    def edit(self, before: str, after: str) -> None:
        path = self.folder / "inventories/hypervisors.yaml"
        text = path.read_text("utf-8")
        assert before in text
        path.write_text(text.replace(before, after), "utf-8")


@pytest.fixture
def work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Work:
    return Work(tmp_path, capsys)


def desks(name: str, team: str, users: int = 2, **more: Any) -> dict[str, Any]:
    tenancy = {"team": team} | more.pop("tenancy", {})
    return {
        "name": name,
        "task": "notebook",
        "notebook": {"users": users, "gpu_memory": "9 GiB"},
        "tenancy": tenancy,
        **more,
    }


A100 = {"gpus": ["a100-pcie-80gb"]}


def given(plan: Plan, workload: str) -> set[tuple[str, str | None]]:
    """GPUs and types of a workload's guests."""
    return {
        (d.parent or d.address, d.vgpu_type)
        for m in plan.virtual_machines
        if m.workload == workload
        for d in m.devices
        if d.kind in ("gpu", "vgpu")
    }


def test_teams_get_parts_of_the_hardware_where_a_team_alone_takes_turns(work: Work) -> None:
    assert work.compile(desks("mine", "a"), **A100)[0] == 0
    assert {kind for _, kind in given(work.plan, "mine")} == {"A100D-10C"}
    assert work.compile(desks("mine", "a"), desks("yours", "b"), **A100)[0] == 0
    for name in ("mine", "yours"):
        assert {kind for _, kind in given(work.plan, name)} == {"A100D-1-10C"}


def turns(name: str, team: str, users: int = 2) -> dict[str, Any]:
    return desks(name, team, users, overrides={"partition": "A100D-10C"})


def test_teams_that_must_take_turns_get_a_gpu_each(work: Work) -> None:
    code, text = work.compile(turns("mine", "a"), turns("yours", "b"), **A100)
    assert code == 0
    assert "take turns" not in text
    mine, yours = given(work.plan, "mine"), given(work.plan, "yours")
    assert not {gpu for gpu, _ in mine} & {gpu for gpu, _ in yours}


def test_where_there_is_no_gpu_for_each_team_it_is_said(work: Work) -> None:
    code, text = work.compile(turns("mine", "a", 25), turns("yours", "b"), **A100)
    assert code == 0
    assert text.count("take turns on the GPU") == 1
    assert "GP043" in text
    assert "isolation: gpu, cut: true" in text


@pytest.mark.parametrize("name", ["1g.10gb", "A100D-1-10C"])
def test_a_part_is_named_by_profile_or_by_type(name: str, work: Work) -> None:
    assert work.compile(desks("mine", "a", overrides={"partition": name}), **A100)[0] == 0
    assert {kind for _, kind in given(work.plan, "mine")} == {"A100D-1-10C"}
    nodes = {"target": "kubernetes", "inventory": None, "node": {"gpus": 4, "count": 2}}
    workload = desks("mine", "a", overrides={"partition": name})
    assert work.compile(workload, **A100, **nodes)[0] == 0
    assert work.plan.workloads[0].partition == "1g.10gb"


def test_one_gpu_a_team_is_cut_inside(work: Work) -> None:
    own = {"isolation": "gpu", "cut": True}
    teams = [desks(f"w{n}", f"team-{n}", 3, tenancy=own) for n in range(2)]
    code, text = work.compile(*teams, desks("rest", "others"), **A100)
    assert code == 0, text
    plan = work.plan
    used = [{gpu for gpu, _ in given(plan, w)} for w in ("w0", "w1", "rest")]
    assert len(used[0]) == len(used[1]) == 1
    assert not used[0] & used[1]
    assert not (used[0] | used[1]) & used[2]


def test_a_whole_gpu_for_little_says_why(work: Work) -> None:
    code, text = work.compile(desks("mine", "a", tenancy={"isolation": "gpu"}), **A100)
    assert code == 0
    assert "'mine' gets a whole a100-pcie-80gb for 9 GiB, because isolation 'gpu'" in text
    assert "tenancy.cut: true" in text
    assert {kind for _, kind in given(work.plan, "mine")} == {None}


def test_the_choice_is_explained_with_what_it_costs(
    work: Work, capsys: pytest.CaptureFixture[str]
) -> None:
    def explained() -> str:
        assert main(["explain", str(work.stack), "mine.partition"]) == 0
        return " ".join(capsys.readouterr().out.split())

    work.compile(desks("mine", "a"), **A100)
    text = explained()
    assert "mine.partition = A100D-10C" in text
    assert "turns on the whole GPU with the others on it, in equal shares" in text
    assert "AI Enterprise) on 1 GPU: $4,500 a year, $4,500 of a GPU" in text
    assert "earnings call" in text
    assert "live migration" in text
    work.compile(desks("mine", "a"), **A100, vgpu_subscription="$1,125/year")
    assert "$1,125 a year, $1,125 of a GPU, which its workloads pay once (manifest:" in explained()
    work.edit("bridge: br0}", "bridge: br0, leave: [vgpu-scheduler]}")
    work.compile(desks("mine", "a"), **A100)
    assert "as the driver gives them" in explained()
    work.compile(desks("mine", "a"), desks("yours", "b"), **A100)
    assert "a MIG instance: compute, bandwidth and memory of its own" in explained()
    work.compile(desks("mine", "a", tenancy={"isolation": "node"}), **A100)
    assert "licence none of NVIDIA's vGPU" in explained()


def test_a_licence_that_nothing_prices_is_said_to_be_unknown_and_costs_nothing_here(
    work: Work, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A catalogue without the list price."""

    class Unlisted:
        def charges(self, *_: str) -> tuple[()]:
            return ()

    monkeypatch.setattr("gpuplan.catalog.tariffs.load_tariffs", Unlisted)
    assert work.compile(desks("mine", "a"), **A100)[0] == 0
    assert "mine.vgpu_subscription_usd_per_year" not in {e.quantity for e in work.plan.evidence}
    assert main(["explain", str(work.stack), "mine.partition"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "1 GPU: the cost per year is unknown; platform.vgpu_subscription may state it" in text
    work.compile(desks("mine", "a"), **A100, vgpu_subscription="$1,125/year")
    assert main(["explain", str(work.stack), "mine.partition"]) == 0
    assert "$1,125 a year" in capsys.readouterr().out, "what the manifest states needs no catalogue"


# --- a fabric ----------------------------------------------------------------------------------

FABRIC = {"fabric": {"kind": "infiniband", "bandwidth_per_gpu": "400 Gb/s"}}
H100 = {"gpus": ["h100-sxm-80gb"]}


def tuned(gpus: int) -> dict[str, Any]:
    return {
        "name": "tune",
        "task": "finetuning",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "precision": "bf16",
        "training": {"global_batch": 16, "epochs": 1, "lora": {"rank": 16}},
        "dataset": {"name": "example-org/answers", "tokens": 1e7, "size": "1 GB"},
        "tenancy": {"team": "a", "isolation": "vm"},
        "overrides": {"gpu_count": gpus},
    }


@pytest.mark.parametrize("gpus", [8, 16])
def test_a_fabric_reaches_one_guest_or_many_by_rail(gpus: int, work: Work) -> None:
    code, text = work.compile(tuned(gpus), **H100, **FABRIC)
    assert code == 0, text
    assert "platform.fabric has no effect" not in text
    for machine in work.plan.virtual_machines:
        cards = {d.group: d for d in machine.devices if d.kind == "nic"}
        boards = [d for d in machine.devices if d.kind == "gpu"]
        assert len(boards) == len(cards) == 8
        host = next(h for h in work.plan.hosts if h.name == machine.host)
        switch = {d.address: d.switch for d in host.devices}
        for gpu in boards:
            assert switch[gpu.address] == switch[cards[gpu.group].parent or ""]


def test_a_fabric_that_reaches_no_guest_is_one_error(work: Work) -> None:
    work.edit("in_use: [], numa_node: 0, iommu_group: 20", "numa_node: 0, iommu_group: 20")
    work.edit("in_use: [], numa_node: 1, iommu_group: 20", "numa_node: 1, iommu_group: 20")
    code, text = work.compile(tuned(16), **H100, **FABRIC)
    assert code == 2
    assert text.count("the fabric does not reach 'tune'") == 1
    assert "for 16 of its 16 GPUs" in text
    assert text.count("error[") == 1
    assert work.compile(tuned(16), **H100)[0] != 0, "without a fabric nothing spans hosts"
