"""Stacks that really run: the scheduler binds their pods, the kubelet starts them with containerd.

As emitted, but for amounts of CPU, memory and disk that no machine of CI has; images of the same
names hold stand-ins; GPUs are counted, not there; volumes are folders.
"""

from __future__ import annotations

import copy
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from gpuplan.simulate.nodes import nodes, volumes
from tests.support.plans import read_plan
from tests.support.require import require
from tests.tools import kubelet, played
from tests.tools.kube import PATIENCE_SECONDS, Kube, Object, Tree
from tests.tools.kubelet import Machine
from tests.tools.stacks import objects_of

pytestmark = [pytest.mark.cluster, pytest.mark.sdk]

STACKS = Path(__file__).parents[2] / "stacks"
SMALLER: dict[str, Callable[[str], str]] = {
    "cpu": "{}0m".format,
    "memory": lambda amount: amount.replace("Gi", "0Mi"),
    "ephemeral-storage": lambda amount: amount.replace("0Gi", "Gi"),
}
MIB = 2**20
FILTER = 2  # "Seccomp" of /proc/self/status
ASK = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=200).read().decode())"


def pod_specs(tree: Any) -> Iterator[Tree]:
    if isinstance(tree, dict):
        if "containers" in tree:
            yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for part in tree:
            yield from pod_specs(part)


def containers(tree: Any) -> Iterator[Tree]:
    for spec in pod_specs(tree):
        yield from (*spec.get("initContainers", ()), *spec["containers"])


def smaller(found: Object) -> Object:
    """With a hundredth of the CPU and memory and a tenth of the disk."""
    tree = copy.deepcopy(found.tree)
    for container in containers(tree):
        for amounts in container["resources"].values():
            amounts |= {k: SMALLER[k](v) for k, v in amounts.items() if k in SMALLER}
    return Object(tree, found.manager)


def folders(made: list[Object], folder: Path) -> list[Object]:
    """The volumes as folders of the machine, which the kubelet gives to a pod's group."""
    machine = {"key": "kubernetes.io/hostname", "operator": "In", "values": [kubelet.NAME]}
    here = {"required": {"nodeSelectorTerms": [{"matchExpressions": [machine]}]}}
    for tree in (o.tree for o in made):
        path = folder / tree["metadata"]["name"]
        path.mkdir(parents=True)
        del tree["spec"]["hostPath"]
        tree["spec"] |= {"local": {"path": str(path)}, "nodeAffinity": here}
    return made


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    if missing := kubelet.absent():
        require("kubelet", missing)
    names = {
        c["image"]
        for s in ("search", "images", "lab", "finetune")
        for o in objects_of(STACKS / s)
        for c in containers(o.tree)
    }
    with kubelet.machine(
        tmp_path_factory.mktemp("machine"), played.SCRIPTS, [*map(played.image, sorted(names))]
    ) as made:
        yield made


@pytest.fixture
def put(node: Machine, tmp_path: Path) -> Iterator[Callable[[str, str], Path]]:
    """The stack, of whose nodes this is the one with the label; where its volumes are."""
    made: list[Object] = []

    def apply(stack: str, product: str) -> Path:
        found = [n.tree for n in nodes(read_plan(STACKS / stack))]
        chosen = next(n for n in found if product in str(n["metadata"]["labels"]))
        patches, objects = [], []
        for item in objects_of(STACKS / stack):
            (patches if item.tree["kind"] == "Node" else objects).append(item)
        name, labels = chosen["metadata"]["name"], dict(chosen["metadata"]["labels"])
        for metadata in (p.tree["metadata"] for p in patches):
            labels |= metadata.get("labels", {}) if metadata["name"] == name else {}
        kinds = {k for n in found for k in n["status"]["allocatable"] if "/" in k}
        node.equip(dict.fromkeys(kinds, "64"), labels)
        made.extend(folders(volumes(objects), tmp_path / "volumes"))
        made.extend(map(smaller, objects))
        node.kube.apply(made)
        return tmp_path / "volumes"

    yield apply
    node.kube.kubectl("delete", "deployments,statefulsets,jobs", "-A", "--all", "--wait=false")
    node.kube.kubectl("delete", "pods", "-A", "--all", "--grace-period=0", "--force")
    node.kube.sweep([o for o in reversed(made) if not o.is_patch])


