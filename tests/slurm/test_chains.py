"""What waits for others and what recurs, on a cluster with accounts and a slurmd for each node; and
that past use moves priorities."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuplan.cli.main import main
from tests.support.chains import CHAIN, EVALUATE
from tests.tools import slurm
from tests.tools.slurm import Cluster

pytestmark = pytest.mark.slurm

INVENTORY = Path(__file__).parents[2] / "examples" / "inventories" / "slurm.yaml"
MANIFEST = f"""\
apiVersion: gpuplan.dev/v1
name: chain
platform:
  target: slurm
  inventory: {INVENTORY}
  slurm:
    controller: slurm-01
    storage: /lustre/gpuplan
    containers: pyxis
    reservations:
    - {{workload: other, start: "2090-01-01T08:00"}}
workloads:
"""
RESERVED = EVALUATE.replace("evaluate", "other")
OTHER = """\
- name: chat
  task: inference
  model: meta-llama/Llama-3.1-8B-Instruct
  precision: bf16
  load: {requests_per_second: 3, input_tokens: 900, output_tokens: 250}
  overrides: {gpu: l40s}
  tenancy: {team: research}
"""
NODES = tuple(f"l40s-0{n}" for n in range(1, 5))
STACK = "/lustre/stack"
FULL = ("--partition=rest", "--nodelist=l40s-04", "--gpus-per-node=l40s:1", "--cpus-per-gpu=124")
# An engine that ends as a file says, once the file is there.
ENGINE = """\
#!/bin/bash
until [[ -e /lustre/end-$SLURM_JOB_NAME ]]; do sleep 0.1; done
exit "$(cat "/lustre/end-$SLURM_JOB_NAME")"
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    slurm.present()
    folder = tmp_path_factory.mktemp("chains")
    (folder / "m.yaml").write_text(MANIFEST + CHAIN + RESERVED + OTHER, encoding="utf-8")
    assert main(["compile", str(folder / "m.yaml"), "-o", str(folder / "stacks")]) == 0
    made = folder / "stacks" / "chain"
    with slurm.machine(folder / "machine", "slurm-01") as cluster:
        files = slurm.overlaid(made, accounting=True, hosts=True)
        assert "ScronParameters=enable" in files["slurm.conf"]
        files["slurm.conf"] += "PriorityCalcPeriod=1\n"
        for name, text in files.items():
            cluster.write(f"/etc/slurm/{name}", text)
        slurm.database(cluster, made)
        cluster.copy(made, STACK)
        cluster.run("chown", "-R", "worker:", STACK)
        for name in ("health.sh", "prolog.sh", "epilog.sh"):
            cluster.write(f"/etc/slurm/gpuplan/{name}", "#!/bin/bash\nexit 0\n", 0o755)
        slurm.stand_in(cluster)
        for name in ("vllm", "axolotl", "torchrun"):
            cluster.write(f"/usr/local/bin/{name}", ENGINE, 0o755)
        slurm.start(cluster, files, nodes=NODES)
        cluster.run("./accounts.sh", cwd=STACK)
        for user, accounts in (("worker", "products,research"), ("munge", "products")):
            words = ("add", "user", f"name={user}", f"account={accounts}")
            cluster.run("sacctmgr", "--immediate", *words)
        cluster.shell("mkdir -p /lustre/gpuplan/{images,chain}; chmod -R 777 /lustre/gpuplan")
        for image in cluster.shell(f"grep -ho '^image=.*' {STACK}/jobs/* | cut -d= -f2").split():
            cluster.write(image, "")
        idle = "sinfo -h -p l40s,rest -o '%t %N' | grep idle | grep l40s || true"
        cluster.until(lambda: cluster.shell(idle), why="nodes register")
        cluster.run(
            "sbatch", "--account=products", *FULL, "--wrap=sleep 600", user="munge", cwd="/tmp"
        )
        yield cluster


@pytest.fixture
def cluster(running: Cluster) -> Iterator[Cluster]:
    yield running
    running.run("scancel", "--user=worker")
    running.until(lambda: not running.shell("squeue -h -u worker"), why="jobs end")
    running.shell("rm -f /lustre/end-*")


def script(cluster: Cluster, *words: str) -> str:
    return cluster.run(*words, user="worker", cwd=STACK).stdout


def numbers(said: str) -> dict[str, str]:
    return dict(re.findall(r"^(\w+): job (\d+)", said, re.MULTILINE))


def reasons(cluster: Cluster) -> dict[str, str]:
    return dict(line.split() for line in cluster.shell("squeue -h -o '%F %r'").splitlines())


def test_each_waits_for_those_before_it_and_is_submitted_once(cluster: Cluster) -> None:
    said = script(cluster, "./submit.sh", "prepare")
    jobs = numbers(said)
    assert list(jobs) == ["prepare", "train", "evaluate"]
    assert f"evaluate: job {jobs['evaluate']}, after {jobs['train']}:{jobs['prepare']}" in said
    for name in ("train", "evaluate"):
        assert reasons(cluster)[jobs[name]] == "Dependency"
    again = numbers(script(cluster, "./submit.sh", "prepare"))
    assert again == jobs, "what waits or runs stays"
    for name, after in (("prepare", "train"), ("train", "evaluate")):
        cluster.write(f"/lustre/end-{name}", "0")
        cluster.until(lambda job=jobs[after]: "RUNNING" in cluster.state(job), why=f"{after} runs")
    assert "CANCELLED" not in cluster.shell("sacct -n -X -o state")


