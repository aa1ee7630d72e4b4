"""What a Slurm stack holds, and what of a manifest or an inventory it refuses or cannot express.
tests/slurm/ gives the files to Slurm itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gpuplan.backends.slurm.names import gpu_type, instance_type, minutes
from gpuplan.cli.main import main
from gpuplan.plan.partitions import PartitionName
from gpuplan.render.hostlist import hostlist
from gpuplan.units import GIB
from tests.support.boxes import PRODUCT
from tests.support.require import require
from tests.support.slurms import CHAT, H100, HEAD, INVENTORY, NOTEBOOKS, TUNE, stack, write
from tests.tools.gpubox import Box

TWO_SWITCHES = """\
switches:
- {name: leaf, hosts: [gpu-1, gpu-1]}
- {name: leaf, hosts: [gpu-1]}
- {name: spine, switches: [leaf, other, spine]}
- {name: empty}
"""


def refused(folder: Path, capsys: pytest.CaptureFixture[str], manifest: str, inventory: str) -> str:
    assert main(["compile", str(write(folder, manifest, inventory)), "-o", str(folder / "o")]) == 2
    assert not (folder / "o").exists()
    return " ".join(capsys.readouterr().err.split())


def job(folder: Path, name: str) -> str:
    return (folder / "jobs" / f"{name}.sbatch").read_text("utf-8")


def options(text: str) -> dict[str, str]:
    return dict(re.findall(r"^#SBATCH --([a-z-]+)=?(.*)$", text, re.MULTILINE))


def test_a_manifest_without_a_cluster_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = "\n".join(line for line in HEAD.splitlines() if "slurm:" not in line) + "\n"
    shown = refused(tmp_path, capsys, head + CHAT, INVENTORY + H100)
    assert "target 'slurm' needs to know its cluster" in shown
    assert "write platform.slurm: {controller: HOST, storage: /FOLDER, containers: pyxis}" in shown
    assert "cluster.yaml:4:3" in shown


@pytest.mark.parametrize(
    "field",
    ["controller: 'a b'", "storage: relative", "storage: '/a b'", "storage: '/a$(x)'",
     "storage: '/a/../b'", "containers: docker", "database: '#'"],
)  # fmt: skip
def test_a_field_that_slurm_could_misread_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], field: str
) -> None:
    name = field.partition(":")[0]
    spec = {"controller": "ctl", "storage": "/lustre", "containers": "pyxis"}
    text = ", ".join([field, *(f"{n}: {v}" for n, v in spec.items() if n != name)])
    head = re.sub(r"slurm: \{.*\}", lambda _: f"slurm: {{{text}}}", HEAD)
    shown = refused(tmp_path, capsys, head + CHAT, INVENTORY + H100)
    assert name in shown
    assert "cluster.yaml:6:" in shown or "cluster.yaml:7:" in shown


def test_no_inventory_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = HEAD.replace("  inventory: inventory.yaml\n", "  gpus: [h100-sxm-80gb]\n")
    shown = refused(tmp_path, capsys, head + CHAT, INVENTORY + H100)
    assert "target 'slurm' needs an inventory of the hosts" in shown
    assert "cluster.yaml:4:11" in shown


def test_facts_that_a_node_lacks_are_named_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts = """\
- names: [bare]
  gpus: [{type: h100-sxm-80gb, count: 8}]
- names: [odd, default]
  sockets: 3
  cpu_cores: 64
  memory: 1 TiB
  gpus: [{type: h100-sxm-80gb, count: 8}]
