"""Workloads that wait for others and recur: what is refused at its line, what targets say."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gpuplan.backends.slurm.topology import near
from gpuplan.cli.main import main
from gpuplan.plan.outside.cluster import Cluster, Machine, Switch
from tests.backends.test_docker import read
from tests.support.boxes import PRODUCT, stack, text
from tests.support.chains import CHAIN, EVALUATE, PREPARE, TRAIN
from tests.support.require import require
from tests.support.samples import HOSTILE, training_plan
from tests.support.slurms import CHAT, HEAD, INVENTORY, write
from tests.tools.gpubox import Box

L40S = """\
- names: [gpu-1, gpu-2]
  sockets: 2
  cpu_cores: 64
  memory: 768 GiB
  gpus: [{type: l40s, count: 4}]
"""
KUBERNETES = """\
apiVersion: gpuplan.dev/v1
name: chain
platform: {target: kubernetes, gpus: [l40s]}
workloads:
"""


def said(folder: Path, workloads: str, capsys: pytest.CaptureFixture[str]) -> str:
    path = write(folder, HEAD + workloads, INVENTORY + L40S)
    capsys.readouterr()
    assert main(["compile", str(path), "-o", str(folder / "stacks")]) == 2
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("workloads", "message", "line"),
    [
        (PREPARE + "  after: [trian]\n" + TRAIN, "unknown workload 'trian'", "15:11"),
        (PREPARE + "  after: [prepare]\n", "'prepare' waits for 'prepare': itself", "15:11"),
        (PREPARE + "  after: [chat]\n" + CHAT, "'chat' is of task 'inference'", "15:11"),
        (PREPARE + "  after: [train, train]\n" + TRAIN, "'train' stands twice in 'after'", "15:18"),
        (
            PREPARE + "  after: [evaluate]\n" + TRAIN + "  after: [prepare]\n" + EVALUATE
            + "  after: [train]\n",
            "'prepare' waits for 'evaluate' waits for 'train' waits for 'prepare': none would",
            "15:11",
        ),
        (
            TRAIN + PREPARE + "  after: [train]\n  schedule: 0 3 * * *\n",
            "'prepare' has both a schedule and others to wait for",
            "24:13",
        ),
        (CHAT + "  schedule: 0 3 * * *\n", "'schedule' is not used by an inference", "14:3"),
    ],
)  # fmt: skip
def test_what_would_never_start_is_refused_at_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], workloads: str, message: str, line: str
) -> None:
    text = said(tmp_path, workloads, capsys)
    assert message in text
    assert f"cluster.yaml:{line}" in text


def test_only_what_another_can_wait_for_is_proposed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither itself nor a service, which never ends."""
    text = said(tmp_path, PREPARE + "  after: [trian]\n" + TRAIN + CHAT, capsys)
    assert "did you mean 'train'?" in text
    assert "name one of: train " in text + " "
    text = said(tmp_path, PREPARE + "  after: [zz]\n" + CHAT, capsys)
    assert "remove it: no other ends" in text


@pytest.mark.parametrize(
    "schedule",
    [
        "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "* * * *",
        "* * * * * *", "*  * * * *", "5-1 * * * *", "*/0 * * * *", "a * * * *", "@daily",
        "* * * * * ; id", "1, * * * *", "%", "# * * * *", "'* * * * *'", HOSTILE, "",
    ],
)  # fmt: skip
def test_a_schedule_that_is_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], schedule: str
) -> None:
    text = said(tmp_path, f"{PREPARE}  schedule: {json.dumps(schedule)}\n", capsys)
    assert "'schedule'" in text
    assert "cluster.yaml:15:13" in text


@pytest.mark.parametrize("name", ["a b", "a%b", "a#b", 'a"b', "a'b", "$(id)", "-x", ""])
def test_a_name_that_is_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    text = said(tmp_path, f"{PREPARE}  after: [{json.dumps(name)}]\n", capsys)
    assert "'after'" in text
    assert "cluster.yaml:15:11" in text


