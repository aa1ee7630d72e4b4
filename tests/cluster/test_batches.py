"""A batch on a real API server: held without pods, filled beside the quota, let go by a setting."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from gpuplan.render import yaml
from tests.backends.test_batches import NIGHTLY
from tests.support.changing_manifests import INVENTORY, manifest
from tests.tools.kube import PATIENCE_SECONDS, Kube, Object, Refused
from tests.tools.program import gpuplan
from tests.tools.stacks import objects_of, switches

pytestmark = [pytest.mark.cluster, pytest.mark.sdk]

SPACE = "shop-a"


@pytest.fixture
def stack(tmp_path: Path) -> Path:
    (tmp_path / "rack.yaml").write_text(INVENTORY, encoding="utf-8")
    path = tmp_path / "m.yaml"
    path.write_text(yaml.dumps(manifest(NIGHTLY)), encoding="utf-8")
    gpuplan("compile", path, "-o", tmp_path)
    return tmp_path / "shop"


@pytest.fixture
def held(cluster: Kube, stack: Path) -> Iterator[list[Object]]:
    """The stack's objects without its nodes' labels, on the server, as they are at first."""
    objects = [o for o in objects_of(stack) if not o.is_patch]
    cluster.apply(objects)
    yield objects
    cluster.sweep(list(reversed(objects)))


def pods(cluster: Kube) -> list[str]:
    items = json.loads(cluster.kubectl("get", "pods", "-n", SPACE, "-o", "json"))["items"]
    return [i["metadata"]["name"] for i in items]


def test_a_batch_is_filled_and_let_go(cluster: Kube, stack: Path, held: list[Object]) -> None:
    wait = ("wait", "-n", SPACE, "job/nightly", f"--timeout={PATIENCE_SECONDS}s")
    cluster.kubectl(*wait, "--for=condition=Suspended")
    assert pods(cluster) == []
    text = (stack / "workloads/nightly/files.yaml").read_text(encoding="utf-8")
    pod = Object(YAML(typ="safe", pure=True).load(text))
    cluster.apply([pod])
    cluster.kubectl("run", "client", "-n", SPACE, "--image=busybox:1.37.0")
    assert sorted(pods(cluster)) == ["client", "nightly-files"]
    thief = {"name": "thief", "image": "busybox:1.37.0"}
    thief |= {"resources": {"limits": {"nvidia.com/gpu": "9"}}}
    alone = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "thief", "namespace": SPACE}}
    with pytest.raises(Refused, match="exceeded quota"):
        cluster.apply([Object(alone | {"spec": {"containers": [thief]}})])
    cluster.kubectl("delete", "pod", "-n", SPACE, "client", "nightly-files", "--now")
    settings = switches(stack) | {"hold-nightly": "false"}
    free = [o for o in objects_of(stack, settings) if o.tree["kind"] == "Job"]
    cluster.apply(free)
    cluster.kubectl(*wait, "--for=jsonpath={.status.active}")
    (job,) = cluster.read(free)
    assert job["status"]["active"] == job["spec"]["completions"] == len(pods(cluster))
