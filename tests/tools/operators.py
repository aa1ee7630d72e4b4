"""Operators beside a control plane: started here, with what their charts install.

A webhook that a server calls by the name of a Service reaches loopback by an `ExternalName`. The
operators make their certificates themselves; what a kubelet would mount is written out.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from gpuplan.simulate.plane import NotStarted
from tests.tools.engines import BIN
from tests.tools.kube import PATIENCE_SECONDS, Kube, Object, Tree

# Pods that would run the operator, and the API that is off here.
LEFT_OUT = ("Deployment", "APIService")
CERTIFICATES = ("ca.crt", "tls.crt", "tls.key")
# An API server that would ask for the account of a pod.
OFF = {"kueue": {"featureGates": {"VisibilityOnDemand": False}}}
SETTINGS = "controller_manager_config.yaml"


def _port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        return int(listening.getsockname()[1])


def _installed(name: str) -> list[Tree]:
    documents = YAML(typ="safe").load_all((BIN / f"{name}.yaml").read_text("utf-8"))
    return [d for d in documents if d and d["kind"] not in LEFT_OUT]


def _on_loopback(tree: Tree, port: int) -> Tree:
    """Services that webhooks name lead to `port` of this machine."""
    if tree["kind"] == "Service":
        return tree | {"spec": {"type": "ExternalName", "externalName": "127.0.0.1"}}
    for service in _services(tree):
        service["port"] = port
    return tree


def _services(node: Any) -> Iterator[Tree]:
    if isinstance(node, dict):
        if isinstance(client := node.get("clientConfig"), dict) and "service" in client:
            yield client["service"]
        node = list(node.values())
    if isinstance(node, list):
        for part in node:
            yield from _services(part)


@dataclass(frozen=True)
class _Operator:
    """`folder` is its own, and empty; its webhooks listen at `port` of loopback."""

    name: str
    folder: Path
    port: int

    @property
    def namespace(self) -> str:
        return f"{self.name}-system"

    @property
    def certificates(self) -> Path:
        return self.folder / "certificates"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text("utf-8", "replace")[-3000:]

    def configure(self, trees: Sequence[Tree]) -> None:
        """As its chart has it, but for where it listens."""
        (found,) = (t["data"][SETTINGS] for t in trees if t["kind"] == "ConfigMap")
        own = {
            "webhook": {
                "host": "127.0.0.1",
                "port": self.port,
                "certDir": str(self.certificates),
            },
            "metrics": {"bindAddress": "0"},
            "health": {"healthProbeBindAddress": "0"},
            "leaderElection": {"leaderElect": False},
        }
        settings = {**YAML(typ="safe").load(found), **own, **OFF.get(self.name, {})}
        (self.folder / SETTINGS).write_text(json.dumps(settings), encoding="utf-8")

    def start(self, kube: Kube) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("wb") as output:
            return subprocess.Popen(
                [str(BIN / self.name), f"--config={SETTINGS}"],
                cwd=self.folder,
                env=os.environ | {"KUBECONFIG": str(kube.plane.kubeconfig)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def mount(self, kube: Kube) -> None:
        """The certificates, once it has made them."""
        secrets = json.loads(kube.kubectl("get", "secrets", "-n", self.namespace, "-o", "json"))
        for data in (s["data"] for s in secrets["items"] if "tls.crt" in s.get("data", ())):
            for file in CERTIFICATES:
                (self.certificates / file).write_bytes(b64decode(data[file]))

    @property
    def listens(self) -> bool:
        with closing(socket.socket()) as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0


@contextmanager
def running(kube: Kube, name: str, folder: Path) -> Iterator[None]:
    """Operator `name` with an empty `folder`, its kinds defined. Raises `NotStarted`."""
    operator = _Operator(name, folder, _port())
    operator.certificates.mkdir()
    trees = _installed(name)
    operator.configure(trees)
    metadata = {"name": operator.namespace}
    kube.apply([Object({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})])
    kube.apply([Object(_on_loopback(tree, operator.port)) for tree in trees])
    process = operator.start(kube)
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not operator.listens:
            if process.poll() is not None or time.monotonic() > deadline:
                raise NotStarted(operator.log)
            operator.mount(kube)
            time.sleep(0.5)
        yield
    finally:
        process.kill()
        process.wait()
