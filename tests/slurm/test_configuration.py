"""The real slurmctld reads what is generated, with nodes on paper, and says where jobs would be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuplan.cli.main import main
from tests.support.slurms import CHAT, H100, HEAD, NOTEBOOKS, TUNE, stack
from tests.tools import slurm
from tests.tools.slurm import Cluster

pytestmark = pytest.mark.slurm

EXAMPLE = Path(__file__).parents[2] / "examples" / "slurm.yaml"
# Of a controller's first start, of Debian's packages, of nodes in no NVLink domain, of a machine
# that is busy with other tests (gettimeofday).
USUAL = r"blocks lack access|state file|backup state|MailProg|plugstack|glob parsing|High latency"
NVLINK = """\
- names: [tray-01, tray-02, tray-03, tray-04]
  sockets: 2
  cpu_cores: 144
  threads_per_core: 1
  memory: 960 GiB
  gpus: [{type: h100-sxm-80gb, count: 4, nvlink_domain: "rack 7 #1"}]
- names: [tray-05, tray-06, tray-07, tray-08]
  sockets: 2
  cpu_cores: 144
  threads_per_core: 1
  memory: 960 GiB
  gpus: [{type: h100-sxm-80gb, count: 4, nvlink_domain: "rack 7 = \\"2\\""}]
- names: [alone]
  sockets: 2
  cpu_cores: 144
  threads_per_core: 1
  memory: 960 GiB
  gpus: [{type: l40s, count: 4}]
"""
RACKS = NVLINK.replace("h100-sxm-80gb", "gb200-186gb").partition("- names: [alone]")[0]
SPREAD = TUNE + "  overrides: {gpu_count: 16}\n"
SHARDS = (
    H100
    + """\
- names: [desk-1, desk-2]
  sockets: 2
  cpu_cores: 64
  memory: 512 GiB
  time_slices: 4
  gpus: [{type: l40s, count: 4}]
"""
)
# Names as sites have them, and free texts as nobody should.
STRANGE = """\
- names: [gpu-007, gpu-8, r1.c2.example.org, r1.c3.example.org, x1y2, "9a", gpu7b]
  node_type: 'it''s "odd" # 100 % = [1-9], \\ $HOME é'
  sockets: 2
  cpu_cores: 112
  memory: 2 TiB
  gpus: [{type: h100-sxm-80gb, count: 8}]
- names: [cpu-1]
  sockets: 1
  cpu_cores: 32
  memory: 256 GiB
  gpus: []
"""
MANY = """\
- names: [{names}]
  sockets: 2
  cpu_cores: 112
  memory: 2 TiB
  gpus: [{{type: h100-sxm-80gb, count: 8}}]