"""
    shown = refused(tmp_path, capsys, HEAD + CHAT, INVENTORY + hosts)
    assert "'sockets', cores" in shown
    assert "memory of bare is not stated" in shown
    assert "odd has 64 cores on 3 sockets" in shown
    assert "a node of Slurm cannot be called 'default'" in shown


def test_switches_that_are_no_tree_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = refused(tmp_path, capsys, HEAD + CHAT, INVENTORY + H100 + TWO_SWITCHES)
    for said in (
        "two switches are called 'leaf'",
        "'gpu-1' is at 'leaf' and at 'leaf'",
        "switch 'spine' names 'other', which is no switch",
        "switch 'empty' needs either hosts or switches",
        "gpu-2 is at no switch",
        "switch 'spine' is below itself",
    ):
        assert said in shown


def test_time_limits_are_the_predictions(tmp_path: Path) -> None:
    made = stack(tmp_path, TUNE, TUNE.replace("tune", "short") + "  deadline: 90 min\n", CHAT)
    plan = (made / "plan.yaml").read_text("utf-8")
    found = re.search(r"name: time_to_finish\n.*?high: ([\d.]+)", plan, re.DOTALL)
    assert found
    assert options(job(made, "tune"))["time"] == minutes(float(found[1]))
    assert options(job(made, "short"))["time"] == "01:30:00"
    assert options(job(made, "chat"))["time"] == "UNLIMITED"


def test_a_job_asks_for_what_the_plan_gives(tmp_path: Path) -> None:
    made = stack(tmp_path, TUNE, NOTEBOOKS)
    asked = options(job(made, "tune"))
    assert asked["gpus-per-node"] == "h100:1"
    assert asked["cpus-per-gpu"] == "12", "six cores of two threads"
    assert asked["partition"] == "h100-sxm-80gb"
    assert "requeue" in asked
    lab = options(job(made, "lab"))
    assert lab["gpus-per-node"] == "1g.12gb:1" or lab["gpus-per-node"].startswith("1g.")
    assert lab["array"] == "0-2"
    assert "AutoDetect=nvml" in (made / "etc/gres.conf").read_text("utf-8")
    assert "cut_gpu gpu-1 " in (made / "mig.sh").read_text("utf-8")


def test_a_node_keeps_cores_and_a_tenth_of_its_memory_for_the_system(tmp_path: Path) -> None:
    """Two cores of each NUMA node; jobs have whole GiB."""
    conf = (stack(tmp_path, CHAT) / "etc/slurm.conf").read_text("utf-8")
    (node,) = (line for line in conf.splitlines() if line.startswith("NodeName=gpu-1 "))
    said = dict(part.split("=", 1) for part in node.split())
    assert said["CoreSpecCount"] == "4"
    assert int(said["RealMemory"]) == 2048 * 9 // 10 * 1024


def test_what_gives_way_may_use_every_node(tmp_path: Path) -> None:
    made = stack(tmp_path, TUNE + "  preemptible: true\n  tenancy: {team: lab}\n")
    asked = options(job(made, "tune"))
    assert asked["partition"] == "h100-sxm-80gb,spare"
    assert asked["account"] == "lab_spare"
    assert asked["qos"] == "normal-preemptible"
    accounts = (made / "etc/accounts.cfg").read_text("utf-8")
    assert "Account - 'lab':Description='lab':Organization='cluster':Fairshare=1:" in accounts


def test_a_tenants_own_nodes_admit_no_other(tmp_path: Path) -> None:
    own = TUNE + "  tenancy: {team: lab, isolation: node}\n"
    conf = (stack(tmp_path, own, CHAT) / "etc/slurm.conf").read_text("utf-8")
    lines = {line.split()[0]: line for line in conf.splitlines() if "PartitionName" in line}
    assert "AllowAccounts=lab,lab_spare" in lines["PartitionName=h100-sxm-80gb-lab"]
    own_node = re.search(r"Nodes=(\S+)", lines["PartitionName=h100-sxm-80gb-lab"])
    assert own_node
    assert own_node[1] not in lines["PartitionName=spare"]


def test_an_apptainer_starts_what_pyxis_would(tmp_path: Path) -> None:
    made = stack(tmp_path, CHAT, head=HEAD.replace("pyxis", "apptainer"))
    text = job(made, "chat")
    assert "apptainer exec --nv" in text
    assert "--container-image" not in text
    assert re.search(r"^image=\S+\.sif$", text, re.MULTILINE)
    images = (made / "images.sh").read_text("utf-8")
    assert re.search(r"^fetch vllm-openai-\w+\.sif docker://vllm/vllm-openai", images, re.MULTILINE)
    assert not re.search(r"docker://\S+:\S+@sha256", images), "a tag beside a digest is refused"


def test_registries_are_separated_as_enroot_wants(tmp_path: Path) -> None:
    head = HEAD.replace(
        "workloads:", "  network: {images: {docker.io: reg.example.org/hub}}\nworkloads:"
    )
    images = (stack(tmp_path, CHAT, head=head) / "images.sh").read_text("utf-8")
    assert "docker://reg.example.org#hub/vllm/vllm-openai" in images


def test_what_is_not_expressed_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hosts = H100.replace("numa_node: 0}", "numa_node: 0, nvlink_domain: a}")
    hosts = hosts.replace("numa_node: 1}", "numa_node: 1, nvlink_domain: a}")
    switches = "switches:\n- {name: leaf, hosts: [gpu-1, gpu-2]}\n"
    own = CHAT.replace("chat", "own") + "  command: [serve]\n"
    stack(tmp_path, CHAT, own, NOTEBOOKS, hosts=hosts, more=switches)
    shown = " ".join(capsys.readouterr().err.split())
    assert "blocks of NVLink domains or a tree of switches, not both" in shown
    assert "GPUs are cut as the plan says and not for each job" in shown
    assert re.search(r"chat: its \d replicas have an address each", shown)
    assert re.search(r"own: its \d replicas all listen on port 8000", shown)


def test_a_checked_stack_has_no_errors(tmp_path: Path) -> None:
    made = stack(tmp_path, CHAT, TUNE)
    assert main(["check", str(made), "--fail-on", "error"]) == 0
    (made / "etc/slurm.conf").write_text("ClusterName=x\n", encoding="utf-8")
    assert main(["check", str(made), "--fail-on", "error"]) == 1


def test_a_change_of_nodes_is_a_change_of_the_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = stack(tmp_path / "a", CHAT)
    two = stack(tmp_path / "b", CHAT, hosts=H100.replace("gpu-2]", "gpu-2, gpu-3]"))
    capsys.readouterr()
    main(["diff", str(one), str(two)])
    shown = capsys.readouterr().out
    assert "etc/slurm.conf" in shown
    assert "gpu-3" in shown


def test_gpus_are_cut_once_and_as_the_plan_says(tmp_path: Path) -> None:
    made = stack(tmp_path, NOTEBOOKS)
    machine = Box(tmp_path / "machine", 8, PRODUCT)

    def cut(node: str) -> subprocess.CompletedProcess[str]:
        path = f"{machine.root / 'bin'}:{os.environ['PATH']}"
        words = ["bash", made / "mig.sh", node]
        environment = os.environ | {"PATH": path}
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=False)

    assert cut("gpu-2").returncode == 0
    assert machine.calls("-cgi") == [], "another node's"
    for _ in range(2):
        done = cut("gpu-1")
        assert done.returncode == 0, done.stderr
    (call,) = machine.calls("-cgi")
    assert re.fullmatch(r"mig -i 7 -cgi (1g\.\w+:\d,?)+ -C", call)
    (machine.root / "instances-7").write_text(
        "|   7  MIG 3g.40gb      9        1          0:4     |\n"
    )
    done = cut("gpu-1")
    assert done.returncode == 1
    assert "is cut as 3g.40gb:0, and the plan says 1g." in done.stderr


def test_a_first_manifest_compiles(tmp_path: Path) -> None:
    manifest = str(tmp_path / "first.yaml")
    answers = ("--target", "slurm", "--requests-per-second", "1")
    assert main(["init", *answers, "-o", manifest]) == 0
    assert main(["compile", manifest, "-o", str(tmp_path / "stacks")]) == 0


def test_fields_without_effect_elsewhere_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    switches = "switches:\n- {name: leaf, hosts: [gpu-1, gpu-2]}\n"
    head = HEAD.replace("target: slurm", "target: kubernetes")
    path = write(tmp_path, head + CHAT, INVENTORY + H100 + switches)
    assert main(["compile", str(path), "-o", str(tmp_path / "stacks")]) == 0
    shown = " ".join(capsys.readouterr().err.split())
    assert "platform.slurm has no effect on target 'kubernetes'" in shown
    assert "'switches' have no effect on target 'kubernetes'" in shown


def test_hosts_of_other_stacks_are_not_in_the_cluster(tmp_path: Path) -> None:
    held = "allocations:\n- stack: other\n  hosts:\n  - {name: gpu-1, gpus: 8}\n"
    held += "  - {name: own-1, gpus: 4}\n"
    others = "- names: [own-1]\n  gpus: [{type: l40s, count: 4}]\n"
    switches = "switches:\n- {name: leaf, hosts: [gpu-1]}\n- {name: rest, hosts: [gpu-2]}\n"
    made = stack(tmp_path, TUNE, hosts=H100 + others, more=switches + held)
    for name in ("slurm.conf", "topology.conf", "gres.conf"):
        text = (made / "etc" / name).read_text("utf-8")
        assert "gpu-2" in text
        assert "gpu-1" not in text
        assert "own-1" not in text


def test_a_shell_reads_the_scripts_without_a_remark(tmp_path: Path) -> None:
    if shutil.which("shellcheck") is None:
        require("docker", "shellcheck is not installed (see tests/tools/docker-setup)")
    made = stack(tmp_path, CHAT, TUNE + "  secrets: {HF_TOKEN: {config: t}}\n", NOTEBOOKS)
    scripts = [p for pattern in ("*.sh", "node/*.sh", "jobs/*") for p in made.glob(pattern)]
    assert len(scripts) == 12
    # What a trap calls is reached; what the container's shell expands is quoted.
    words = ["shellcheck", "--exclude=SC2016,SC2317", *scripts]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert all(script.stat().st_mode & 0o100 for script in scripts)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["a-01", "a-02", "a-03"], "a-[01-03]"),
        (["a-1", "a-2", "a-10"], "a-[1-2],a-10"),
        (["a9", "a10", "b"], "a10,a9,b"),
        (["r1.c2.example", "r1.c3.example"], "r1.c2.example,r1.c3.example"),
        (["x1", "x3", "x4", "x7"], "x[1,3-4,7]"),
        (["007", "008"], "[007-008]"),
    ],
)
def test_hosts_are_listed_as_slurm_does(names: list[str], text: str) -> None:
    assert sorted(hostlist(names).split(",")) == sorted(text.split(","))


@pytest.mark.parametrize(
    ("identifier", "product", "kind"),
    [
        ("h100-sxm-80gb", "NVIDIA-H100-80GB-HBM3", "h100"),
        ("a100-sxm-80gb", "NVIDIA-A100-SXM4-80GB", "a100"),
        ("l40s", "NVIDIA-L40S", "l40s"),
        ("rtx-pro-6000-server", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "rtx_pro_6000"),
        ("own", "", "own"),
    ],
)
def test_gpu_types_are_in_the_products_name(identifier: str, product: str, kind: str) -> None:
    assert gpu_type(identifier, product) == kind


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1, "00:01:00"), (61, "00:02:00"), (86399, "1-00:00:00"), (93780, "1-02:03:00")],
)  # fmt: skip
def test_times_are_rounded_up(seconds: float, text: str) -> None:
    assert minutes(seconds) == text


@pytest.mark.parametrize(
    ("profile", "memory_bytes", "kind"),
    [
        ("1g.18gb", 16 * GIB, "1g.16gb"),
        ("3g.71gb", 69.5 * GIB, "3g.70gb"),
        ("1g.10gb+me", 9.75 * GIB, "1g.10gb"),
        ("4g.40gb", 40e9, "4g.40gb"),
        ("1g.24gb+me.all", 24e9, "1g.24gb"),
    ],
)
def test_instances_have_the_names_that_slurm_finds(
    profile: str, memory_bytes: float, kind: str
) -> None:
    assert instance_type(PartitionName(profile), int(memory_bytes)) == kind
