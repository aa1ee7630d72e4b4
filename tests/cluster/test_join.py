"""A guest with `hypervisor.join: kubeadm` becomes a node: its own files and script, the real
kubeadm, kubelet and containerd, against a control plane that kubeadm set up. `make kubelet`."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from gpuplan.plan.model import ClusterJoin
from tests.backends.test_seeds import SECRETS, imaged, seeds, written
from tests.support.require import require
from tests.tools import kubejoin
from tests.tools.kube import Kube, Refused, Tree

pytestmark = [pytest.mark.cluster]

VERSION = "1.36.2"
SECONDS = 120


@dataclass
class Joining:
    kube: Kube
    folder: Path

    def files(self, *, ca: str | None = None) -> dict[str, str]:
        """Those of the guest that its seed writes, for this cluster."""
        found = kubejoin.authority(self.folder) if ca is None else ca
        join = ClusterJoin(
            kind="kubeadm", server=kubejoin.SERVER, version=VERSION, ca_cert_hashes=(found,)
        )
        plan = imaged("whole hosts", secrets=SECRETS)
        plan = replace(plan, hosts=tuple(replace(h, join=join) for h in plan.hosts))
        return written(seeds(plan)["big-0"])

    def node(self) -> Tree | None:
        with suppress(Refused):
            return dict(json.loads(self.kube.kubectl("get", "node", "big-0", "-o", "json")))
        return None


@pytest.fixture(scope="module")
def cluster() -> Iterator[Joining]:
    if missing := kubejoin.absent():
        require("kubelet", missing)
    with tempfile.TemporaryDirectory(prefix="gpj-", dir="/tmp") as name:
        folder = Path(name)
        with kubejoin.cluster(folder, VERSION) as kube:
            yield Joining(kube, folder)


def until(done: Callable[[], object], log: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while not done():
        assert time.monotonic() < deadline, log.read_text("utf-8", "replace")[-4000:]
        time.sleep(0.5)


def said(log: Path) -> str:
    return log.read_text("utf-8", "replace")


@pytest.mark.parametrize("wrong", ["token", "authority"])
def test_a_wrong_secret_makes_no_node_and_says_so(
    wrong: str, cluster: Joining, tmp_path: Path
) -> None:
    token = "zyxwvu.0123456789abcdef" if wrong == "token" else kubejoin.TOKEN
    files = cluster.files(ca="sha256:" + "ab" * 32 if wrong == "authority" else None)
    quick = {"/etc/gpuplan/join.yaml": files["/etc/gpuplan/join.yaml"] + kubejoin.QUICK}
    with kubejoin.guest(tmp_path, files | quick, token) as log:
        until(lambda: "error execution phase" in said(log), log)
    reason = {"token": "could not find a JWS signature", "authority": "none of the public keys"}
    assert reason[wrong] in said(log), said(log)
    assert token not in said(log)
    assert cluster.node() is None


def test_a_guest_is_a_node_with_its_label_whose_kubelet_has_its_own_certificate(
    cluster: Joining, tmp_path: Path
) -> None:
    files = cluster.files()
    with kubejoin.guest(tmp_path, files) as log:
        until(lambda: "joined" in said(log).splitlines(), log)
        until(lambda: ready(cluster.node()), log)
        node = cluster.node()
        assert node is not None
        assert node["metadata"]["labels"]["gpuplan.dev/workload"] == "big"
        assert node["status"]["nodeInfo"]["kubeletVersion"] == f"v{VERSION}"
        requests = json.loads(cluster.kube.kubectl("get", "csr", "-o", "json"))["items"]
        asked = {r["spec"]["username"]: r["status"]["conditions"][0]["type"] for r in requests}
        assert asked == {f"system:bootstrap:{kubejoin.TOKEN[:6]}": "Approved"}
        assert kubejoin.TOKEN not in said(log)


def ready(node: Tree | None) -> bool:
    conditions = node["status"].get("conditions", ()) if node else ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
