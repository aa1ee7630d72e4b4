"""All pods of a group, or of a run over nodes, or none: by LeaderWorkerSet's controller and Kueue
themselves, and the real scheduler on the nodes of the plan."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.main import main
from gpuplan.kubernetes.naming import QUEUE_LABEL
from gpuplan.simulate import groups
from gpuplan.simulate.cards import channels
from gpuplan.simulate.nodes import cards, nodes, volumes
from tests.cluster import test_domains as domains
from tests.support.plans import read_plan
from tests.support.require import require
from tests.tools import crds, operators
from tests.tools.cluster import running
from tests.tools.engines import FULL, absent
from tests.tools.kube import PATIENCE_SECONDS, Kube, Object, Tree
from tests.tools.stacks import objects_of

pytestmark = [pytest.mark.cluster, pytest.mark.sdk]

ROOT = Path(__file__).parents[2]
GPU = "nvidia.com/gpu"
PLENTY = "1P"
QUEUEING = ("lws", "kueue")
# A stack brings them too; here they outlive it, as their operators do.
LASTING = frozenset(f"v1 Namespace {name}-system" for name in QUEUEING)


@pytest.fixture(scope="module")
def queued(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    """A cluster with both operators."""
    if missing := absent((*FULL, *QUEUEING)):
        require("operators", f"{', '.join(missing)} not built: `make operators`")
    folder = tmp_path_factory.mktemp("queued")
    with ExitStack() as stack:
        plane = stack.enter_context(running(folder, full=True))
        kube = Kube(plane)
        for name in QUEUEING:
            own = tmp_path_factory.mktemp(name)
            stack.enter_context(operators.running(kube, name, own))
        yield kube


def queue(objects: list[Object], gpus: int) -> list[Object]:
    """The cluster's queue as the stack's README asks for it, with so many GPUs."""
    covered = sorted({r for p in templates(objects) for r in limits(p)})
    quotas = [{"name": r, "nominalQuota": str(gpus) if r == GPU else PLENTY} for r in covered]
    flavor = {"name": "nodes", "resources": quotas}
    kueue = "kueue.x-k8s.io/v1beta2"
    spec = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": covered, "flavors": [flavor]}],
    }
    made = (
        {"kind": "ResourceFlavor", "metadata": {"name": "nodes"}, "spec": {}},
        {"kind": "ClusterQueue", "metadata": {"name": "gpus"}, "spec": spec},
    )
    return [Object({"apiVersion": kueue, **tree}) for tree in made]


def templates(objects: list[Object]) -> Iterator[Tree]:
    for tree in (o.tree for o in objects if QUEUE_LABEL in o.tree["metadata"].get("labels", ())):
        spec = tree["spec"]
        both = spec.get("leaderWorkerTemplate") or {"template": spec["template"]}
        yield from (t["spec"] for key, t in both.items() if key.endswith("emplate"))


def limits(pod: Tree) -> dict[str, Any]:
    """Of a pod: what a queue without it would never admit."""
    found: dict[str, Any] = {}
    for container in (*pod["containers"], *pod.get("initContainers", ())):
        resources = container.get("resources", {})
        found |= resources.get("requests", {}) | resources.get("limits", {})
    return found


def pods(kube: Kube) -> list[Tree]:
    items: list[Tree] = json.loads(kube.kubectl("get", "pods", "-A", "-o", "json"))["items"]
    return items


def bound(kube: Kube) -> list[str]:
    return sorted(p["metadata"]["name"] for p in pods(kube) if p["spec"].get("nodeName"))


def settled(read: Callable[[], Any], expected: Any) -> Any:
    """What `read` gives: `expected` if that ever comes and stays, else the last there is."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    same = 0
    while same < 4 and time.monotonic() < deadline:
        same = same + 1 if read() == expected else 0
        time.sleep(1)
    return read()


@pytest.fixture
def site(queued: Kube) -> Iterator[Callable[[Path, int], list[Object]]]:
    """The stack on its nodes, behind a queue with so many GPUs; it is gone afterwards."""
    made: list[Object] = []

    def put(stack: Path, gpus: int) -> list[Object]:
        objects = objects_of(stack)
        ground = [*nodes(read_plan(stack)), *volumes(objects), *queue(objects, gpus)]
        made.extend([*ground, *objects])
        queued.apply(made)
        return objects

    yield put
    own = (o for o in reversed(made) if not o.is_patch and o.reference not in LASTING)
    queued.sweep([*own])


