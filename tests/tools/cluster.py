"""A real Kubernetes control plane on loopback, without containers.

    python tests/tools/cluster.py        until Ctrl-C; prints how to reach it

etcd, kube-apiserver and kube-controller-manager, without which deletion never ends. The ports are
free ones; $PORT sets that of the API. Nodes exist on paper: no kubelet runs, so what would notice
their silence (the node lifecycle controller) is left out. A full one has kube-scheduler, which
binds pods or says what is short, and kwok, which reports bound pods as running.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.tools.engines import BIN, absent

START_SECONDS = 90
TOKEN = "administrator"


class NotStarted(Exception):
    """The control plane does not answer; the message holds the ends of its logs."""


def _ports(count: int) -> list[int]:
    """Free ports; all are held until each is known, so that they differ."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    numbers = [int(s.getsockname()[1]) for s in sockets]
    for s in sockets:
        s.close()
    return numbers


def _kubeconfig(port: int) -> str:
    server = {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}
    tree = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "loopback", "cluster": server}],
        "users": [{"name": "administrator", "user": {"token": TOKEN}}],
        "contexts": [
            {"name": "loopback", "context": {"cluster": "loopback", "user": "administrator"}}
        ],
        "current-context": "loopback",
    }
    return json.dumps(tree, indent=2)


def _service_account_key(folder: Path) -> None:
    for command in (
        ("genrsa", "-out", "sa.key", "2048"),
        ("rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub"),
    ):
        subprocess.run(("openssl", *command), cwd=folder, check=True, capture_output=True)


def _commands(folder: Path, ports: list[int]) -> list[list[str]]:
    loopback = "http://127.0.0.1"
    api, client, peer, manager, scheduler, kwok = ports
    return [
        [
            "etcd",
            "--unsafe-no-fsync",
            f"--data-dir={folder / 'etcd'}",
            f"--listen-client-urls={loopback}:{client}",
            f"--advertise-client-urls={loopback}:{client}",
            f"--listen-peer-urls={loopback}:{peer}",
            f"--initial-advertise-peer-urls={loopback}:{peer}",
            f"--initial-cluster=default={loopback}:{peer}",
        ],
        [
            "kube-apiserver",
            f"--etcd-servers={loopback}:{client}",
            f"--cert-dir={folder / 'certificates'}",
            "--bind-address=127.0.0.1",
            f"--secure-port={api}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-account-key-file=sa.pub",
            "--service-account-signing-key-file=sa.key",
            "--service-cluster-ip-range=10.0.0.0/16",
            "--authorization-mode=RBAC",
            "--token-auth-file=tokens.csv",
            "--allow-privileged=true",
            "--disable-admission-plugins=TaintNodesByCondition",
        ],
        [
            "kube-controller-manager",
            "--kubeconfig=kubeconfig",
            "--service-account-private-key-file=sa.key",
            "--use-service-account-credentials=true",
            "--root-ca-file=certificates/apiserver.crt",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={manager}",
            "--controllers=*,-node-lifecycle-controller",
        ],
        [
            "kube-scheduler",
            "--kubeconfig=kubeconfig",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={scheduler}",
        ],
        [
            "kwok",
            "--kubeconfig=kubeconfig",
            f"--config={BIN / 'kwok-stages.yaml'}",
            "--manage-all-nodes=true",
            "--node-lease-duration-seconds=40",
            f"--server-address=127.0.0.1:{kwok}",
        ],
    ]


def _answers(port: int) -> bool:
    request = urllib.request.Request(
        f"https://127.0.0.1:{port}/readyz", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    context = ssl._create_unverified_context()
    try:
        urllib.request.urlopen(request, timeout=2, context=context).close()
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False
    return True


def _logs(folder: Path) -> str:
    return "\n".join(log.read_text()[-1500:] for log in sorted(folder.glob("*.log")))


class _Processes:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, command: list[str]) -> None:
        program, *arguments = command
        with (self.folder / f"{program}.log").open("wb") as log:
            process = subprocess.Popen(
                [BIN / program, *arguments],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.started.append(process)

    @property
    def all_run(self) -> bool:
        return all(p.poll() is None for p in self.started)

    def stop(self) -> None:
        """At once: nothing in the folder is worth a graceful shutdown."""
        for process in reversed(self.started):
            process.kill()
            process.wait()


@dataclass(frozen=True)
class ControlPlane:
    """`etcd` is the address of the store behind the API, where every object is a key."""

    kubeconfig: Path
    etcd: str


@contextmanager
def running(folder: Path, *, full: bool = False) -> Iterator[ControlPlane]:
    """A control plane in an empty `folder`. Raises `NotStarted`."""
    ports = _ports(6)
    api = ports[0] = int(os.environ.get("PORT") or ports[0])
    _service_account_key(folder)
    (folder / "tokens.csv").write_text(f'{TOKEN},administrator,0,"system:masters"\n')
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(_kubeconfig(api))
    etcd, server, controllers, *pods = _commands(folder, ports)
    processes = _Processes(folder)
    try:
        processes.start(etcd)
        processes.start(server)
        deadline = time.monotonic() + START_SECONDS
        while not _answers(api):
            if time.monotonic() > deadline or not processes.all_run:
                raise NotStarted(_logs(folder))
            time.sleep(0.1)
        for command in (controllers, *(pods if full else ())):
            processes.start(command)
        yield ControlPlane(kubeconfig, f"http://127.0.0.1:{ports[1]}")
    finally:
        processes.stop()


def main() -> int:
    if missing := absent():
        print(f"not built: {', '.join(missing)}; `make engines` builds them")
        return 1
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as plane:
        print(
            f"export KUBECONFIG={plane.kubeconfig} PATH={BIN}:$PATH   # Ctrl-C ends it", flush=True
        )
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with suppress(KeyboardInterrupt):
            signal.pause()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
