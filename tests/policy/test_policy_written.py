"""Files of Slurm and of Compose, each broken in one place: what `check` and `diff` say of it."""

from __future__ import annotations

import json
import shutil
from datetime import date
from pathlib import Path

import pytest

from gpuplan.plan.outside.objects import Setting, Written, object_changes
from gpuplan.policy.review import run_check, run_diff
from gpuplan.policy.written import written
from gpuplan.render.hostlist import hostlist, hosts
from gpuplan.render.tree import File
from gpuplan.report.changes.diff import render_diff
from gpuplan.units import GIB, KIB
from tests.support.samples import HOSTILE

STACKS = Path(__file__).parents[2] / "stacks"
TODAY = date(2026, 11, 1)
BROKEN = [
    ("jobs/assistant.sbatch", "--cpus-per-gpu=12", "--cpus-per-gpu=11", "GP311"),
    ("jobs/assistant.sbatch", "--cpus-per-gpu=12", "--cpus-per-gpu=many", "GP311"),
    ("jobs/assistant.sbatch", "--mem-per-gpu=46080M", "--mem-per-gpu=44G", "GP311"),
    ("jobs/assistant.sbatch", "--mem-per-gpu=46080M", "--mem-per-gpu=0.1T", "GP311"),
    ("jobs/assistant.sbatch", "--array=0-2", "--array=1", "GP311"),
    ("jobs/full-70b.sbatch", "--nodes=8", "--nodes=7", "GP311"),
    ("jobs/full-70b.sbatch", "--gpus-per-node=h100:8", "--gpus-per-node=h100:4", "GP311"),
    ("etc/slurm.conf", "CoreSpecCount=4 RealMemory=1887232", "RealMemory=2097152", "GP311"),
    ("etc/slurm.conf", "Gres=gpu:h100:8", "Gres=gpu:h100:9", "GP311"),
    ("etc/gres.conf", "nvidia[0-3] Cores=0-55", "nvidia[0-3] Cores=56-111", "GP306"),
    ("etc/gres.conf", "nvidia[4-7] Cores=56-111", "nvidia[4-7] Cores=0-111", "GP306"),
    ("etc/gres.conf", "nvidia[0-3] Cores=0-55", "nvidia[0-7] Cores=0-55", "GP306"),
    ("etc/gres.conf", "nvidia[0-3] Cores=0-55", "nvidia[0-4] Cores=0-55", "GP306"),
    ("etc/gres.conf", "nvidia[4-7] Cores=56-111", "nvidia[3-7] Cores=56-111", "GP306"),
    ("images.sh", "vllm-openai:v0.27.1", "vllm-openai:latest", "GP602"),
    ("images.sh", "nvcr.io#nvidia/nemo:26.04", "nvcr.io#nvidia/nemo", "GP602"),
    ("jobs/labels.sbatch", "  srun --kill", "  srun apptainer exec --fakeroot --kill", "GP701"),
    ("jobs/labels.sbatch", "--no-container-mount-home", "--privileged", "GP701"),
    ("deploy.sh", "apply() {", "docker run --privileged x\napply() {", "GP701"),
]
UNIT = "box-assistant-0.container"
BOX = [
    ("compose.yaml", 'mem_limit: "100663296k"', 'mem_limit: "100663295k"', "GP311"),
    ("compose.yaml", 'mem_limit: "100663296k"', "mem_limit: plenty", "GP311"),
    ("compose.yaml", 'shm_size: "16777216k"', "privileged: true", "GP701"),
    ("compose.yaml", "vllm-openai:v0.27.1", "vllm-openai:latest", "GP602"),
    (f"quadlet/{UNIT}", "vllm-openai:v0.27.1", "vllm-openai:latest", "GP602"),
    (f"quadlet/{UNIT}", "ReadOnly=true", "PodmanArgs=--privileged", "GP701"),
    (f"quadlet/{UNIT}", "--memory=100663296k", "--memory=100663295k", "GP311"),
    ("assign.sh", "assistant-0 0 - 6", "assistant-0 0 - ²", "GP311"),
]