def test_what_waits_for_a_failure_is_cancelled(cluster: Cluster) -> None:
    jobs = numbers(script(cluster, "./submit.sh", "train"))
    assert list(jobs) == ["train", "evaluate"]
    cluster.write("/lustre/end-train", "3")
    cluster.until(lambda: cluster.state(jobs["train"]) in ("FAILED", ""), why="it fails")
    state = f"sacct -n -X -o state -j {jobs['evaluate']}"
    cluster.until(lambda: "CANCELLED" in cluster.shell(state), why="what follows is cancelled")


def test_a_name_of_nothing_is_refused(cluster: Cluster) -> None:
    done = cluster.run("./submit.sh", "train; id", user="worker", cwd=STACK, check=False)
    assert done.returncode == 2
    assert "train; id: no job of this stack" in done.stderr


def test_a_scrontab_keeps_the_lines_of_others(cluster: Cluster) -> None:
    own = "#SCRON --account=products\n0 5 * * 0 true\n"
    cluster.write("/tmp/own", own)
    cluster.run("scrontab", "/tmp/own", user="worker")
    shown = script(cluster, "./scrontab.sh")
    assert f"+30 2 * * 1-5 cd {STACK} && ./submit.sh prepare" in shown
    assert script(cluster, "scrontab", "-l") == own, "only shown"
    script(cluster, "./scrontab.sh", "--yes")
    listed = script(cluster, "scrontab", "-l")
    assert listed.startswith(own)
    assert script(cluster, "./scrontab.sh", "--yes") == "nothing to change\n"
    waits = cluster.shell("squeue -h -t all -n prepare_cron -o '%T %a %P'")
    assert waits.split() == ["PENDING", "products", "l40s"]
    script(cluster, "./scrontab.sh", "--undo")
    assert script(cluster, "scrontab", "-l") == own
    assert not cluster.shell("squeue -h -n prepare_cron")
    cluster.run("scrontab", "-r", user="worker")


def test_what_recurs_is_submitted_at_its_time(cluster: Cluster) -> None:
    """At each minute, instead of once a night."""
    script(cluster, "./scrontab.sh", "--yes")
    text = script(cluster, "scrontab", "-l").replace("30 2 * * 1-5", "* * * * *")
    cluster.write("/tmp/soon", text)
    cluster.run("scrontab", "/tmp/soon", user="worker")
    try:
        names = "squeue -h -o %j"
        cluster.until(lambda: {"prepare", "train", "evaluate"} <= set(
            cluster.shell(names).split()), 100, "the chain is submitted")  # fmt: skip
    finally:
        cluster.run("scrontab", "-r", user="worker")


def test_past_use_moves_priorities(cluster: Cluster) -> None:
    """Two accounts with the same share; of one somebody else has used GPUs all the while."""
    cluster.run("sacctmgr", "--immediate", "modify", "account", "where",
                "name=products,research", "set", "fairshare=10")  # fmt: skip

    def used() -> dict[tuple[str, str], float]:
        shown = cluster.shell("sshare -n -P -a -o account,user,rawusage").splitlines()
        rows = [[cell.strip() for cell in line.split("|")] for line in shown]
        return {(account, user): float(use) for account, user, use in rows if user}

    cluster.until(lambda: used()["products", "munge"] > 100, 90, "use of GPUs is counted")
    assert used()["research", "worker"] < used()["products", "munge"]
    waits = {
        name: cluster.run(
            "sbatch", "--parsable", f"--account={name}", *FULL, "--wrap=true", user="worker",
            cwd="/tmp",
        ).stdout.strip()
        for name in ("products", "research")
    }  # fmt: skip

    def share(name: str) -> int:
        return int(cluster.shell(f"sprio -h -j {waits[name]} -o %F").strip() or 0)

    cluster.until(lambda: share("research") > share("products"), 60, "priorities follow")


def test_nodes_are_kept_for_a_job_that_waits_for_its_time(cluster: Cluster) -> None:
    cluster.run("./reserve.sh", cwd=STACK)
    shown = cluster.shell("scontrol -o show reservation")
    assert "ReservationName=other_reserved StartTime=2090-01-01T08:00:00" in shown
    assert "Accounts=products" in shown
    assert "PartitionName=l40s" in shown
    cluster.run("./reserve.sh", cwd=STACK)
    assert cluster.shell("scontrol -o show reservation") == shown, "as often as you like"
    job = numbers(script(cluster, "./submit.sh", "other"))["other"]
    cluster.until(lambda: reasons(cluster)[job] == "Reservation", why="it waits")
    words = ("--account=research", "--reservation=other_reserved", "--partition=l40s")
    other = cluster.run("sbatch", "--test-only", *words, "--gpus-per-node=l40s:1", "--wrap=true",
                        user="worker", cwd="/tmp", check=False)  # fmt: skip
    assert other.returncode != 0, "it is the account's alone"
    cluster.run("scancel", job)
    cluster.run("./reserve.sh", "--undo", cwd=STACK)
    assert "No reservations" in cluster.shell("scontrol show reservation")
