"""A real Kubernetes control plane on loopback, without containers.

etcd, kube-apiserver and kube-controller-manager, without which deletion never ends, on free ports.
Nodes exist on paper: no kubelet runs, so what would notice their silence (the node lifecycle
controller) is left out. A full one has kube-scheduler, which binds pods or says what is short, and
kwok, which reports bound pods as running.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from secrets import token_hex

BASE = ("openssl", "kubectl", "etcd", "kube-apiserver", "kube-controller-manager")
FULL = (*BASE, "kube-scheduler", "kwok")
START_SECONDS = 300
OK = 200
STAGES_OF_KWOK = "kwok-stages.yaml"  # of kwok's own module
ENDS = "\n  name: pod-complete\n"  # the stage in which a Job's pod ends as soon as it runs
CERTIFICATE = "certificates/apiserver.crt"  # kube-apiserver signs it itself
CONTEXT = "loopback"


class NotStarted(Exception):
    """The control plane does not answer; the message holds the ends of its logs."""


def programs(names: Sequence[str], folder: Path | None) -> dict[str, Path | None]:
    """Where each program is: in `folder`, else on PATH; None where it is not."""
    search = os.pathsep.join(filter(None, (str(folder or ""), os.environ.get("PATH", ""))))
    paths = {name: shutil.which(name, path=search) for name in names}
    return {name: Path(path) if path else None for name, path in paths.items()}


def _ports(count: int) -> list[int]:
    """Free ports; all are held until each is known, so that they differ."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    numbers = [int(s.getsockname()[1]) for s in sockets]
    for s in sockets:
        s.close()
    return numbers


def _kubeconfig(folder: Path, port: int, token: str) -> str:
    authority = str(folder / CERTIFICATE)
    server = {"server": f"https://127.0.0.1:{port}", "certificate-authority": authority}
    tree = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "loopback", "cluster": server}],
        "users": [{"name": "administrator", "user": {"token": token}}],
        "contexts": [
            {"name": CONTEXT, "context": {"cluster": "loopback", "user": "administrator"}}
        ],
        "current-context": CONTEXT,
    }
    return json.dumps(tree, indent=2)


def _service_account_key(openssl: Path, folder: Path) -> None:
    for command in (
        ("genrsa", "-out", "sa.key", "2048"),
        ("rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub"),
    ):
        subprocess.run((openssl, *command), cwd=folder, check=True, capture_output=True)


def _stages(folder: Path, kwok: Path | None) -> list[str]:
    """What says how nodes and pods go on, from the file beside the program; without it, pods are
    bound and no more. Pods of Jobs stay: else the next one would take the place of the first."""
    file = kwok.with_name(STAGES_OF_KWOK) if kwok else None
    if file is None or not file.is_file():
        return []
    stages = file.read_text("utf-8").split("\n---\n")
    kept = folder / "stages.yaml"
    kept.write_text("\n---\n".join(s for s in stages if ENDS not in s), encoding="utf-8")
    return [f"--config={kept}"]


def _commands(folder: Path, ports: list[int], kwok_at: Path | None) -> list[list[str]]:
    stages = _stages(folder, kwok_at)
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
            f"--root-ca-file={CERTIFICATE}",
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
            *stages,
            "--manage-all-nodes=true",
            "--node-lease-duration-seconds=40",
            f"--server-address=127.0.0.1:{kwok}",
        ],
    ]


def _answers(folder: Path, port: int, token: str) -> bool:
    authority = folder / CERTIFICATE
    if not authority.is_file():
        return False
    try:
        context = ssl.create_default_context(cafile=authority)
        connection = HTTPSConnection("127.0.0.1", port, timeout=30, context=context)
        with closing(connection):
            connection.request("GET", "/readyz", headers={"Authorization": f"Bearer {token}"})
            return connection.getresponse().status == OK
    except (OSError, HTTPException):
        return False


def _logs(folder: Path) -> str:
    return "\n".join(log.read_text()[-1500:] for log in sorted(folder.glob("*.log")))


class _Processes:
    def __init__(self, folder: Path, programs: Mapping[str, Path | None]) -> None:
        self.folder, self.programs = folder, programs
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, command: list[str]) -> None:
        program, *arguments = command
        with (self.folder / f"{program}.log").open("wb") as log:
            process = subprocess.Popen(
                [str(self.programs[program]), *arguments],
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
    """`etcd` is the address of the store behind the API, where every object is a key; `kubectl` is
    the program that speaks with it."""

    kubeconfig: Path
    etcd: str
    kubectl: Path


@contextmanager
def running(
    folder: Path,
    programs: Mapping[str, Path | None],
    *,
    full: bool = False,
    port: int | None = None,
) -> Iterator[ControlPlane]:
    """A control plane in an empty `folder`, of `programs`, by their names; its API at `port`,
    or a free one. A full one whose programs have no kwok leaves its nodes to others. Raises
    `NotStarted`."""
    ports = _ports(6)
    api = ports[0] = port or ports[0]
    openssl, kubectl = programs["openssl"], programs["kubectl"]
    assert openssl is not None
    assert kubectl is not None
    _service_account_key(openssl, folder)
    token = token_hex(16)
    (folder / "tokens.csv").write_text(f'{token},administrator,0,"system:masters"\n')
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(_kubeconfig(folder, api, token))
    etcd, server, controllers, *pods = _commands(folder, ports, programs.get("kwok"))
    processes = _Processes(folder, programs)
    try:
        processes.start(etcd)
        processes.start(server)
        deadline = time.monotonic() + START_SECONDS
        while not _answers(folder, api, token):
            if time.monotonic() > deadline or not processes.all_run:
                raise NotStarted(_logs(folder))
            time.sleep(0.1)
        for command in (controllers, *(pods if full else ())):
            if command[0] in programs:
                processes.start(command)
        yield ControlPlane(kubeconfig, f"http://127.0.0.1:{ports[1]}", kubectl)
    finally:
        processes.stop()
