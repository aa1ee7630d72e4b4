"""A machine of Debian 13 that starts Podman's units: systemd as its first process, and Podman 5.

    with machine(stack) as box:
        box.run("systemctl", "start", "box-tune-0.service")

All of it is in namespaces and a control group of its own, and goes with them. The units are as they
were written; what a machine of the tests has not (images, processors, memory controllers) is
replaced by drop-ins, which the generator reads as it reads an administrator's. `nvidia-ctk` is
played: it writes a device for each UUID of .env, which shows itself as a variable.

Needs root, a kernel with control groups 2 and `tests/tools/docker-setup`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.tools import image
from tests.tools.podman import ENGINE, IMAGE, LIMITS, PLAYED, wait_for

ROOT = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gpuplan-docker/trixie"
GENERATOR = "/usr/libexec/podman/quadlet"
START = """\
set -e
root=$1
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=$root,upperdir=$2/upper,workdir=$2/work" "$2/root"
root=$2/root
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs tmpfs "$root/dev"
for name in null zero full random urandom tty; do
    : > "$root/dev/$name"
    mount --bind "/dev/$name" "$root/dev/$name"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs tmpfs "$root/run"
mkdir -p "$root/var/lib/containers" "$root/mnt"
mount -t tmpfs tmpfs "$root/var/lib/containers"
ip link set lo up
cd "$root"
pivot_root . mnt
umount -l /mnt
export PATH=/usr/sbin:/usr/bin
exec env -i container=other PATH=$PATH /usr/lib/systemd/systemd --unit=multi-user.target
"""
CONTAINERS = (
    '[engine]\nruntime = "runc"\n[containers]\npids_limit = 0\ndefault_ulimits = [{limits}]\n'
)
COMMAND = '["haproxy", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]'  # of HAProxy's own image
POLICY = '{"default": [{"type": "insecureAcceptAnything"}]}\n'
CTK = """\
#!/bin/sh
# Plays nvidia-ctk: a device for each UUID.
test "$1 $2 $3" = "cdi generate --device-name-strategy=uuid" || exit 1
mkdir -p /run/cdi
{
    echo 'cdiVersion: "0.5.0"'
    echo 'kind: nvidia.com/gpu'
    echo 'devices:'
    sed -n 's/^[A-Z0-9_]*_GPU_[0-9]*=//p' /opt/*/.env | sort -u | while read -r uuid; do
        echo "- name: \\"$uuid\\""
        echo "  containerEdits: {env: [\\"GIVEN=$uuid\\"]}"
    done
} > "${4#--output=}"
"""
# PodmanArgs are the limits of memory and processors, for which the kernel here has no controllers.
CONTAINER = """\
[Container]
Image={image}
PodmanArgs=
Ulimit=
HealthInterval=1s
HealthRetries=2
HealthStartPeriod=3s
[Service]
RestartSec=1
"""


def absent() -> str | None:
    """What is missing here, or None."""
    if os.geteuid() != 0:
        return "needs root"
    if not (ROOT / ".ready").exists():
        return "Podman 5 is not unpacked (see tests/tools/docker-setup)"
    return None


def generated(units: Path) -> str:
    """The services that Podman's own generator makes of a folder. Fails with its words."""
    with tempfile.TemporaryDirectory(dir=ROOT / "tmp") as name:
        shutil.copytree(units, Path(name) / "units")
        inside = Path("/tmp") / Path(name).name / "units"
        done = subprocess.run(
            ["chroot", ROOT, "env", f"QUADLET_UNIT_DIRS={inside}", GENERATOR, "-dryrun"],
            capture_output=True,
            text=True,
            check=False,
        )
    complaints = [w for w in done.stderr.splitlines() if "Loading source unit" not in w]
    assert (done.returncode, complaints) == (0, []), done.stderr
    return done.stdout


@dataclass
class Machine:
    process: int
    log: Path

    def ask(self, *words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        """A command on the machine."""
        inside = ["nsenter", f"--target={self.process}", "--all", *words]
        return subprocess.run(
            inside, input=text, capture_output=True, text=True, check=False, timeout=300
        )

    def run(self, *words: str, text: str | None = None) -> str:
        """The output of one that has to succeed."""
        done = self.ask(*words, text=text)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def active(self, unit: str) -> bool:
        return self.ask("systemctl", "is-active", "--quiet", unit).returncode == 0


@contextmanager
def machine(stack: Path, name: str) -> Iterator[Machine]:
    """One with the stack in /opt and its units where the README says."""
    groups = Path("/sys/fs/cgroup/unified")
    groups = (groups if groups.exists() else groups.parent) / f"gpuplan-{os.getpid()}"
    with tempfile.TemporaryDirectory(prefix="gq-", dir="/tmp") as folder:
        here = Path(folder)
        upper = here / "upper"
        for part in ("upper", "work", "root"):
            (here / part).mkdir()
        _fill(upper, stack, name)
        image.root(upper / "image.tar", {f"usr/bin/{played}": ENGINE for played in PLAYED})
        groups.mkdir()
        spaces = ("--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--net")
        # The shell enters the control group before the namespace of control groups begins there.
        enter = 'echo $$ > "$1/cgroup.procs"; shift; exec "$@"'
        start = ["unshare", *spaces, "--cgroup", "sh", "-c", START, "sh", str(ROOT), folder]
        log = here / "log"
        with log.open("w", encoding="utf-8") as file:
            outer = subprocess.Popen(
                ["sh", "-c", enter, "sh", str(groups), *start], stdout=file, stderr=file
            )
            try:
                children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
                wait_for(lambda: outer.poll() is not None or children.read_text("utf-8").strip())
                assert outer.poll() is None, log.read_text("utf-8")
                found = Machine(int(children.read_text("utf-8").split()[0]), log)
                wait_for(lambda: (outer.poll() is not None) or found.active("basic.target"))
                yield found
            finally:
                outer.kill()
                outer.wait()
                wait_for(lambda: removed(groups))


def _fill(upper: Path, stack: Path, name: str) -> None:
    """What the machine has beside Debian's packages."""
    shutil.copytree(stack, upper / "opt" / name)
    units, services = upper / "etc/containers/systemd" / name, upper / "etc/systemd/system"
    units.mkdir(parents=True)
    services.mkdir(parents=True)
    for file in sorted((stack / "quadlet").iterdir()):
        shutil.copy(file, services if file.suffix == ".service" else units)
        if file.suffix == ".container":
            drop = units / f"{file.name}.d"
            drop.mkdir()
            text = CONTAINER.format(image=IMAGE)
            if "HealthCmd" not in file.read_text("utf-8"):
                text = "\n".join(w for w in text.splitlines() if not w.startswith("Health")) + "\n"
            (drop / "stand-in.conf").write_text(text, encoding="utf-8")
    assign = services / f"gpuplan-{name}-assign.service.d/stand-in.conf"
    assign.parent.mkdir()
    ctk = (
        "/usr/bin/nvidia-ctk cdi generate --device-name-strategy=uuid --output=/run/cdi/nvidia.yaml"
    )
    imported = f"/usr/bin/podman import --quiet --change 'CMD {COMMAND}' /image.tar {IMAGE}"
    lines = ("[Service]", "ExecStart=", f"ExecStart={imported}", f"ExecStart={ctk}", "")
    assign.write_text("\n".join(lines), encoding="utf-8")
    (services / "systemd-networkd.service").symlink_to("/dev/null")
    (services / "systemd-networkd-wait-online.service").symlink_to("/dev/null")
    (upper / "var").mkdir()
    (upper / "var/run").symlink_to("/run")
    limits = ", ".join(f'"{limit}"' for limit in LIMITS)
    for path, text in (
        ("etc/containers/containers.conf", CONTAINERS.format(limits=limits)),
        ("etc/containers/policy.json", POLICY),
        ("usr/bin/nvidia-ctk", CTK),
    ):
        (upper / path).parent.mkdir(parents=True, exist_ok=True)
        (upper / path).write_text(text, encoding="utf-8")
    (upper / "usr/bin/nvidia-ctk").chmod(0o755)


def removed(group: Path) -> bool:
    """A control group goes once its processes have gone."""
    for folder, _, _ in os.walk(group, topdown=False):
        try:
            Path(folder).rmdir()
        except OSError:
            return False
    return not group.exists()
