"""The example's cluster really runs: controller, database and sixteen slurmd, with jobs that sleep
where containers would be."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuplan.cli.main import main
from gpuplan.plan.model import Plan, by_name
from tests.support.plans import read_plan
from tests.support.samples import HOSTILE
from tests.tools import slurm
from tests.tools.slurm import Cluster

pytestmark = pytest.mark.slurm

EXAMPLE = Path(__file__).parents[2] / "examples" / "slurm.yaml"
STACK = "/lustre/stack"
TENANTS = ("training", "products", "research")
SECRET = "/lustre/gpuplan/slurm/secrets/full-70b.env"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stacks")
    assert main(["compile", str(EXAMPLE), "-o", str(folder)]) == 0
    return folder / "slurm"


@pytest.fixture(scope="module")
def plan(made: Path) -> Plan:
    return read_plan(made)


@pytest.fixture(scope="module")
def nodes(plan: Plan) -> int:
    """Of the run, which has all of their GPUs."""
    return by_name(plan.workloads, "full-70b").nodes_per_replica


@pytest.fixture(scope="module")
def running(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    slurm.present()
    folder = tmp_path_factory.mktemp("slurm")
    with slurm.machine(folder / "machine", slurm.controller(made)) as cluster:
        files = slurm.overlaid(made, accounting=True, hosts=True)
        for name, text in files.items():
            cluster.write(f"/etc/slurm/{name}", text)
        slurm.database(cluster, made)
        cluster.copy(made, STACK)
        cluster.run("chown", "-R", "worker:", STACK)
        for name in ("health.sh", "prolog.sh", "epilog.sh"):
            text = (made / "node" / name).read_text("utf-8")
            cluster.write(f"/etc/slurm/gpuplan/{name}", text, 0o755)
        names = cluster.shell("scontrol show hostnames 'h100-[01-08],a100-[01-04],l40s-[01-04]'")
        for name in names.split():
            gpus(cluster, name, 4 if name.startswith("l40s") else 8)
        slurm.stand_in(cluster)
        slurm.start(cluster, files, nodes=tuple(names.split()))
        cluster.run("./accounts.sh", cwd=STACK)
        for tenant in TENANTS:
            accounts = f"account={tenant},{tenant}_spare"
            cluster.run("sacctmgr", "--immediate", "add", "user", "name=worker", accounts)
        cluster.shell(
            "mkdir -p /lustre/gpuplan/{images,slurm/secrets}; chmod -R 777 /lustre/gpuplan"
        )
        images = cluster.shell(f"grep -ho '^image=.*' {STACK}/jobs/* | cut -d= -f2")
        for image in images.split():
            cluster.write(image, "")
        cluster.write(SECRET, "HF_TOKEN=a b\"$(x) 'c'\n", 0o600, "worker")
        cluster.run("ln", "-s", SECRET, "/run/gpuplan-secrets")
        cluster.until(lambda: "unk" not in cluster.shell("sinfo -h -o %t"), why="nodes register")
        yield cluster


@pytest.fixture
def cluster(running: Cluster) -> Iterator[Cluster]:
    """With no job."""
    yield running
    running.run("scancel", "--user=worker")
    running.until(lambda: not running.shell("squeue -h"), why="jobs end")
    running.shell("rm -rf /lustre/ran")


def gpus(cluster: Cluster, node: str, count: int) -> None:
    cluster.write(f"/gpus-{node}", "".join(f"{number}, 0\n" for number in range(count)))


def submit(cluster: Cluster, *words: str) -> str:
    done = cluster.run("sbatch", "--parsable", *words, user="worker", cwd=STACK)
    return done.stdout.strip()


def runs(cluster: Cluster, job: str) -> None:
    cluster.until(lambda: set(cluster.state(job).split()) == {"RUNNING"}, why=f"{job} runs")


def ran(cluster: Cluster, name: str) -> str:
    return cluster.run("bash", "-c", f"cat /lustre/ran/{name}/*", check=False).stdout


def now(cluster: Cluster, job: str) -> None:
    """A job that was requeued waits for two minutes. Nodes refuse it in the second in which they
    learn that the run before is over."""
    cluster.until(lambda: "PENDING" in cluster.state(job), why=f"{job} is requeued")
    cluster.run("scontrol", "update", f"jobid={job}", "StartTime=now+4")


def test_all_of_the_plan_runs_at_once_and_no_more_does(
    cluster: Cluster, made: Path, plan: Plan, nodes: int
) -> None:
    jobs = [submit(cluster, f"jobs/{path.name}") for path in sorted((made / "jobs").iterdir())]
    for job in jobs:
        runs(cluster, job)
    more = submit(cluster, "--partition=h100-sxm-80gb", "--gpus-per-node=h100:1", "--wrap=true",
                  "--account=products", "--qos=normal")  # fmt: skip
    beyond = submit(cluster, "--partition=h100-sxm-80gb", "--gpus-per-node=h100:1",
                    "--wrap=true", "--account=training", "--qos=normal")  # fmt: skip
    waits = "squeue -h -o %r -j "
    cluster.until(lambda: "Resources" in cluster.shell(waits + more)
                  or "AssocGrp" in cluster.shell(waits + more))  # fmt: skip
    cluster.until(lambda: "AssocGrp" in cluster.shell(waits + beyond), why="over its share")
    cluster.until(lambda: ran(cluster, "full-70b").count(f"torchrun --nnodes={nodes}") == nodes)
    text = ran(cluster, "full-70b")
    assert {f"--node-rank={n} --master-addr=h100-01 " for n in range(nodes)} == set(
        re.findall(r"--node-rank=\d --master-addr=\S+ ", text)
    )
    assert "HF_TOKEN=a b\"$(x) 'c'\n" in text
    assert "SLURM_CPUS_ON_NODE=96\n" in text
    served = by_name(plan.workloads, "assistant").replicas
    count = served + by_name(plan.workloads, "desks").replicas

    def ports() -> list[str]:
        found = re.findall(r"vllm serve .*--port=(\d+)", ran(cluster, "assistant"))
        return found + re.findall(r"--ServerApp.port=(\d+)", ran(cluster, "desks"))

    cluster.until(lambda: len(set(ports())) == len(ports()) == count, why="each has a port")
    endpoints = cluster.shell("cat /lustre/gpuplan/slurm/endpoints/*/*").split()
    assert sorted(e.partition(":")[2] for e in endpoints) == sorted(ports())
    assert {"l40s-01:8000", "l40s-01:8001"} <= set(endpoints)
    files = re.findall(r"--input-file=\S+requests-(\d)\.jsonl", ran(cluster, "labels"))
    assert sorted(files) == [str(n) for n in range(by_name(plan.workloads, "labels").replicas)]
    cluster.run("scancel", *jobs, more, beyond)
    folder = "ls -A /lustre/gpuplan/slurm/endpoints/assistant"
    cluster.until(lambda: not cluster.shell(folder), why="addresses go with their jobs")


def test_what_gives_way_is_told_requeued_and_goes_on(cluster: Cluster) -> None:
    batch = submit(cluster, "--array=0", "--partition=a100-sxm-80gb", "--nodelist=a100-01",
                   "jobs/labels.sbatch")  # fmt: skip
    runs(cluster, batch)
    cluster.until(lambda: "vllm run-batch" in ran(cluster, "labels"))
    other = submit(cluster, "--account=research", "--qos=normal", "--partition=a100-sxm-80gb",
                   "--nodelist=a100-01", "--gpus-per-node=a100:1", "--cpus-per-gpu=120",
                   "--wrap=sleep 1")  # fmt: skip
    cluster.until(lambda: "PENDING" in cluster.state(batch), why="it gives way")
    assert "told to end" in ran(cluster, "labels"), "with time to end"
    cluster.until(lambda: cluster.state(other) in ("COMPLETED", ""), why="the other one ends")
    now(cluster, batch)
    runs(cluster, batch)
    cluster.until(lambda: "SLURM_RESTART_COUNT=1\n" in ran(cluster, "labels"))


def test_work_that_does_not_give_way_is_left_alone(cluster: Cluster) -> None:
    words = ("--partition=a100-sxm-80gb", "--nodelist=a100-01", "--gpus-per-node=a100:1",
             "--cpus-per-gpu=120")  # fmt: skip
    low = submit(cluster, "--account=research", "--qos=low", *words, "--wrap=sleep 100")
    runs(cluster, low)
    high = submit(cluster, "--account=training", "--qos=critical", *words, "--wrap=true")
    cluster.until(lambda: "PENDING" in cluster.state(high))
    assert cluster.state(low) == "RUNNING"


def test_a_run_that_is_told_of_its_end_goes_on_later(cluster: Cluster, nodes: int) -> None:
    """As Slurm does it a while before the time limit."""
    job = submit(cluster, "jobs/full-70b.sbatch")
    runs(cluster, job)
    cluster.until(lambda: ran(cluster, "full-70b").count(f"torchrun --nnodes={nodes}") == nodes)
    cluster.run("scancel", "--batch", "--signal=TERM", job)
    now(cluster, job)
    runs(cluster, job)
    cluster.until(lambda: ran(cluster, "full-70b").count("SLURM_RESTART_COUNT=1\n") == nodes)
    told = cluster.run("bash", "-c", "grep -l 'told to end' /lustre/ran/full-70b/*").stdout
    assert len(told.split()) == nodes, "each of its processes, once or again"


def test_what_is_cancelled_stays_so(cluster: Cluster, nodes: int) -> None:
    job = submit(cluster, "jobs/full-70b.sbatch")
    runs(cluster, job)
    cluster.until(lambda: ran(cluster, "full-70b").count(f"torchrun --nnodes={nodes}") == nodes)
    cluster.run("scancel", job)
    cluster.until(lambda: cluster.state(job) in ("CANCELLED", ""), why="it ends")
    cluster.until(lambda: not cluster.shell("squeue -h"), why="nothing comes back")
    assert "SLURM_RESTART_COUNT=1" not in ran(cluster, "full-70b")


def test_a_run_that_fails_is_not_started_again(cluster: Cluster) -> None:
    cluster.write("/usr/local/bin/torchrun", "#!/bin/bash\nexit 3\n", 0o755)
    try:
        job = submit(cluster, "jobs/full-70b.sbatch")
        cluster.until(lambda: cluster.state(job) == "FAILED", why="it fails")
    finally:
        slurm.stand_in(cluster)


def test_secrets_that_others_can_read_are_refused(cluster: Cluster) -> None:
    cluster.run("chmod", "644", SECRET)
    try:
        job = submit(cluster, "jobs/full-70b.sbatch")
        cluster.until(lambda: cluster.state(job) == "FAILED", why="it is refused")
    finally:
        cluster.run("chmod", "600", SECRET)
    log = cluster.shell(f"cat /lustre/gpuplan/slurm/full-70b-{job}.log")
    assert f"{SECRET} has to be a file that you alone can read" in log
    assert "HF_TOKEN" in log


def test_a_node_that_lost_a_gpu_is_drained_and_its_job_waits(cluster: Cluster) -> None:
    gpus(cluster, "l40s-01", 3)
    show = "scontrol show node l40s-01 | grep -E 'State|Reason'"
    try:
        job = submit(cluster, "--account=products", "--qos=normal", "--partition=l40s",
                     "--gpus-per-node=l40s:1", "--nodelist=l40s-01", "--wrap=sleep 50")  # fmt: skip
        cluster.until(lambda: "DRAIN" in cluster.shell(show), why="the node is drained")
        cluster.until(lambda: "3 GPUs of 4" in cluster.shell(show), why="with the reason")
        cluster.until(lambda: cluster.state(job) == "PENDING", why="the job waits")
    finally:
        gpus(cluster, "l40s-01", 4)
        cluster.run("scontrol", "update", "nodename=l40s-01", "state=RESUME", check=False)


def test_errors_of_memory_ask_for_a_start_of_the_machine(cluster: Cluster) -> None:
    cluster.write("/gpus-l40s-04", "0, 0\n1, 2\n2, 0\n3, [N/A]\n")
    health = "SLURMD_NODENAME=l40s-04 /etc/slurm/gpuplan/health.sh"
    try:
        done = cluster.run("bash", "-c", health, check=False)
        assert done.returncode == 1
        assert "GPU 1 has 2 ECC errors" in done.stderr
        shown = cluster.shell("scontrol show node l40s-04")
        assert "DRAIN" in shown or "REBOOT" in shown
    finally:
        gpus(cluster, "l40s-04", 4)
        cluster.run("scontrol", "cancel_reboot", "l40s-04", check=False)
        cluster.run("scontrol", "update", "nodename=l40s-04", "state=RESUME", check=False)
    assert cluster.run("bash", "-c", health).stderr == ""


def test_shares_and_limits_are_those_of_the_plan(cluster: Cluster, plan: Plan, nodes: int) -> None:
    shown = "sacctmgr -n -P show assoc where user= format=account,fairshare,grptres"
    before = cluster.shell(shown)
    count = 8 * nodes
    assert f"training|{count}|gres/gpu:h100={count},gres/gpu={count}" in before
    desks = by_name(plan.workloads, "desks").replicas
    share = by_name(plan.workloads, "desks").gpu_count
    assert f"research|{share}|gres/gpu:1g.10gb={desks},gres/gpu={desks}" in before
    assert "products_spare|1|" in before
    again = cluster.run("./accounts.sh", cwd=STACK)
    assert "Nothing new added" in again.stdout
    assert cluster.shell(shown) == before


def test_priority_counts_before_shares_and_shares_before_age(cluster: Cluster, nodes: int) -> None:
    shown = cluster.shell("sprio -w -h -o '%Q %F %A'").split()
    assert sorted(shown, key=int, reverse=True) == shown
    assert int(shown[0]) > sum(map(int, shown[1:]))
    shares = cluster.shell("sshare -n -P -o account,rawshares -A training,products_spare")
    assert f"training|{8 * nodes}\n" in shares.replace(" ", "")
    words = ("--partition=l40s", "--nodelist=l40s-01", "--gpus-per-node=l40s:1")
    first = submit(cluster, "--account=products", "--qos=normal", *words, "--cpus-per-gpu=124",
                   "--wrap=sleep 99")  # fmt: skip
    runs(cluster, first)
    low = submit(cluster, "--account=training", "--qos=low", *words, "--cpus-per-gpu=124",
                 "--wrap=true")  # fmt: skip
    high = submit(cluster, "--account=research", "--qos=high", *words, "--cpus-per-gpu=124",
                  "--wrap=true")  # fmt: skip

    def priorities() -> dict[str, int]:
        rows = cluster.shell("sprio -h -o '%i %Y'").split()
        return dict(zip(rows[::2], map(int, rows[1::2]), strict=True))

    cluster.until(lambda: {low, high} <= set(priorities()), why="they wait")
    assert priorities()[high] > priorities()[low]


HOSTILE_MANIFEST = """\
apiVersion: gpuplan.dev/v1
name: slurm
platform:
  target: slurm
  inventory: inventory.yaml
  slurm: {{controller: slurm-01, storage: /lustre/gpuplan, containers: pyxis}}
