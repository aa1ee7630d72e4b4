"""One address for a service whose jobs come, move and end: a real HAProxy, and the files that jobs
write of their addresses."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.require import require
from tests.support.slurms import CHAT, HEAD, NOTEBOOKS, stack
from tests.tools.podman import wait_for

pytestmark = pytest.mark.docker

# A replica: its own port in each answer, and no health while a file is there.
ENGINE = """\
import http.server, os, sys
port, sick = int(sys.argv[1]), sys.argv[2]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(503 if self.path == "/health" and os.path.exists(sick) else 200)
        self.end_headers()
        self.wfile.write(str(port).encode())
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""
ASK = """\
import urllib.request
ask = lambda: urllib.request.urlopen("http://127.0.0.1:8000/v1/models", timeout=5).read().decode()
print(*sorted({ask() for _ in range(12)}))
"""


@dataclass
class Network:
    """Of the test's own, which `holder` keeps; ports of the machine are not in its way."""

    holder: int
    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, *words: str | Path) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(["nsenter", f"--target={self.holder}", "--net", *words])
        self.processes.append(process)
        return process

    def replica(self, number: int, port: int) -> subprocess.Popen[bytes]:
        """It listens, and says where, as its job does."""
        engine = self.start(
            sys.executable, "-c", ENGINE, str(port), str(self.folder / f"sick-{port}")
        )
        self.said(number, f"127.0.0.1:{port}\n")
        return engine

    def said(self, number: int, address: str) -> None:
        path = self.folder / "cluster/endpoints/chat" / str(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(address, encoding="utf-8")

    def answers(self) -> list[str]:
        """Who answers at the service's address; nobody where one request has no answer."""
        ask = ["nsenter", f"--target={self.holder}", "--net", sys.executable, "-c", ASK]
        done = subprocess.run(ask, capture_output=True, text=True, check=False)
        return done.stdout.split() if done.returncode == 0 else []


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    if os.geteuid() != 0:
        require("docker", "needs root")
    if shutil.which("haproxy") is None:
        require("docker", "haproxy is not installed (see tests/tools/docker-setup)")
    words = ["unshare", "--net", "sh", "-c", "ip link set lo up; echo; exec sleep infinity"]
    holder = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    own = Network(holder.pid, tmp_path)
    try:
        yield own
    finally:
        for process in [*own.processes[::-1], holder]:
            process.terminate()
            process.communicate()


def test_one_address_follows_the_replicas_of_a_service(network: Network) -> None:
    folder = network.folder
    head = HEAD.replace("storage: /lustre/gpuplan", f"storage: {folder}")
    made = stack(folder, CHAT, NOTEBOOKS, head=head)
    script = network.start(made / "serve.sh")
    first = network.replica(0, 7001)
    network.replica(1, 7002)
    wait_for(lambda: network.answers() == ["7001", "7002"])

    # One that is elsewhere after it was requeued has another address, and one that ends has none.
    first.kill()
    network.replica(0, 7003)
    wait_for(lambda: network.answers() == ["7002", "7003"])
    (folder / "cluster/endpoints/chat/1").unlink()
    wait_for(lambda: network.answers() == ["7003"])

    # What is no address, or of a host that nobody knows, changes nothing for the others.
    network.said(2, "$(touch /tmp/x) 'y'\n    server z 127.0.0.1:7002\n")
    network.said(3, "no-such-host.invalid:8000\n")
    network.replica(4, 7004)
    wait_for(lambda: network.answers() == ["7003", "7004"])

    # No health, no requests.
    (folder / "sick-7003").touch()
    wait_for(lambda: network.answers() == ["7004"])

    script.terminate()
    script.wait()
    wait_for(lambda: network.answers() == [])


def test_who_has_no_service_has_no_such_script(tmp_path: Path) -> None:
    assert not (stack(tmp_path, NOTEBOOKS) / "serve.sh").exists()
