"""slurmd asks NVML for the GPUs of a node that is cut, with its own plugin: it has to find what
slurm.conf says, by the names that it says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.slurms import stack
from tests.tools import nvml, slurm
from tests.tools.slurm import Cluster

pytestmark = pytest.mark.slurm

HOST = """\
- names: [gpu-1]
  sockets: 2
  cpu_cores: 112
  memory: 2 TiB
  gpus: [{{type: {gpu}, count: 4}}]
"""
NOTEBOOKS = """\
- name: {name}
  task: notebook
  notebook: {{users: {users}, gpu_memory: {memory} GiB}}
"""


@dataclass(frozen=True)
class Cut:
    """Notebooks by the memory that each wants, on a node of four GPUs that NVML calls `name`. It
    gives an instance of `slices` so many `mib`, as `nvidia-smi mig -lgip` of the catalogue's
    sources prints them."""

    gpu: str
    name: str
    wanted: tuple[int, ...]
    mib: dict[str, int]


CUTS = (
    Cut("h200-sxm-141gb", "NVIDIA H200", (10, 60), {"1g.18gb": 16384, "3g.71gb": 71168}),
    Cut("h100-sxm-80gb", "NVIDIA H100 80GB HBM3", (8, 36), {"1g.10gb": 9984, "3g.40gb": 40448}),
    Cut("a100-sxm-40gb", "NVIDIA A100-SXM4-40GB", (4, 15), {"1g.5gb": 4864, "3g.20gb": 19968}),
)


def compiled(folder: Path, cut: Cut) -> Path:
    work = [
        NOTEBOOKS.format(name=f"desk{n}", users=2, memory=memory)
        for n, memory in enumerate(cut.wanted)
    ]
    return stack(folder, *work, hosts=HOST.format(gpu=cut.gpu))


def instances(made: Path, cut: Cut) -> list[list[str]]:
    """The profiles that mig.sh makes of each GPU."""
    found: list[list[str]] = [[] for _ in range(4)]
    for gpu, placed in re.findall(
        r"^cut_gpu gpu-1 (\d) (\S+)$", (made / "mig.sh").read_text(), re.M
    ):
        found[int(gpu)] = [each.partition(":")[0] for each in placed.split(",")]
    assert {p for profiles in found for p in profiles} == set(cut.mib)
    return found


def seen(cluster: Cluster, cut: Cut, made: Sequence[Sequence[str]]) -> None:
    """NVML has a node's GPUs cut so."""
    gpus = [(cut.name, [(int(p[0]), cut.mib[p]) for p in profiles]) for profiles in made]
    nvml.listed(cluster, "gpu-1", gpus)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    slurm.present()
    with slurm.machine(tmp_path / "machine", "ctl-1") as cluster:
        nvml.install(cluster, tmp_path)
        yield cluster


def configure(cluster: Cluster, made: Path) -> None:
    """As generated, but for what a node needs to be on this machine: nothing of gres.conf."""
    files = slurm.overlaid(made, hosts=True)
    files["gres.conf"] = (made / "etc/gres.conf").read_text("utf-8")
    cluster.copy(made / "node", "/etc/slurm/gpuplan")
    cluster.write("/gpus-gpu-1", "".join(f"{number}, 0\n" for number in range(4)))
    slurm.start(cluster, files)


@pytest.mark.parametrize("cut", CUTS, ids=lambda cut: cut.gpu)
def test_slurmd_finds_what_the_configuration_says(
    cluster: Cluster, tmp_path: Path, cut: Cut
) -> None:
    made = compiled(tmp_path, cut)
    configure(cluster, made)
    seen(cluster, cut, instances(made, cut))
    said = nvml.slurmd(cluster, "gpu-1", "-G")
    assert "Discarding" not in said
    assert "being ignored" not in said
    found = Counter(re.findall(r"Gres Name=gpu Type=(\S+) Count=1 ", said))
    line = re.search(r"^NodeName=gpu-1 .*Gres=(\S+)", (made / "etc/slurm.conf").read_text(), re.M)
    assert line
    assert found == {kind: int(n) for kind, n in re.findall(r"gpu:([^:]+):(\d+)", line[1])}


def test_each_job_gets_an_instance_of_its_own(cluster: Cluster, tmp_path: Path) -> None:
    made = compiled(tmp_path, CUTS[0])
    configure(cluster, made)
    seen(cluster, CUTS[0], instances(made, CUTS[0]))
    nvml.slurmd(cluster, "gpu-1")
    cluster.until(
        lambda: set(cluster.shell("sinfo -h -o %t").split()) == {"idle"}, why="it is free"
    )
    asked = re.search(r"--gpus-per-node=(\S+)$", (made / "jobs/desk0.sbatch").read_text(), re.M)
    assert asked
    words = ("--partition=spare", "--mem=1G", f"--gpus-per-node={asked[1]}")
    for number in range(2):
        shown = f"echo $CUDA_VISIBLE_DEVICES; while [ ! -e /tmp/{1 - number} ]; do sleep 0.1; done"
        cluster.run("sbatch", *words, f"--output=/tmp/{number}", f"--wrap={shown}")
    cluster.until(lambda: not cluster.shell("squeue -h"), why="both run at once, and end")
    devices = cluster.shell("cat /tmp/0 /tmp/1").split()
    assert len(set(devices)) == 2
    assert all(device.startswith("MIG-") for device in devices)


def test_a_node_with_fewer_instances_takes_no_job(cluster: Cluster, tmp_path: Path) -> None:
    made = compiled(tmp_path, CUTS[0])
    configure(cluster, made)
    seen(cluster, CUTS[0], [profiles[1:] for profiles in instances(made, CUTS[0])])
    nvml.slurmd(cluster, "gpu-1")
    fault = "gres/gpu count reported lower than configured"
    cluster.until(lambda: fault in cluster.shell("scontrol show node gpu-1"), why="it is refused")
    assert "DRAIN" in cluster.shell("scontrol show node gpu-1")
