"""A podman of the test's own, whose service Compose takes for Docker, and a stand-in image.

It runs in namespaces of its own: no port, network or process of the machine is in its way, and all
of it goes with it.

The image is the running Python, HAProxy and a script that plays every engine: it answers HTTP on
the port that the engine's arguments name, with the name of its container.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.tools import image

PROGRAMS = ("podman", "runc", "haproxy")
IMAGE = "localhost/gpuplan-standin:1"
LIMITS = ("nofile=16384:16384", "nproc=4096:4096")  # a sandbox may not raise its own
CONTAINERS = """\
[containers]
default_ulimits = [{limits}]
log_driver = "json-file"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_config_dir = "{folder}/networks"
"""
START = """\
set -e
ip link set lo up
for folder in /run/netns /run/containers; do
    mkdir -p $folder
    mount -t tmpfs tmpfs $folder
done
exec podman system service --time=0 "unix://$1"
"""
NAMESPACES = ("--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
STORAGE = '[storage]\ndriver = "vfs"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n'
ENGINE = """\
#!/usr/bin/python3
import http.server, os, socket, sys
words = dict(w.removeprefix("--").split("=", 1) for w in sys.argv[1:] if "=" in w)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503 if os.path.exists("/scratch/sick") else 200)
        self.end_headers()
        self.wfile.write(socket.gethostname().encode())
    def log_message(self, *_):
        pass
print(sorted(os.sched_getaffinity(0)), flush=True)
open("/scratch/written", "w").close()
port = int(words.get("port", 8888))
http.server.ThreadingHTTPServer(("0.0.0.0", port), Handler).serve_forever()
"""
COMMAND = 'CMD ["haproxy", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]'  # of HAProxy's own image
PLAYED = ("vllm", "start-notebook.py", "axolotl")


def absent() -> str | None:
    """What is missing here, or None."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [p for p in PROGRAMS if shutil.which(p) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (see tests/tools/docker-setup)"
    return None


@dataclass
class Podman:
    """`service` is the process whose namespaces are the containers'."""

    folder: Path
    environment: dict[str, str]
    service: int

    def podman(self, *words: str | Path) -> str:
        return self.run(*self.remote, *words)

    @property
    def remote(self) -> tuple[str, ...]:
        return ("podman", "--remote", "--url", self.environment["DOCKER_HOST"])

    def outside(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command on the containers' machine, outside of them."""
        command = ["nsenter", f"--target={self.service}", "--net", "--pid", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def run(self, *words: str | Path, cwd: Path | None = None) -> str:
        """The output of a command that has to succeed."""
        done = subprocess.run(
            [str(w) for w in words],
            cwd=cwd,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout


@contextmanager
def podman(folder: Path) -> Iterator[Podman]:
    """The service, with the stand-in image."""
    limits = ", ".join(f'"{limit}"' for limit in LIMITS)
    text = CONTAINERS.format(limits=limits, folder=folder)
    (folder / "containers.conf").write_text(text, encoding="utf-8")
    (folder / "storage.conf").write_text(STORAGE.format(folder=folder), encoding="utf-8")
    socket = folder / "socket"
    environment = os.environ | {
        "CONTAINERS_CONF": str(folder / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
        "DOCKER_HOST": f"unix://{socket}",
    }
    archive = folder / "image.tar"
    image.root(archive, {f"usr/bin/{name}": ENGINE for name in PLAYED})
    command = ["unshare", *NAMESPACES, "sh", "-c", START, "sh", str(socket)]
    with (folder / "log").open("w", encoding="utf-8") as log:
        outer = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            wait_for(lambda: socket.exists() or outer.poll() is not None)
            assert outer.poll() is None, (folder / "log").read_text("utf-8")
            children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text("utf-8")
            client = Podman(folder, environment, int(children.split()[0]))
            client.podman("import", "--quiet", "--change", COMMAND, archive, IMAGE)
            yield client
        finally:
            outer.kill()  # and with it all processes of its namespace
            outer.wait()


def wait_for(done: object, seconds: int = 300) -> None:
    """Until `done()` is true; however slow the machine is, not for ever."""
    assert callable(done)
    for _ in range(seconds * 5):
        if done():
            return
        time.sleep(0.2)
    raise AssertionError(f"not within {seconds} s: {done}")
