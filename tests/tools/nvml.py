"""NVML as Slurm's own plugin sees it, in a cluster of tests/tools/slurm.py: a library that lists
the GPUs and instances that a test says, and the kernel's files of instances."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.require import require
from tests.tools.slurm import Cluster

LIBRARIES = "/usr/lib/x86_64-linux-gnu"
MOST_INSTANCES = 15  # numbers of a GPU's instances are below
# As the driver has them: a number for each instance that there may be, and a device by that number.
CAPABILITIES = f"""\
mount -t tmpfs tmpfs /proc/driver
mkdir -p /proc/driver/nvidia-caps /dev/nvidia-caps
number=1
for gpu in 0 1 2 3 4 5 6 7; do
  for instance in $(seq 0 {MOST_INSTANCES - 1}); do
    for name in "" /ci0; do
      echo "gpu$gpu/gi$instance$name/access $number"
      mknod "/dev/nvidia-caps/nvidia-cap$number" c 1 3
      number=$((number + 1))
    done
  done
done > /proc/driver/nvidia-caps/mig-minors
"""


def install(cluster: Cluster, folder: Path) -> None:
    """The library, built in `folder`, and the files, for all nodes of the cluster."""
    if shutil.which("cc") is None:
        require("slurm", "cc is not installed, which builds the library that plays NVML")
    plugin = cluster.folder / f"root{LIBRARIES}/slurm-wlm/gpu_nvml.so"
    if cluster.run("test", "-e", f"{LIBRARIES}/slurm-wlm/gpu_nvml.so", check=False).returncode:
        require("slurm", f"{plugin} is not there (see tests/tools/slurm-setup)")
    source = Path(__file__).with_suffix(".c")
    built = folder / "libraries"
    built.mkdir()
    words = ["cc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", built / "libnvidia-ml.so.1"]
    subprocess.run([*words, source], check=True)
    cluster.copy(built, LIBRARIES)
    cluster.shell(CAPABILITIES)


def listed(
    cluster: Cluster, node: str, gpus: Sequence[tuple[str, Sequence[tuple[int, int]]]]
) -> None:
    """The GPUs of a node: each with its name, and the slices and MiB of its instances."""
    lines = []
    for number, (name, instances) in enumerate(gpus):
        lines.append(f"gpu {number} {name}\n")
        lines += [f"mig {n} {slices} {mib}\n" for n, (slices, mib) in enumerate(instances, start=1)]
    cluster.write(f"/nvml-{node}", "".join(lines))


def slurmd(cluster: Cluster, node: str, *words: str) -> str:
    """What a node's daemon says, which sees the node's GPUs."""
    done = cluster.run("env", f"GPUPLAN_NVML=/nvml-{node}", "slurmd", "-N", node, *words)
    return done.stdout + done.stderr