def test_the_scripts_of_a_chain_have_no_remark_of_a_shell(tmp_path: Path) -> None:
    if shutil.which("shellcheck") is None:
        require("docker", "shellcheck is not installed (see tests/tools/docker-setup)")
    path = write(tmp_path, HEAD + CHAIN, INVENTORY + L40S)
    assert main(["compile", str(path), "-o", str(tmp_path / "stacks")]) == 0
    made = tmp_path / "stacks" / "cluster"
    words = ["shellcheck", "--exclude=SC2016,SC2317", made / "submit.sh", made / "scrontab.sh"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    readme = (made / "README.md").read_text("utf-8")
    assert "`evaluate` starts when `train` and `prepare` have ended well" in readme
    assert "- `prepare`: `30 2 * * 1-5`" in readme


def test_compose_runs_one_after_the_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever asks for the last one gets those before it."""
    chat = CHAT.replace("second: 25", "second: 2") + "  after: [train]\n  overrides: {gpu: l40s}\n"
    made = stack(tmp_path, text(CHAIN, chat, gpu="l40s"))
    shown = " ".join(capsys.readouterr().err.split())
    assert "schedule has no effect" not in shown
    assert (made / "gpuplan-box-prepare.timer").exists()
    assert "chat: it does not wait for train" in shown
    product = "NVIDIA L40S"
    assert Box(tmp_path / "machine", 8, product, cores=32).assign(made).returncode == 0
    assert product != PRODUCT
    services = read(made, "evaluate")["services"]
    needs = {n: sorted(s.get("depends_on", {})) for n, s in services.items() if "deploy" in s}
    assert needs["evaluate-0"] == ["prepare-0", "train-0"]
    assert needs["train-0"] == ["prepare-0"]
    assert needs["chat-0"] == []
    done = services["train-0"]["depends_on"]["prepare-0"]["condition"]
    assert done == "service_completed_successfully"
    assert {"prepare-0"} == set(read(made, "prepare")["services"]) - {"chat-0"}


def test_a_cluster_of_kubernetes_says_that_it_orders_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.yaml").write_text(KUBERNETES + CHAIN, encoding="utf-8")
    assert main(["compile", str(tmp_path / "m.yaml"), "-o", str(tmp_path / "stacks")]) == 0
    shown = " ".join(capsys.readouterr().err.split())
    assert "'train': after has no effect on target 'kubernetes'" in shown


def slurm_head(reservation: str) -> str:
    old = "  slurm: {controller: ctl-1, storage: /lustre/gpuplan, containers: pyxis}\n"
    assert old in HEAD
    kept = old.rstrip("}\n") + f", reservations: [{reservation}]}}\n"
    return HEAD.replace(old, kept)


@pytest.mark.parametrize(
    ("reservation", "message"),
    [
        ("{workload: prepar, start: '2090-01-01T08:00'}", "unknown workload 'prepar'"),
        ("{workload: prepare, start: tomorrow}", "'tomorrow' is no time"),
        ("{workload: prepare, start: '2090-01-01'}", "is no local time"),
        ("{workload: prepare, start: '2090-01-01T08:00Z'}", "is no local time"),
        ("{workload: prepare, start: '2090-02-30T08:00'}", "is no time"),
        ("{workload: prepare, start: '2090-01-01T08:00; id #%'}", "is no time"),
        ("{workload: 'a b', start: '2090-01-01T08:00'}", "'a b'"),
        (
            (
                "{workload: prepare, start: '2090-01-01T08:00'},"
                " {workload: prepare, start: '2091-01-01T08:00'}"
            ),
            "two reservations are for 'prepare'",
        ),
    ],
)
def test_a_reservation_that_is_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], reservation: str, message: str
) -> None:
    path = write(tmp_path, slurm_head(reservation) + PREPARE, INVENTORY + L40S)
    capsys.readouterr()
    assert main(["compile", str(path), "-o", str(tmp_path / "stacks")]) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert message in shown
    assert "cluster.yaml:7:" in shown


def test_a_reservation_is_kept_as_long_as_its_job_may_take(tmp_path: Path) -> None:
    kept = "{workload: prepare, start: '2090-01-01T08:00', duration: 12 h}"
    path = write(tmp_path, slurm_head(kept) + PREPARE, INVENTORY + L40S)
    assert main(["compile", str(path), "-o", str(tmp_path / "stacks")]) == 0
    made = tmp_path / "stacks" / "cluster"
    script = (made / "reserve.sh").read_text("utf-8")
    assert "reserve prepare_reserved PartitionName=l40s StartTime=2090-01-01T08:00:00" in script
    assert "Duration=12:00:00 NodeCnt=1 Accounts=products" in script
    job = (made / "jobs/prepare.sbatch").read_text("utf-8")
    assert "#SBATCH --reservation=prepare_reserved\n" in job


def cluster_of(*switches: Switch, blocks: int = 0, size: int = 4) -> Cluster:
    common = {"gpu": "g", "gpu_product": "", "gpus": 4, "sockets": 1, "cores": 64,
              "threads_per_core": 1, "memory_bytes": 1, "kept_cores": 0,
              "kept_memory_bytes": 0}  # fmt: skip
    machines = tuple(
        Machine(
            names=tuple(f"n{b * size + i}" for i in range(size)), nvlink_domain=f"d{b}", **common
        )  # type: ignore[arg-type]
        for b in range(blocks)
    )
    return Cluster(
        controller="c", database="c", storage="/s", containers="pyxis", machines=machines,
        switches=switches,
    )  # fmt: skip


LEAVES = tuple(Switch(name=f"s{n}", hosts=tuple(f"n{n * 4 + i}" for i in range(4))) for n in (0, 1))
EIGHT = tuple(f"n{n}" for n in range(8))


@pytest.mark.parametrize(
    ("cluster", "nodes", "count", "option"),
    [
        (cluster_of(*LEAVES), EIGHT, 1, None),
        (cluster_of(*LEAVES), EIGHT, 4, ("switches", 1)),
        (cluster_of(*LEAVES), EIGHT, 5, ("switches", 2)),
        (cluster_of(*LEAVES), EIGHT[2:6], 3, ("switches", 2)),
        (cluster_of(), EIGHT, 4, None),
        (cluster_of(blocks=2), EIGHT, 8, ("segment", 4)),
        (cluster_of(blocks=2), EIGHT, 6, ("segment", 3)),
        (cluster_of(blocks=2), EIGHT, 7, None),
        (cluster_of(blocks=2), EIGHT[:4], 4, ("segment", 4)),
    ],
)
def test_a_run_asks_for_nodes_that_are_near(
    cluster: Cluster, nodes: tuple[str, ...], count: int, option: tuple[str, int] | None
) -> None:
    (work,) = training_plan().workloads
    work = replace(work, nodes_per_replica=count)
    assert near(cluster, nodes, work) == option
    together = near(cluster, nodes, replace(work, one_domain=True))
    assert together == (None if count == 1 else ("segment", count))


def test_nccl_is_told_the_adapters_that_the_inventory_names(tmp_path: Path) -> None:
    root = Path(__file__).parents[2] / "examples"
    manifest = (root / "slurm.yaml").read_text("utf-8").replace("inventories/slurm", "inventory")
    inventory = (root / "inventories/slurm.yaml").read_text("utf-8")

    def said(text: str, machines: str) -> str:
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        path = write(folder, text, machines)
        assert main(["compile", str(path), "-o", str(folder / "stacks")]) == 0
        job = (folder / "stacks/slurm/jobs/full-70b.sbatch").read_text("utf-8")
        return "".join(line for line in job.splitlines() if "NCCL" in line)

    names = ",".join(f"mlx5_{n}" for n in range(8))
    assert said(manifest, inventory) == f'export NCCL_IB_HCA="${{NCCL_IB_HCA-={names}}}"'
    assert said(manifest, inventory.replace("name: mlx5_3, ", "")) == "", "one has no name"
    assert said(manifest, inventory.replace("mlx5_3", "'a$(id)'")) == ""
    ethernet = manifest.replace("kind: infiniband", "kind: ethernet")
    assert said(ethernet, inventory) == 'export NCCL_IB_DISABLE="${NCCL_IB_DISABLE-1}"'