"""


def example(folder: Path) -> Path:
    assert main(["compile", str(EXAMPLE), "-o", str(folder)]) == 0
    return folder / "slurm"


def nvlink(folder: Path) -> Path:
    return stack(folder, CHAT, TUNE, hosts=NVLINK)


def strange(folder: Path) -> Path:
    return stack(folder, CHAT, NOTEBOOKS, hosts=STRANGE)


def many(folder: Path) -> Path:
    names = ", ".join(f"rack{n // 36:02}-node-with-a-long-name-{n:04}" for n in range(1200))
    return stack(folder, CHAT, hosts=MANY.format(names=names))


def apptainer(folder: Path) -> Path:
    return stack(folder, TUNE, NOTEBOOKS, CHAT, head=HEAD.replace("pyxis", "apptainer"))


def shards(folder: Path) -> Path:
    return stack(folder, CHAT, hosts=SHARDS)


def racks(folder: Path) -> Path:
    return stack(folder, SPREAD, hosts=RACKS)


STACKS = (example, nvlink, strange, many, apptainer, shards, racks)


@pytest.fixture(scope="module", params=STACKS, ids=lambda make: make.__name__)
def paper(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Cluster, Path]]:
    slurm.present()
    folder = tmp_path_factory.mktemp("slurm")
    made = request.param(folder)
    with slurm.machine(folder / "machine", slurm.controller(made)) as cluster:
        slurm.start(cluster, slurm.overlaid(made))
        cluster.copy(made, "/lustre/stack")
        yield cluster, made


def nodes_of(text: str) -> str:
    found = re.search(r"on nodes (\S+)", text)
    return found[1] if found else ""


def test_it_is_read_without_a_complaint(paper: tuple[Cluster, Path]) -> None:
    cluster, _ = paper
    log = cluster.shell("grep -E 'error|fatal|warning' /var/log/slurm/slurmctld.log || true")
    assert [line for line in log.splitlines() if not re.search(USUAL, line)] == []


def test_every_job_has_a_place_and_one_gpu_more_has_none(paper: tuple[Cluster, Path]) -> None:
    cluster, made = paper
    for path in sorted((made / "jobs").iterdir()):
        text = path.read_text("utf-8")
        script = f"/lustre/stack/jobs/{path.name}"
        placed = cluster.run("sbatch", "--test-only", script)
        pool = re.search(r"--partition=(([^\s,]+)\S*)", text)
        count = re.search(r"--nodes=(\d+)", text)
        assert pool
        assert count
        names = cluster.shell(f"scontrol show hostnames '{nodes_of(placed.stderr)}'").split()
        assert len(names) == int(count[1])
        there = cluster.shell(f"sinfo -h -N -p {pool[2]} -o %N").split()
        assert set(names) <= set(there), "on the pool that the plan has it on"
        asked = re.search(r"--gpus-per-node=(\S+):\d+", text)
        assert asked
        most = cluster.shell(f"sinfo -h -p {pool[1]} -o %G")
        held = max(int(n) for n in re.findall(rf"gpu:{re.escape(asked[1])}:(\d+)", most))
        more = f"--gpus-per-node={asked[1]}:{held + 1}"
        refused = cluster.run("sbatch", "--test-only", more, script, check=False)
        assert refused.returncode != 0
        assert "Requested node configuration is not available" in refused.stderr


def test_nodes_have_what_the_inventory_says(tmp_path: Path) -> None:
    slurm.present()
    made = stack(tmp_path, CHAT)
    with slurm.machine(tmp_path / "machine", "ctl-1") as cluster:
        slurm.start(cluster, slurm.overlaid(made))
        shown = cluster.run("scontrol", "--oneliner", "show", "node", "gpu-1").stdout
    fields = dict(re.findall(r"(\w+)=(\S*)", shown))
    assert (fields["Sockets"], fields["CoresPerSocket"], fields["ThreadsPerCore"]) == (
        "2",
        "56",
        "2",
    )
    assert fields["CPUTot"] == "224"
    assert int(fields["CPUEfctv"]) == 224 - 2 * 4
    assert int(fields["RealMemory"]) == int(2 * 2**20 * 0.9 // 1024 * 1024)
    assert fields["Gres"] == "gpu:h100:8(S:0-1)", "half of the GPUs beside each socket"
    gres = (made / "etc/gres.conf").read_text("utf-8")
    assert "File=/dev/nvidia[0-3] Cores=0-55" in gres
    assert "File=/dev/nvidia[4-7] Cores=56-111" in gres


def test_blocks_are_nvlink_domains(tmp_path: Path) -> None:
    slurm.present()
    made = nvlink(tmp_path)
    with slurm.machine(tmp_path / "machine", "ctl-1") as cluster:
        slurm.start(cluster, slurm.overlaid(made))
        shown = cluster.run("scontrol", "show", "topology").stdout
        assert re.search(r"BlockName=nvlink1 .*Nodes=tray-\[01-04\]", shown)
        assert re.search(r"BlockName=nvlink2 .*Nodes=tray-\[05-08\]", shown)
        four = ("--nodes=4", "--gpus-per-node=h100:4", "--partition=rest")
        placed = cluster.run("sbatch", "--test-only", *four, "--wrap=true")
        assert nodes_of(placed.stderr) in ("tray-[01-04]", "tray-[05-08]")
        # A node of no domain is not lost.
        alone = ("--gpus-per-node=l40s:1", "--partition=rest", "--wrap=true")
        placed = cluster.run("sbatch", "--test-only", *alone)
        assert nodes_of(placed.stderr) == "alone"


def test_a_run_that_counts_on_one_rack_lies_in_one_or_waits(tmp_path: Path) -> None:
    slurm.present()
    made = racks(tmp_path)
    with slurm.machine(tmp_path / "machine", "ctl-1") as cluster:
        slurm.start(cluster, slurm.overlaid(made))
        cluster.copy(made, "/lustre/stack")
        shown = cluster.run("scontrol", "show", "config").stdout
        assert re.search(r"SwitchType +. switch/nvidia_imex", shown)
        job = ("sbatch", "--test-only", "/lustre/stack/jobs/tune.sbatch")
        assert nodes_of(cluster.run(*job).stderr) in ("tray-[01-04]", "tray-[05-08]")
        for lost in ("tray-02", "tray-07"):
            cluster.run("scontrol", "update", f"nodename={lost}", "state=down", "reason=away")
        # Six trays are left, of which no four lie in one rack.
        assert nodes_of(cluster.run(*job, check=False).stderr) == ""


SWITCHES = """\
switches:
- {name: leaf-a, hosts: [gpu-1]}
- {name: leaf-b, hosts: [gpu-2]}
- {name: spine, switches: [leaf-a, leaf-b]}
"""


def test_switches_are_a_tree(tmp_path: Path) -> None:
    slurm.present()
    made = stack(tmp_path, TUNE, hosts=H100, more=SWITCHES)
    with slurm.machine(tmp_path / "machine", "ctl-1") as cluster:
        slurm.start(cluster, slurm.overlaid(made))
        shown = cluster.run("scontrol", "show", "topology").stdout
    assert re.search(r"SwitchName=spine .*Switches=leaf-\[?a", shown)


BRIDGES = """\
- names: [box-1, box-2]
  sockets: 2
  cpu_cores: 32
  memory: 512 GiB
  gpus: [{type: a100-pcie-80gb, count: 4}]
  links:
  - {link: NV12, between: [gpu0, gpu2]}
  - {link: NV12, between: [gpu1, gpu3]}