workloads:
- name: chat
  description: {text}
  task: inference
  model: meta-llama/Llama-3.1-8B-Instruct
  precision: bf16
  load: {{requests_per_second: 5, input_tokens: 1000, output_tokens: 300}}
  environment: {{NOTE: {text}, PATH_LIKE: {text}}}
  command: [vllm, {text}, "", "$GPUPLAN_INDEX", "%j", "#SBATCH --nodes=9"]
  tenancy: {{team: products}}
  overrides: {{gpu: l40s}}
- name: batch
  description: "\\n#SBATCH --nodes=7\\nx"
  task: batch
  model: meta-llama/Llama-3.1-8B-Instruct
  precision: bf16
  load: {{requests: 1000, input_tokens: 1000, output_tokens: 300}}
  command: [vllm, {text}]
  tenancy: {{team: products}}
  overrides: {{gpu: l40s}}
"""


def test_texts_reach_the_engine_as_they_are(cluster: Cluster, tmp_path: Path) -> None:
    text = json.dumps(HOSTILE + " , ; : = [1-3] 'x'")
    inventory = EXAMPLE.parent / "inventories" / "slurm.yaml"
    (tmp_path / "inventory.yaml").write_text(inventory.read_text("utf-8"), encoding="utf-8")
    (tmp_path / "m.yaml").write_text(HOSTILE_MANIFEST.format(text=text), encoding="utf-8")
    assert main(["compile", str(tmp_path / "m.yaml"), "-o", str(tmp_path / "stacks")]) == 0
    cluster.copy(tmp_path / "stacks/slurm", "/lustre/hostile")
    cluster.run("chown", "-R", "worker:", "/lustre/hostile")
    for image in cluster.shell("grep -ho '^image=.*' /lustre/hostile/jobs/* | cut -d= -f2").split():
        cluster.write(image, "")
    cluster.write("/usr/local/bin/vllm", PRINTS, 0o755)
    try:
        for name in ("chat", "batch"):
            done = cluster.run("sbatch", "--parsable", f"jobs/{name}.sbatch", user="worker",
                               cwd="/lustre/hostile")  # fmt: skip
            job = done.stdout.strip()
            cluster.until(lambda job=job: set(cluster.state(job).split()) == {"COMPLETED"})
            shown = cluster.run("scontrol", "show", "job", job).stdout
            assert "NumNodes=1 " in shown
        said = json.loads(cluster.shell("cat /lustre/said-chat"))
        wanted = json.loads(text)
        words = [wanted, "", "$GPUPLAN_INDEX", "%j", "#SBATCH --nodes=9"]
        assert said == [*words, wanted, wanted]
        assert json.loads(cluster.shell("cat /lustre/said-batch"))[:-2] == [wanted]
    finally:
        slurm.stand_in(cluster)


# Perl is what every Debian has.
PRINTS = r"""#!/usr/bin/perl
sub text { my $t = shift // ""; $t =~ s/([^ !#-\[\]-~])/sprintf("\\u%04x", ord $1)/ge; "\"$t\"" }
binmode STDOUT;
use Encode;
my @words = map { decode("UTF-8", $_ // "") } (@ARGV, $ENV{NOTE}, $ENV{PATH_LIKE});
open my $out, ">", "/lustre/said-$ENV{SLURM_JOB_NAME}";
print $out "[" . join(",", map { text($_) } @words) . "]";
"""
