"""A dockerd of the test's own: Docker's engine as Debian 13 has it, below the same Compose and with
the same stand-in image as tests/tools/podman.py.

It runs in namespaces of its own. Control groups are the machine's; what it makes there goes with
it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.tools import image
from tests.tools.podman import COMMAND, ENGINE, IMAGE, LIMITS, NAMESPACES, PLAYED, Podman, wait_for
from tests.tools.quadlet import ROOT, removed

GROUPS = Path("/sys/fs/cgroup")
# Docker has the driver `nvidia` where the toolkit's hook is on PATH, and tells it the devices.
HOOK = "nvidia-container-runtime-hook"
START = """\
set -e
ip link set lo up
mount -t tmpfs tmpfs /run
exec dockerd --host="unix://$1/socket" --data-root="$1/data" --exec-root=/run/docker \\
    --pidfile=/run/docker.pid --storage-driver=vfs --cgroup-parent="$2" --default-ulimit="$3"
"""


def absent() -> str | None:
    """What is missing here, or None."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [p for p in ("runc", "iptables") if shutil.which(p) is None]
    missing += [
        p for p in ("dockerd", "containerd", "docker") if shutil.which(p, path=_path()) is None
    ]
    return f"not there: {', '.join(missing)} (see tests/tools/docker-setup)" if missing else None


def _path() -> str:
    """Programs of the machine first: Debian 13's runc wants its C library."""
    return f"{os.environ['PATH']}:{ROOT}/usr/sbin:{ROOT}/usr/bin"


@dataclass
class Docker(Podman):
    @property
    def remote(self) -> tuple[str, ...]:
        return (shutil.which("docker", path=_path()) or "docker",)


@contextmanager
def dockerd(folder: Path) -> Iterator[Docker]:
    """The engine, with the stand-in image."""
    environment = os.environ | {"DOCKER_HOST": f"unix://{folder}/socket", "PATH": _path()}
    (folder / HOOK).write_text("#!/bin/sh\n", encoding="utf-8")
    (folder / HOOK).chmod(0o755)
    environment["PATH"] = f"{folder}:{environment['PATH']}"
    archive, parent = folder / "image.tar", f"/{folder.name}"
    image.root(archive, {f"usr/bin/{name}": ENGINE for name in PLAYED})
    command = ["unshare", *NAMESPACES, "sh", "-c", START, "sh", str(folder), parent, LIMITS[0]]
    with (folder / "log").open("w", encoding="utf-8") as log:
        outer = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            wait_for(lambda: (folder / "socket").exists() or outer.poll() is not None)
            assert outer.poll() is None, (folder / "log").read_text("utf-8")
            children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text("utf-8")
            client = Docker(folder, environment, int(children.split()[0]))
            client.podman("import", "--change", COMMAND, archive, IMAGE)
            yield client
        finally:
            outer.kill()  # and with it all processes of its namespace
            outer.wait()
            for group in GROUPS.glob(f"*{parent}"):
                wait_for(lambda group=group: removed(group))
