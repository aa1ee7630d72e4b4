"""Jobs whose containers a real Apptainer starts, as users without any right do it: an image of
busybox, in which stand-ins play the engines. `make apptainer`."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.require import require
from tests.support.slurms import CHAT, HEAD, NOTEBOOKS, TUNE, stack
from tests.tools import slurm
from tests.tools.slurm import Cluster

pytestmark = pytest.mark.slurm

STACK = "/lustre/stack"
ROOT = "/lustre/gpuplan/cluster"
SECRETS = "  secrets: {HF_TOKEN: {config: hfToken}}\n"
# What needs namespaces of users is refused below a root that chroot made: slurmd's is the real one.
PIVOT = """\
cd "$1"
mkdir -p .before
mount --make-rprivate /
pivot_root . .before
umount --lazy /.before
shift
exec "$@"
"""
# It says what it has, writes where engines write, and ends when it is told to.
ENGINE = """\
#!/bin/sh
echo "command $0 $*"
echo "folder $(pwd)"
id
env
for path in "$HOME/.triton/cache" "$HF_HOME/hub" "$XDG_CACHE_HOME/vllm" /tmp/torchinductor; do
  mkdir -p "$path" && echo "made $path"
done
if echo x >"$HOME/kept"; then echo kept; fi
for path in /etc/gpuplan /home/worker/own /lustre/stack; do
  if [ -e "$path" ]; then echo "there $path"; fi
done
trap 'echo told to end; exit 143' TERM
echo ready
while :; do sleep 0.2; done
"""
IMAGE = f"""\
mkdir -p /image/bin /image/etc /image/tmp /image/usr/local/bin
cp /usr/bin/busybox /image/bin/
for name in sh cat echo env id mkdir sleep; do ln -s busybox /image/bin/$name; done
echo root:x:0:0::/root:/bin/sh >/image/etc/passwd
echo root:x:0: >/image/etc/group
install -d -m 1777 /lustre/gpuplan/images {ROOT} {ROOT}/secrets
apptainer build /image.sif /image
"""
DEVICES = """\
mknod -m 666 /dev/fuse c 10 229
mknod -m 666 /dev/tty c 5 0
echo worker:100000:65536 | tee /etc/subuid >/etc/subgid
cp /usr/share/zoneinfo/UTC /etc/localtime
mkdir -p /home/worker
touch /home/worker/own
chown -R worker: /home/worker
"""


def slurmd(cluster: Cluster, node: str) -> None:
    inside = ["nsenter", "--target", cluster.first, "--mount", "--uts", "--net", "--ipc", "--pid"]
    own = ["unshare", "--mount", "bash", "-euc", PIVOT, "-", str(cluster.folder / "root")]
    clean = ["env", "-i", "PATH=/usr/local/bin:/usr/sbin:/usr/bin", "slurmd", "-N", node]
    subprocess.run([*inside, *own, *clean], check=True)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    slurm.present("apptainer")
    if not Path("/dev/fuse").exists():
        require("apptainer", "the kernel has no FUSE")
    folder = tmp_path_factory.mktemp("slurm")
    chat = CHAT.replace("  load:", SECRETS + "  load:")
    head = HEAD.replace("pyxis", "apptainer")
    made = stack(folder, chat, NOTEBOOKS, TUNE, head=head)
    with slurm.machine(folder / "machine", "ctl-1", system="apptainer") as cluster:
        cluster.shell(DEVICES)
        for name in ("vllm", "axolotl", "start-notebook.py"):
            cluster.write(f"/image/usr/local/bin/{name}", ENGINE, 0o755)
        cluster.shell(IMAGE)
        cluster.copy(made, STACK)
        cluster.run("chown", "-R", "worker:", STACK)
        for image in cluster.shell(f"grep -ho '^image=.*' {STACK}/jobs/* | cut -d= -f2").split():
            cluster.shell(f"cp /image.sif {image}; chmod 644 {image}")
        cluster.write(f"{ROOT}/secrets/chat.env", "HF_TOKEN=a b\"$(x) 'c'\n", 0o600, "worker")
        cluster.copy(made / "node", "/etc/slurm/gpuplan")
        slurm.start(cluster, slurm.overlaid(made, hosts=True))
        for node in ("gpu-1", "gpu-2"):
            slurmd(cluster, node)
        yield cluster


def submitted(cluster: Cluster, name: str) -> tuple[str, dict[str, str]]:
    """What an engine says of its container once it runs, with its variables."""
    array = ["--array=0"] if name != "tune" else []
    words = ("sbatch", "--parsable", *array, f"jobs/{name}.sbatch")
    job = cluster.run(*words, user="worker", cwd=STACK).stdout.strip()

    def said() -> str:
        return cluster.run("bash", "-c", f"cat {ROOT}/{name}-*.log", check=False).stdout

    cluster.until(lambda: "\nready\n" in said(), why=f"{name} starts")
    text = said()
    assert "uid=1000(worker) gid=1000(worker)" in text
    cluster.run("scancel", "--batch", "--signal=TERM", job)
    cluster.until(lambda: "told to end" in said(), why=f"{name} is told")
    return text, dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))


def test_a_server_has_its_folders_its_token_and_a_home(cluster: Cluster) -> None:
    text, variables = submitted(cluster, "chat")
    assert "command /usr/local/bin/vllm serve meta-llama/Llama-3.1-8B-Instruct " in text
    assert variables["HF_TOKEN"] == "a b\"$(x) 'c'"
    assert variables["CUDA_VISIBLE_DEVICES"] == "0"
    for path in ("/scratch/.triton/cache", "/models/hub", "/scratch/cache/vllm"):
        assert f"made {path}\n" in text
    assert "folder /scratch\n" in text
    assert "there /home/worker/own" not in text, "whose the files of whoever submits are"
    shown = cluster.shell(f"ls {ROOT}/volumes/chat-models")
    assert shown.split() == ["hub"], "what is downloaded is there for the next start"


def test_a_notebook_begins_in_its_own_folder(cluster: Cluster) -> None:
    text, variables = submitted(cluster, "lab")
    assert variables["HOME"] == "/home/jovyan"
    assert "folder /home/jovyan\n" in text
    assert "kept\n" in text
    assert cluster.shell(f"cat {ROOT}/volumes/lab-home-0/kept") == "x\n"


def test_a_run_reads_its_configuration(cluster: Cluster) -> None:
    text, _ = submitted(cluster, "tune")
    assert re.search(r"^command /usr/local/bin/axolotl train /etc/gpuplan/\S+", text, re.MULTILINE)
    assert "there /etc/gpuplan\n" in text