FIRST = ["reader-nodes-0", "reader-nodes-0-1"]
SECOND = ["reader-nodes-1", "reader-nodes-1-1"]


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stack of a service that needs two replicas, of two nodes with 4 GPUs each."""
    folder = tmp_path_factory.mktemp("llama")
    text = (ROOT / "examples" / "llama-405b.yaml").read_text("utf-8")
    usual = "requests_per_second: {mean: 0.6, peak: 1.2}"
    assert usual in text
    manifest = folder / "m.yaml"
    more = "requests_per_second: {mean: 0.84, peak: 1.68}"
    manifest.write_text(text.replace(usual, more), "utf-8")
    assert main(["compile", str(manifest), "-o", str(folder / "out")]) == 0
    stack = folder / "out" / "llama-405b"
    (service,) = read_plan(stack).workloads
    assert (service.replicas, service.nodes_per_replica, service.gpus_per_node) == (2, 2, 4)
    return stack


def test_a_service_gets_whole_groups(queued: Kube, site: Any, llama: Path) -> None:
    """GPUs for one group and a half: one group runs, of the other no pod does."""
    objects = site(llama, 12)
    assert settled(lambda: len(bound(queued)), 2) == 2
    assert bound(queued) in (FIRST, SECOND)
    waiting = [p for p in pods(queued) if not p["spec"].get("nodeName")]
    assert len(waiting) == 2
    assert all(p["spec"]["schedulingGates"] for p in waiting)

    queued.apply(queue(objects, 16))
    assert settled(lambda: bound(queued), FIRST + SECOND) == FIRST + SECOND


def test_pods_are_those_that_simulations_take_for_them(
    queued: Kube, site: Any, llama: Path
) -> None:
    objects = site(llama, 16)
    assert settled(lambda: bound(queued), FIRST + SECOND) == FIRST + SECOND
    real = {p["metadata"]["name"]: p for p in pods(queued)}
    for stand_in in (p.tree for p in groups.pods(objects)):
        pod = real[stand_in["metadata"]["name"]]
        assert told(stand_in).items() <= told(pod).items()
        assert stand_in["metadata"]["labels"].items() <= pod["metadata"]["labels"].items()
        assert pod["spec"]["subdomain"] == stand_in["spec"]["subdomain"]
        assert pod["spec"]["nodeSelector"].items() >= stand_in["spec"]["nodeSelector"].items()


def test_a_group_that_loses_a_pod_comes_anew(queued: Kube, site: Any, llama: Path) -> None:
    """A part of a replica serves nothing; the other replica goes on."""
    site(llama, 16)
    assert settled(lambda: bound(queued), FIRST + SECOND) == FIRST + SECOND
    before = identities(queued)
    queued.kubectl("delete", "pod", "reader-nodes-1-1", "--namespace=llama-405b-legal")

    def renewed() -> list[str]:
        after = identities(queued)
        return sorted(name for name in bound(queued) if after.get(name) != before[name])

    assert settled(renewed, SECOND) == SECOND
    assert bound(queued) == FIRST + SECOND


def test_groups_that_begin_at_once_each_have_a_rack(queued: Kube, tmp_path: Path) -> None:
    """LeaderWorkerSet makes all leaders before it makes their workers."""
    racks = domains.rack("left", 2), domains.rack("right", 2)
    stack = domains.compiled(tmp_path, [domains.service(2)], *racks)
    plan, objects = read_plan(stack), objects_of(stack)
    crds.install(queued, objects, [c.version for c in plan.components])
    ground = [*nodes(plan), *cards(plan), *volumes(objects), *channels(objects)]
    made = [*objects, *ground]
    try:
        queued.apply([*(o for o in objects if o.tree["kind"] == "Namespace"), *ground])
        queued.apply(objects)
        assert settled(lambda: bound(queued), FIRST + SECOND) == FIRST + SECOND
        where = {p["metadata"]["name"]: p["spec"]["nodeName"].split("-")[0] for p in pods(queued)}
        of_groups = [{where[pod] for pod in group} for group in (FIRST, SECOND)]
        assert sorted(map(sorted, of_groups)) == [["left"], ["right"]]
    finally:
        queued.sweep([o for o in reversed(made) if not o.is_patch and o.reference not in LASTING])


def identities(kube: Kube) -> dict[str, str]:
    return {p["metadata"]["name"]: p["metadata"]["uid"] for p in pods(kube)}


def told(pod: Tree) -> dict[str, str]:
    (engine,) = (c for c in pod["spec"]["containers"] if c["name"] == "engine")
    return {e["name"]: e["value"] for e in engine["env"] if "value" in e}


def test_a_run_gets_all_its_nodes(queued: Kube, site: Any, tmp_path: Path) -> None:
    text = (ROOT / "examples" / "tune-70b.yaml").read_text("utf-8")
    manifest = tmp_path / "m.yaml"
    manifest.write_text(text.replace("platform:\n", "platform:\n  queue: gpus\n"), "utf-8")
    assert main(["compile", str(manifest), "-o", str(tmp_path / "out")]) == 0
    stack = tmp_path / "out" / "tune-70b"
    (run,) = read_plan(stack).workloads
    gpus = run.nodes_per_replica * run.gpus_per_node

    objects = site(stack, gpus - 1)
    assert settled(lambda: suspended(queued), [True]) == [True]
    assert bound(queued) == []

    queued.apply(queue(objects, gpus))
    assert settled(lambda: len(bound(queued)), run.nodes_per_replica) == run.nodes_per_replica
    assert suspended(queued) == [False]


def suspended(kube: Kube) -> list[bool]:
    items = json.loads(kube.kubectl("get", "jobs", "-A", "-o", "json"))["items"]
    return [job["spec"]["suspend"] for job in items]