def pods(kube: Kube, name: str) -> list[Tree]:
    how = ("-A", "-l", f"app.kubernetes.io/name={name}", "-o", "json")
    return list(json.loads(kube.kubectl("get", "pods", *how))["items"])


def ready(pod: Tree) -> bool:
    found = pod["status"].get("conditions", ())
    return any(c["type"] == "Ready" and c["status"] == "True" for c in found)


def wait(node: Machine, read: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline:
        if found := read():
            return found
        time.sleep(0.5)
    raise AssertionError(
        node.kube.kubectl("get", "events", "-A")[-3000:]
        + node.kube.kubectl("get", "pods", "-A", "-o", "yaml")[-3000:]
    )


def running(node: Machine, name: str, count: int) -> list[Tree]:
    def read() -> list[Tree]:
        found = [p for p in pods(node.kube, name) if ready(p)]
        return found if len(found) == count else []

    return list(wait(node, read))


def lines(node: Machine, pod: Tree, container: str = "engine", start: int = -1) -> list[Tree]:
    """What a stand-in said of itself, in its latest start or another."""
    return [json.loads(line) for line in node.said(pod, container)[start].splitlines()]


def emitted(stack: str, kind: str, name: str) -> Tree:
    (found,) = (
        o.tree
        for o in objects_of(STACKS / stack)
        if (o.tree["kind"], o.tree["metadata"]["name"]) == (kind, name)
    )
    return dict(found["spec"])


def held(said: Tree) -> None:
    """What the emitted security context promises."""
    assert said["capabilities"] == 0
    assert said["no_new_privileges"] == 1
    assert said["seccomp"] == FILTER
    assert said["pid"] == 1  # of its container: signals reach the engine itself
    links = [n for n in said["environment"] if n.endswith("_SERVICE_HOST")]
    assert links == ["KUBERNETES_SERVICE_HOST"]  # of no other service
    assert "/var/run/secrets/kubernetes.io/serviceaccount" not in said["writable"]


def test_services_answer_restart_and_drain(node: Machine, put: Any) -> None:
    volumes = put("search", "L40S")
    spec = emitted("search", "Deployment", "reranker")
    found = running(node, "reranker", spec["replicas"])
    (container,) = spec["template"]["spec"]["containers"]
    for pod in found:
        said = lines(node, pod)[0]
        held(said)
        assert said["name"] == "text-embeddings-router"
        assert said["words"] == container["args"]
        assert {e["name"]: e["value"] for e in container["env"]}.items() <= said[
            "environment"
        ].items()
        assert all(said["writable"][m["mountPath"]] for m in container["volumeMounts"])
        assert said["shm_bytes"] == 450 * MIB  # the pod's memory, which is less than its limit

    drained, hung = found
    metadata = drained["metadata"]
    address = f"http://{drained['status']['podIP']}:8000"
    began = time.monotonic()
    asked = subprocess.Popen(
        [sys.executable, "-c", ASK, f"{address}/slow"], stdout=subprocess.PIPE, text=True
    )
    time.sleep(2)
    hang = volumes / "search-reranker-models" / f"hang-{hung['metadata']['name']}"
    hang.touch()
    node.kube.kubectl(
        "delete", "pod", metadata["name"], "-n", metadata["namespace"], "--wait=false"
    )
    assert asked.communicate(timeout=PATIENCE_SECONDS)[0] == "served\n"
    wait(node, lambda: {"drained": True} in lines(node, drained))
    grace = spec["template"]["spec"]["terminationGracePeriodSeconds"]
    assert time.monotonic() - began < grace
    assert {"signal": signal.SIGTERM} in lines(node, drained)

    (again,) = wait(node, lambda: [p for p in pods(node.kube, "reranker") if restarts(p)])
    assert again["metadata"]["uid"] == hung["metadata"]["uid"]
    assert dying(node, again) < container["lifecycle"]["preStop"]["sleep"]["seconds"]
    hang.unlink()
    running(node, "reranker", spec["replicas"])


def dying(node: Machine, pod: Tree) -> float:
    """Seconds from the kubelet's decision to restart a container to its end."""
    about = f"--field-selector=reason=Killing,involvedObject.name={pod['metadata']['name']}"
    namespace = f"--namespace={pod['metadata']['namespace']}"
    (event,) = json.loads(node.kube.kubectl("get", "events", namespace, about, "-o", "json"))[
        "items"
    ]
    (status,) = pod["status"]["containerStatuses"]
    times = (event["firstTimestamp"], status["lastState"]["terminated"]["finishedAt"])
    decided, ended = map(datetime.fromisoformat, times)
    return (ended - decided).total_seconds()


def restarts(pod: Tree) -> int:
    return sum(c["restartCount"] for c in pod["status"].get("containerStatuses", ()))


def test_a_job_starts_when_asked_and_leaves_its_results(node: Machine, put: Any) -> None:
    volumes = put("search", "L40S")
    assert not pods(node.kube, "corpus")
    requests = '{"custom_id": "1"}\n'
    (volumes / "search-corpus-requests" / "requests-0.jsonl").write_text(requests)
    go = ("patch", "job", "corpus", "-n", "search", "-p", '{"spec": {"suspend": false}}')
    node.kube.kubectl(*go)
    wait(node, lambda: succeeded(node, "search", "corpus"))
    results = volumes / "search-corpus-results" / "results-0.jsonl"
    assert results.read_text() == requests


def test_weights_come_before_the_engine(node: Machine, put: Any) -> None:
    volumes = put("images", "H100")
    spec = emitted("images", "Deployment", "painter")
    template = spec["template"]["spec"]
    for pod in running(node, "painter", spec["replicas"]):
        said = lines(node, pod)[0]
        held(said)
        assert said["words"] == ["serve", *template["containers"][0]["args"]]
        assert said["environment"]["HF_TOKEN"] == "[secret]"
        (folder,) = (w for w in said["words"] if w.startswith("/models/"))
        weights = (
            volumes / "images-shop-painter-models" / folder.removeprefix("/models/") / "weights"
        )
        assert "black-forest-labs/FLUX.1-dev" in weights.read_text()
        assert template["initContainers"][0]["command"][-1] in weights.read_text()


def test_a_notebook_has_a_home_that_its_user_writes(node: Machine, put: Any) -> None:
    put("lab", "H100")
    spec = emitted("lab", "StatefulSet", "stations")
    found = running(node, "stations", spec["replicas"])
    for pod in found:
        said = lines(node, pod)[0]
        held(said)
        assert said["user"] == 1000
        assert 100 in said["groups"]
        assert not said["writable"]["/"]
        assert said["writable"]["/home/jovyan"]
        assert said["writable"]["/scratch"]


def test_a_run_reads_its_configuration_and_keeps_its_weights(node: Machine, put: Any) -> None:
    volumes = put("finetune", "H100")
    wait(node, lambda: succeeded(node, "finetune-training", "lora-70b"))
    (pod,) = pods(node.kube, "lora-70b")
    said, configuration = lines(node, pod)
    held(said)
    assert said["environment"]["HF_TOKEN"] == "[secret]"
    config = emitted_data("finetune", "lora-70b")
    assert configuration["config"] == config["axolotl.yaml"]
    assert not said["writable"]["/etc/gpuplan"]
    kept = volumes / "finetune-training-lora-70b-checkpoints" / "last"
    assert kept.read_text() == "weights"


def emitted_data(stack: str, name: str) -> dict[str, str]:
    (found,) = (
        o.tree["data"]
        for o in objects_of(STACKS / stack)
        if (o.tree["kind"], o.tree["metadata"]["name"]) == ("ConfigMap", name)
    )
    return dict(found)


def succeeded(node: Machine, namespace: str, name: str) -> bool:
    how = ("get", "job", name, "-n", namespace, "-o", "json")
    status = json.loads(node.kube.kubectl(*how))["status"]
    assert not status.get("failed"), node.kube.kubectl("describe", "pods", "-n", namespace)
    return bool(status.get("succeeded"))
