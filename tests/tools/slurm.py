"""A real Slurm cluster on one machine: slurmctld, a slurmd for each node, slurmdbd with MariaDB.

It runs in namespaces of its own, on a copy of what tests/tools/slurm-setup unpacked, and is gone
when its first process is. Nodes have the sizes of the configuration, whatever this machine has;
GPUs are empty files, and `nvidia-smi` is a script that lists them.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.require import require

FIRST_PORT = 7000
BEGIN = """\
set -eu
mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
cd "$1"
mkdir upper work root
mount -t overlay overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" root
cd root
mount -t proc proc proc
mount -t tmpfs tmpfs dev
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
chmod 1777 tmp
mknod -m 666 dev/null c 1 3
mknod -m 666 dev/zero c 1 5
mknod -m 666 dev/random c 1 8
mknod -m 666 dev/urandom c 1 9
mkdir dev/shm
chmod 1777 dev/shm
ln -s /proc/self/fd dev/fd
mount -t sysfs sysfs sys
for n in 0 1 2 3 4 5 6 7; do mknod dev/nvidia$n c 1 3; done
for n in $(seq 0 63); do mknod dev/instance$n c 1 3; done
mkdir -p run/munge run/mysqld etc/slurm/gpuplan lustre
chown 990:990 run/munge
chown 992:992 run/mysqld
chmod 755 run/munge
chmod 1777 lustre
ip link set lo up
ip address add 10.99.0.1/32 dev lo
hostname "$3"
: >/dev/null
echo ready
exec sleep infinity
"""
# What needs cgroups, GPUs or a kernel of its own is left out; all else is read as generated.
LEFT_OUT = (
    "ProctrackType|TaskPlugin|JobAcctGatherType|JobContainerType|PrologFlags|SlurmdSpoolDir"
    "|SlurmdPidFile|SlurmdLogFile|RebootProgram"
)
OWN = """\
ProctrackType=proctrack/linuxproc
SlurmdSpoolDir=/var/spool/slurmd-%n
SlurmdPidFile=/run/slurmd-%n.pid
SlurmdLogFile=/var/log/slurm/slurmd-%n.log
SlurmdParameters=config_overrides
RebootProgram=/usr/bin/true
TreeWidth=65533
SlurmdTimeout=30
"""
PAPER = "SuspendProgram=/usr/bin/true\nResumeProgram=/usr/bin/true\nSuspendTime=3600\n"
SMI = """\
#!/bin/bash
# Lists the GPUs of a node as /gpus-NODE has them.
case "$*" in
*compute-apps*) ;;
*fabric*) exit 1 ;;
*) cat "/gpus-${SLURMD_NODENAME-}" 2>/dev/null || for n in 0 1 2 3 4 5 6 7; do echo "$n, 0"; done ;;
esac
"""


def root(system: str = "trixie") -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "gpuplan-slurm" / system


def present(system: str = "trixie") -> Path:
    """The unpacked Slurm, or the end of the test. The system `apptainer` has Apptainer too."""
    if system != "trixie" and not (root(system) / ".ready").exists():
        require(system, f"Slurm with {system} is not unpacked (see tests/tools/slurm-setup)")
    if os.geteuid() != 0:
        require("slurm", "namespaces and daemons need root")
    if not (root(system) / ".ready").exists():
        require("slurm", "Slurm is not unpacked (see tests/tools/slurm-setup)")
    return root(system)


class Cluster:
    """`host` is the machine that all daemons run on."""

    def __init__(self, process: subprocess.Popen[str], folder: Path, host: str) -> None:
        self.process, self.folder, self.host = process, folder, host
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        self.first = children[0]

    def run(
        self, *words: str, user: str = "root", check: bool = True, cwd: str = "/"
    ) -> subprocess.CompletedProcess[str]:
        inside = ["nsenter", "--target", self.first, "--mount", "--uts", "--net", "--ipc", "--pid"]
        change = ["chroot", f"--userspec={user}", str(self.folder / "root")]
        shell = [
            "/usr/bin/env",
            "-i",
            "PATH=/usr/local/bin:/usr/sbin:/usr/bin",
            "HOME=/tmp",
            "LC_ALL=C",
            "bash",
        ]
        line = f'cd {cwd}; "$@"'
        done = subprocess.run(
            [*inside, *change, *shell, "-c", line, "bash", *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{words}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def shell(self, script: str, **options: object) -> str:
        return self.run("bash", "-c", script, **options).stdout  # type: ignore[arg-type]

    def write(self, path: str, text: str, mode: int = 0o644, owner: str = "root") -> None:
        """A file in the cluster."""
        self.run("bash", "-c", 'mkdir -p "$(dirname "$1")"; printf %s "$2" >"$1"', "_", path, text)
        self.run("chmod", f"{mode:o}", path)
        self.run("chown", f"{owner}:", path)

    def copy(self, folder: Path, path: str) -> None:
        """A folder of this machine, into the cluster."""
        packed = subprocess.run(
            ["tar", "-C", str(folder), "-cf", "-", "."], capture_output=True, check=True
        ).stdout
        self.run("mkdir", "-p", path)
        inside = ["nsenter", "--target", self.first, "--mount"]
        subprocess.run(
            [*inside, "tar", "-C", f"{self.folder}/root{path}", "-xf", "-"],
            input=packed,
            check=True,
        )

    def until(self, what: Callable[[], object], seconds: float = 90, why: str = "") -> None:
        """Slurm looks for jobs whose time has come once a minute."""
        end = time.monotonic() + seconds
        while not what():
            if time.monotonic() > end:
                raise AssertionError(f"not in {seconds} s: {why}\n{self.logs()}")
            time.sleep(0.2)

    def logs(self) -> str:
        script = (
            "squeue; tail -n 5 /var/log/slurm/slurm{ctld,dbd}.log /lustre/gpuplan/slurm/*.log; true"
        )
        return self.run("bash", "-c", script, check=False).stdout

    def state(self, job: str) -> str:
        """`RUNNING`; empty when Slurm has forgotten it."""
        done = self.run("squeue", "-h", "-t", "all", "-j", job, "-o", "%T", check=False)
        return done.stdout.strip()


@contextmanager
def machine(
    folder: Path, host: str, beside: int | None = None, system: str = "trixie"
) -> Iterator[Cluster]:
    """An empty one, with munge; in the network of the process `beside`, or in one of its own."""
    own = ["unshare", "--net"] if beside is None else ["nsenter", f"--target={beside}", "--net"]
    begin = [*own, "unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]
    folder.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [*begin, "bash", "-c", BEGIN, "begin", str(folder), str(present(system)), host],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        cluster = Cluster(process, folder, host)
        cluster.write("/etc/hosts", f"127.0.0.1 localhost\n10.99.0.1 {host}\n")
        cluster.write("/usr/bin/nvidia-smi", SMI, 0o755)
        cluster.run("munged", user="munge")
        yield cluster
    finally:
        process.kill()
        process.communicate()


def overlaid(stack: Path, *, accounting: bool = False, hosts: bool = False) -> dict[str, str]:
    """The generated files with what this machine lacks taken out. With `hosts` every node is a
    slurmd of this machine, else nodes are on paper."""
    text = (stack / "etc/slurm.conf").read_text("utf-8")
    left_out = [LEFT_OUT]
    left_out += [] if accounting else ["Accounting.*|PreemptType|PreemptMode|Priority.*"]
    left_out += [] if hosts else ["Prolog|Epilog|HealthCheck.*"]
    kept = [s for s in text.splitlines() if not re.match(rf"({'|'.join(left_out)})=", s)]
    if not accounting:  # weights name what only the database counts
        kept = [re.sub(r" TRESBillingWeights=\S+", "", s) for s in kept]
    lines = list(_on_this_machine(kept, _here(text)) if hosts else _on_paper(kept))
    own = OWN + ("" if hosts else PAPER)
    files = {"slurm.conf": "\n".join(lines) + "\n" + own}
    gres = (stack / "etc/gres.conf").read_text("utf-8").splitlines()
    counted = dict(re.findall(r"^NodeName=(\S+) .*?Gres=(\S+)", text, re.MULTILINE))
    files["gres.conf"] = "".join(f"{row}\n" for line in gres for row in _counted(line, counted))
    files["cgroup.conf"] = "CgroupPlugin=disabled\n"
    if (stack / "etc/topology.conf").exists():
        files["topology.conf"] = (stack / "etc/topology.conf").read_text("utf-8")
    return files


def _on_paper(lines: list[str]) -> Iterator[str]:
    """Nodes of a cloud that are never started: they are free, and hold no job."""
    for line in lines:
        yield line.replace("State=UNKNOWN", "State=CLOUD")


def _on_this_machine(lines: list[str], host: str) -> Iterator[str]:
    port = FIRST_PORT
    for line in lines:
        if line.startswith("NodeName="):
            last = port + _count(line) - 1
            ports = f"NodeAddr=10.99.0.1 Port=[{port}-{last}]"
            yield line.replace("State=UNKNOWN", f"NodeHostname={host} {ports}")
            port = last + 1
        else:
            yield line


def _counted(line: str, counted: dict[str, str]) -> Iterator[str]:
    """NVML is not there: what it would find on a node that is cut."""
    if match := re.fullmatch(r"NodeName=(\S+) AutoDetect=nvml", line):
        first = 0
        for part in counted[match[1]].split(","):
            _, kind, count = part.split(":")
            device = f"/dev/instance[{first}-{first + int(count) - 1}]"
            yield f"NodeName={match[1]} Name=gpu Type={kind} File={device}"
            first += int(count)
    else:
        yield line


def _count(line: str) -> int:
    """How many nodes a line names."""
    names = re.match(r"NodeName=(\S+)", line)
    assert names is not None
    total = 0
    for part in re.findall(r"[^,\[]+(?:\[[^\]]*\])?", names[1]):
        inner = re.search(r"\[(.*)\]", part)
        for span in inner[1].split(",") if inner else ["0"]:
            first, _, last = span.partition("-")
            total += int(last or first) - int(first) + 1
    return total


def _here(text: str) -> str:
    found = re.search(r"^SlurmctldHost=(\S+)$", text, re.MULTILINE)
    assert found is not None
    return found[1]


def controller(stack: Path) -> str:
    return _here((stack / "etc/slurm.conf").read_text("utf-8"))


def start(cluster: Cluster, files: dict[str, str], *, nodes: tuple[str, ...] = ()) -> None:
    """slurmctld on these files, and a slurmd for each of `nodes`."""
    for name, text in files.items():
        cluster.write(f"/etc/slurm/{name}", text)
    cluster.run("slurmctld")
    cluster.until(lambda: "UP" in cluster.run("scontrol", "ping", check=False).stdout)
    for name in nodes:
        cluster.run("slurmd", "-N", name)


def database(cluster: Cluster, stack: Path) -> None:
    """MariaDB as Debian has it, with Slurm's user as docs/slurm.md makes it, and slurmdbd."""
    text = (stack / "etc/slurmdbd.conf").read_text("utf-8")
    cluster.write("/etc/slurm/slurmdbd.conf", text, 0o600, "slurm")
    cluster.shell("mariadbd-safe --user=mysql >/var/log/mariadb.log 2>&1 & disown")
    cluster.until(lambda: cluster.run("mariadb", "-e", "select 1", check=False).returncode == 0)
    cluster.run(
        "mariadb",
        "-e",
        "CREATE DATABASE slurm_acct_db;"
        "CREATE USER slurm@localhost IDENTIFIED VIA unix_socket;"
        "GRANT ALL ON slurm_acct_db.* TO slurm@localhost",
    )
    cluster.run("slurmdbd", user="slurm")
    log = "/var/log/slurm/slurmdbd.log"
    cluster.until(lambda: "started" in cluster.run("cat", log, check=False).stdout)


# No container runs: what srun is told of one is left out, and stand-ins play the engines. They log
# what they are given, and end when they are told to.
SRUN = """\
#!/bin/bash
for word; do
  shift
  case $word in --container* | --no-container*) ;; *) set -- "$@" "$word" ;; esac
done
exec /usr/bin/srun "$@"
"""
ENGINE = """\
#!/bin/bash
folder=/lustre/ran/$SLURM_JOB_NAME
mkdir -p "$folder"
{ echo "$0 $*"; env; } >"$folder/$SLURM_JOB_ID-$SLURM_NODEID-$SLURM_RESTART_COUNT"
trap 'echo told to end >>"$folder/$SLURM_JOB_ID-$SLURM_NODEID-$SLURM_RESTART_COUNT"; exit 143' TERM
while :; do sleep 0.2; done
"""


def stand_in(cluster: Cluster) -> None:
    for name in ("vllm", "axolotl", "torchrun", "start-notebook.py", "python3"):
        cluster.write(f"/usr/local/bin/{name}", ENGINE, 0o755)
    cluster.write("/usr/local/bin/srun", SRUN, 0o755)
