"""`gpuplan simulate`: the real scheduler's answer on a stack, and on one with a node less."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuplan.cli.main import main
from tests.preview.programs import need_sdk
from tests.support.require import require
from tests.tools.engines import BIN, FULL, absent

ROOT = Path(__file__).parents[2]
MANIFEST = """\
apiVersion: gpuplan.dev/v1
name: chat
platform: {target: kubernetes, inventory: rack.yaml}
workloads:
- name: assistant
  task: inference
  model: Qwen/Qwen3-8B
  load: {requests_per_second: 1, input_tokens: 500, output_tokens: 100}
  tenancy: {isolation: node}
  overrides: {replicas: 3}
"""
RACK = """\
apiVersion: gpuplan.dev/inventory/v1
name: rack
hosts:
- names: [n1, n2]
  cpu_cores: 32
  memory: 512 GiB
  gpus:
  - {type: l40s, count: 2}
"""


# Every field of the network that becomes a part of an object, in both families of addresses.
NETWORK = """\
  versions: {kubernetes: "1.36"}
  network:
    dns: {service: cloud-dns, ports: [53, 5353]}
    proxy: {https: "http://proxy.example.org:3128", address: 10.1.2.3/32, exceptions: [.a.org]}
    hub: https://hub.example.org:8443
    object_storage: https://s3.example.org:9000
    images: {docker.io: registry.example.org/hub}
    pull_secrets: [registry]
    egress:
    - {to: 10.20.0.0/16, ports: [8443, 9000], reason: mirror}
    - {to: "fd00:20::/32", ports: [9000]}
    - {ports: [22]}
"""


def stack(folder: Path, network: str = "") -> Path:
    (folder / "rack.yaml").write_text(RACK, encoding="utf-8")
    where = "platform: {target: kubernetes, inventory: rack.yaml}\n"
    block = f"platform:\n  target: kubernetes\n  inventory: rack.yaml\n{network}"
    (folder / "chat.yaml").write_text(MANIFEST.replace(where, block), encoding="utf-8")
    assert main(["compile", str(folder / "chat.yaml"), "-o", str(folder)]) == 0
    return folder / "chat"


def test_missing_programs_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = stack(tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "etcd").write_text("", encoding="utf-8")
    (tmp_path / "bin" / "etcd").chmod(0o755)
    monkeypatch.setenv("PATH", "")
    capsys.readouterr()
    assert main(["simulate", str(made), "--programs", str(tmp_path / "bin")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "openssl, kubectl, kube-apiserver, kube-controller-manager, kube-scheduler, kwok" in said
    assert "etcd, kube-apiserver" not in said


def test_a_node_that_the_plan_lacks_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = stack(tmp_path)
    capsys.readouterr()
    assert main(["simulate", str(made), "--without", "n3"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "the plan has no node 'n3'" in said
    assert main(["simulate", str(ROOT / "stacks/passthrough")]) == 2
    assert "only Kubernetes has a scheduler" in " ".join(capsys.readouterr().err.split())


@pytest.mark.cluster
@pytest.mark.sdk
def test_one_node_less_leaves_the_right_pod_pending(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_sdk()
    if missing := absent(FULL):
        require("scheduler", f"{', '.join(missing)} not built: `make engines-full`")
    made = stack(tmp_path)
    capsys.readouterr()
    command = ["simulate", str(made), "--programs", str(BIN), "--json"]
    assert main(command) == 0
    whole = json.loads(capsys.readouterr().out)
    assert sorted(p["node"] for p in whole["pods"]) in (["n1", "n1", "n2"], ["n1", "n2", "n2"])
    assert main([*command, "--without", "n2"]) == 1
    less = json.loads(capsys.readouterr().out)
    assert less["nodes"] == ["n1"]
    bound = [p["node"] for p in less["pods"] if "node" in p]
    (pending,) = (p for p in less["pods"] if "node" not in p)
    assert bound == ["n1", "n1"]
    assert "Insufficient nvidia.com/gpu" in pending["reason"]
    assert pending["workload"] == "assistant"


@pytest.mark.cluster
@pytest.mark.sdk
def test_the_pods_of_a_run_stand_beside_one_another(capsys: pytest.CaptureFixture[str]) -> None:
    """None ends while another waits: then the second would take the first one's node."""
    need_sdk()
    if missing := absent(FULL):
        require("scheduler", f"{', '.join(missing)} not built: `make engines-full`")
    command = ["simulate", str(ROOT / "stacks/tune-70b"), "--programs", str(BIN), "--json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    nodes = [p["node"] for p in found["pods"]]
    assert sorted(nodes) == sorted(found["nodes"])


@pytest.mark.cluster
@pytest.mark.sdk
def test_objects_of_an_unusual_cluster_are_accepted_and_bound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The API server refuses unknown fields, addresses and ports that are none."""
    need_sdk()
    if missing := absent(FULL):
        require("scheduler", f"{', '.join(missing)} not built: `make engines-full`")
    made = stack(tmp_path, NETWORK)
    capsys.readouterr()
    assert main(["simulate", str(made), "--programs", str(BIN)]) == 0
    assert "every pod is bound, on 2 nodes" in capsys.readouterr().out


@pytest.mark.cluster
@pytest.mark.sdk
def test_what_custom_adds_is_applied_and_refused_in_the_servers_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_sdk()
    if missing := absent(FULL):
        require("scheduler", f"{', '.join(missing)} not built: `make engines-full`")
    made = stack(tmp_path)
    seed = made / "custom.py"
    text = seed.read_text(encoding="utf-8")
    line = '    if kind.endswith(":Deployment"):\n        props["spec"].replicas = "many"\n'
    head, _, tail = text.partition("\n\ndef transform(")
    seed.write_text(f"{head}{line}\n\ndef transform({tail}", encoding="utf-8")
    capsys.readouterr()
    assert main(["simulate", str(made), "--programs", str(BIN)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "GP039" in said
    assert "replicas" in said