def broken(folder: Path, stack: str, *edit: str) -> Path:
    file, old, new = edit
    made = Path(shutil.copytree(STACKS / stack, folder / stack))
    text = (made / file).read_text("utf-8")
    assert old in text
    (made / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    return made


@pytest.mark.parametrize(
    ("stack", "edit"), [("slurm", row) for row in BROKEN] + [("box", row) for row in BOX]
)
def test_what_was_edited_is_found_at_its_line(
    tmp_path: Path, stack: str, edit: tuple[str, str, str, str]
) -> None:
    file, old, new, rule = edit
    made = broken(tmp_path, stack, file, old, new)
    report = run_check([made], as_of=TODAY)
    found = [v for v in report.verdicts if v.rule == rule]
    assert found, [v.message for v in report.verdicts]
    text = (made / file).read_text("utf-8")
    assert found[0].file.endswith(file)
    line = text[: text.index(new)].count("\n")
    assert any(v.line and abs(v.line - 1 - line) <= new.count("\n") + 1 for v in found)
    assert {v.rule for v in report.verdicts} == {rule, "GP904"}


@pytest.mark.parametrize("stack", ["slurm", "box", "large-runs", "lab"])
def test_what_was_generated_is_as_the_plan_has_it(stack: str) -> None:
    if (STACKS / stack).is_dir():
        rules = {v.rule for v in run_check([STACKS / stack], as_of=TODAY).verdicts}
        assert not rules & {"GP306", "GP311", "GP602", "GP701"}


JOB = "jobs/full-70b.sbatch"
ENOUGH = [
    ("slurm", "jobs/assistant.sbatch", "--cpus-per-gpu=12", "--cpus-per-gpu=16"),
    ("slurm", "jobs/assistant.sbatch", "--cpus-per-gpu=12", "--cpus-per-gpu 16  # 4 to decode"),
    *(
        ("slurm", "jobs/assistant.sbatch", "--mem-per-gpu=46080M", f"--mem-per-gpu={memory}")
        for memory in ("46080", "46081M", "45G", "47185920k", "1T")
    ),
    ("slurm", "jobs/assistant.sbatch", "--array=0-2", "--array=3,7,9"),
    ("slurm", "jobs/assistant.sbatch", "--array=0-2", "--array=0-4%3"),
    ("slurm", "jobs/full-70b.sbatch", "--nodes=8", "--nodes=9"),
    ("slurm", "jobs/labels.sbatch", "  srun --kill", "#SBATCH --gpus-per-node=0\n  srun --kill"),
    ("slurm", "etc/slurm.conf", "Gres=gpu:h100:8", "Gres=gpu:h100:7"),
    ("slurm", "etc/gres.conf", "nvidia[0-3] Cores=0-55", "nvidia[0-3] Cores=1-54"),
    ("slurm", "etc/gres.conf", "nvidia[0-3] Cores=0-55", "nvidia[1-3] Cores=0-20,40-55"),
    ("slurm", "etc/gres.conf", "nvidia[4-7] Cores=56-111", "nvidia[8-9] Cores=56-111"),
    ("box", "compose.yaml", 'mem_limit: "100663296k"', 'mem_limit: "96g"'),
    ("box", "compose.yaml", 'mem_limit: "100663296k"', 'mem_limit: "98304m"'),
    ("box", "compose.yaml", "${ASSISTANT_0_CPUS:?run ./assign.sh}", "0-99999999999,5"),
    pytest.param(*("slurm", JOB, "--nodes=8", f"--nodes={'9' * 5000}"), id="5,000 digits"),
]


@pytest.mark.parametrize(("stack", "file", "old", "new"), ENOUGH)
def test_as_much_as_planned_in_any_unit_and_more_of_it_is_nobodys_fault(
    tmp_path: Path, stack: str, file: str, old: str, new: str
) -> None:
    made = broken(tmp_path, stack, file, old, new)
    assert {v.rule for v in run_check([made], as_of=TODAY).verdicts} == {"GP904"}


@pytest.mark.parametrize(
    ("old", "new", "needed_given"),
    [
        ("--mem-per-gpu=46080M", "--mem-per-gpu=44G", (45 * GIB, 44 * GIB, "B")),
        ("--mem-per-gpu=46080M", "--mem-per-gpu=47185919K", (45 * GIB, 45 * GIB - KIB, "B")),
        ("--cpus-per-gpu=12", "--cpus-per-gpu=11", (12, 11, "CPUs")),
        ("--array=0-2", "--array=1", (3, 1, "tasks")),
    ],
)
def test_a_finding_says_in_base_units_what_is_needed_and_given(
    tmp_path: Path, old: str, new: str, needed_given: tuple[int, int, str]
) -> None:
    made = broken(tmp_path, "slurm", "jobs/assistant.sbatch", old, new)
    [found] = [v for v in run_check([made], as_of=TODAY).verdicts if v.rule == "GP311"]
    assert (found.requested, found.capacity, found.unit) == needed_given
    amount = "46080 MiB" if needed_given[2] == "B" else f"{needed_given[0]} {needed_given[2]}"
    assert found.message.endswith(f"{new.partition('=')[2]}, less than the plan gives it: {amount}")


@pytest.mark.parametrize("cores", ["0-56", "54-57", "56", "0-55,111", "all"])
def test_cores_one_beyond_those_beside_the_gpus_are_found_with_those_that_are(
    tmp_path: Path, cores: str
) -> None:
    line = "nvidia[0-3] Cores=0-55"
    made = broken(tmp_path, "slurm", "etc/gres.conf", line, line.replace("0-55", cores))
    [found, *_] = [v for v in run_check([made], as_of=TODAY).verdicts if v.rule == "GP306"]
    assert found.message.endswith(f"cores {cores}; the inventory has it beside cores 0-55")
    kind, _, node = found.resource.partition("/")
    assert kind == "node"
    assert f" of node {node} is bound" in found.message


def test_diff_speaks_of_nodes_partitions_qualities_accounts_and_jobs(tmp_path: Path) -> None:
    made = tmp_path / "slurm"
    shutil.copytree(STACKS / "slurm", made)
    job_text = (made / "jobs/full-70b.sbatch").read_text("utf-8")
    limit = job_text.partition("--time=")[2].partition("\n")[0]
    for file, old, new in (
        ("etc/slurm.conf", "RealMemory=707584", "RealMemory=700000"),
        ("etc/slurm.conf", "PartitionName=rest Nodes=a100-[03-04],", "PartitionName=rest Nodes="),
        ("etc/topology.conf", "leaf-1 Nodes=h100-[01-04]", "leaf-1 Nodes=h100-[01-03]"),
        ("accounts.sh", "quality low-preemptible Priority=5 GraceTime=30",
         "quality low-preemptible Priority=5 GraceTime=60"),
        ("etc/accounts.cfg", "Fairshare=64", "Fairshare=32"),
        ("jobs/full-70b.sbatch", f"--time={limit}", "--time=1-00:00:00"),
    ):  # fmt: skip
        text = (made / file).read_text("utf-8")
        assert old in text
        (made / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    (made / "jobs/labels.sbatch").unlink()
    result = run_diff(STACKS / "slurm", made, as_of=TODAY)
    shown = " ".join(render_diff(result, "text").split())
    for line in (
        "node l40s-01: RealMemory 707584 → 700000",
        "partition rest: Nodes a100-[03-04],l40s-[02-04] → l40s-[02-04]",
        "switch leaf-1: Nodes h100-[01-04] → h100-[01-03]",
        "QOS low-preemptible: GraceTime 30 → 60",
        "account training: Fairshare 64 → 32",
        f"job full-70b: --time {limit} → 1-00:00:00",
        "job labels: removed",
    ):
        assert line in shown
    tree = json.loads(render_diff(result, "json"))["stacks"][0]["objects"]
    [job] = [o for o in tree if o["name"] == "full-70b"]
    assert job["settings"] == [{"name": "--time", "base": limit, "head": "1-00:00:00"}]
    assert "job full\\-70b" in render_diff(result, "markdown").replace("-70b", "\\-70b")


def test_diff_names_the_devices_of_a_line_of_gpus(tmp_path: Path) -> None:
    line = "nvidia[4-7] Cores=56-111"
    made = broken(tmp_path, "slurm", "etc/gres.conf", line, line.replace("56-111", "60-111"))
    shown = render_diff(run_diff(STACKS / "slurm", made, as_of=TODAY), "text")
    assert "GPUs h100-08:/dev/nvidia[4-7]: Cores 56-111 → 60-111" in shown
    assert "nvidia[0-3]" not in shown


def test_a_job_of_ones_own_is_not_held_to_the_plan(tmp_path: Path) -> None:
    made = tmp_path / "slurm"
    shutil.copytree(STACKS / "slurm", made)
    (made / "jobs/own.sbatch").write_text("#!/bin/sh\n#SBATCH --nodes=0\nsrun hostname\n", "utf-8")
    assert {v.rule for v in run_check([made], as_of=TODAY).verdicts} == {"GP904"}


def test_diff_speaks_of_services(tmp_path: Path) -> None:
    text = (STACKS / "box" / "compose.yaml").read_text("utf-8")
    now = text.partition('"--max-num-seqs=')[2].partition('"')[0]
    edit = f'"--max-num-seqs={now}"', '"--max-num-seqs=7"'
    made = broken(tmp_path, "box", "compose.yaml", *edit)
    shown = render_diff(run_diff(STACKS / "box", made, as_of=TODAY), "text")
    assert f"service assistant-0: --max-num-seqs {now} → 7" in shown


def test_nodes_that_change_alike_are_one_line() -> None:
    def node(name: str, memory: str) -> Written:
        setting = Setting(name="RealMemory", value=memory)
        return Written(kind="node", name=name, file="etc/slurm.conf", settings=(setting,))

    base = [node(f"n-{i:02}", "1") for i in range(4)]
    head = [node(f"n-{i:02}", "2" if i < 3 else "1") for i in range(5)]
    said = [(c.name, c.status) for c in object_changes(base, head)]
    assert said == [("n-[00-02]", "changed"), ("n-04", "added")]


@pytest.mark.parametrize("names", [["a"], ["a-1", "a-2", "b"], ["n-09", "n-10", "r1.c2", "r1.c3"],
                                   [f"x{i:04}-y" for i in range(9)]])  # fmt: skip
def test_a_list_of_hosts_is_read_as_it_is_written(names: list[str]) -> None:
    assert sorted(hosts(hostlist(names)) or ()) == sorted(names)


@pytest.mark.parametrize("text", ["a[1-", "a[x]", "a[2-1]", "a[1-99999999]", "a,,b", "]"])
def test_what_is_no_list_of_hosts_is_said_to_be_none(text: str) -> None:
    assert hosts(text) is None


@pytest.mark.parametrize("path", ["etc/slurm.conf", "etc/gres.conf", "accounts.sh",
                                  "etc/accounts.cfg", "jobs/x.sbatch", "compose.yaml",
                                  "images.sh"])  # fmt: skip
def test_nothing_in_a_file_stops_its_reader(path: str) -> None:
    for start in ("", "NodeName=", "NodeName=a[", "quality ", "Account - '", "#SBATCH --x=",
                  "services: {a: ", "services: [", "fetch a docker://"):  # fmt: skip
        for text in (HOSTILE, "'", '"', "[", "=", "\0", "é\r"):
            written([File(path, f"{start}{text}\nRealMemory={text}\n")])


def test_lists_without_end_are_left_as_lists() -> None:
    endless = f"n[{','.join(['1-60000'] * 200)}]"
    assert hosts(endless) is None
    lines = [f"NodeName={endless} CPUs=4", *(f"NodeName=a{n}-[1-60000]" for n in range(50))]
    found = written([File("etc/slurm.conf", "\n".join(lines))])
    assert len(found) < 70_000
    assert {thing.name.partition("-")[0] for thing in found[1:]} == {f"a{n}" for n in range(50)}
    assert found[0].name == endless