"""


PAIRS = """\
- name: pairs
  task: inference
  model: meta-llama/Llama-3.1-8B-Instruct
  precision: bf16
  overrides: {tensor_parallel_size: 2}
  load: {requests_per_second: 2, input_tokens: 1000, output_tokens: 300}
"""


def test_a_job_on_two_gpus_gets_those_that_a_bridge_joins(tmp_path: Path) -> None:
    slurm.present()
    made = stack(tmp_path, PAIRS, hosts=BRIDGES)
    asked = re.search(r"(--gpus\S*=a100:2)$", (made / "jobs/pairs.sbatch").read_text(), re.M)
    assert asked
    with slurm.machine(tmp_path / "machine", "ctl-1") as cluster:
        cluster.copy(made / "node", "/etc/slurm/gpuplan")
        cluster.write("/gpus-box-1", "".join(f"{number}, 0\n" for number in range(4)))
        slurm.start(cluster, slurm.overlaid(made, hosts=True), nodes=("box-1",))
        cluster.until(lambda: "idle" in cluster.shell("sinfo -h -n box-1 -o %t"))
        words = ("--partition=spare", "--nodes=1", "--mem=1G", "--output=/tmp/given", asked[1])
        cluster.run("sbatch", *words, "--wrap=echo $SLURM_JOB_GPUS")
        cluster.until(lambda: not cluster.shell("squeue -h"), why="it ends")
        assert cluster.shell("cat /tmp/given").strip() in ("0,2", "1,3")


def test_parts_of_gpus_are_placed_where_the_inventory_slices_them(
    paper: tuple[Cluster, Path],
) -> None:
    """A part for each time slice, none more than a GPU has, and whole GPUs beside them."""
    cluster, made = paper
    if "shard" not in (made / "etc/slurm.conf").read_text("utf-8"):
        pytest.skip("no GPU is in time slices")
    ask = "sbatch --test-only --partition=spare --wrap=true"
    for part in ("--gres=shard:1", "--gres=shard:4", "--gpus-per-node=l40s:4"):
        assert nodes_of(cluster.shell(f"{ask} {part} 2>&1")).startswith("desk-"), part
    for part in ("--gres=shard:5", "--gres=shard:17", "--gpus-per-node=l40s:5"):
        assert "on nodes" not in cluster.shell(f"{ask} {part} 2>&1 || true"), part
    nodes = cluster.shell("scontrol show node desk-1")
    assert "shard:l40s:16" in nodes or "shard:16" in nodes
    conf = (made / "etc/slurm.conf").read_text("utf-8")
    assert "TRESBillingWeights=GRES/gpu:l40s=100,GRES/shard=25 " in conf
