"""The harness itself: it must notice what the tests of the stacks rely on it to notice."""

from __future__ import annotations

import copy

import pytest

from tests.tools import crds
from tests.tools.kube import Kube, Object, Refused, changed

pytestmark = pytest.mark.cluster

LABELS = {"app": "assistant"}
NODE = Object(
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "gpu-01", "labels": {"rack": "7"}},
        "status": {"allocatable": {"nvidia.com/gpu": "8"}, "capacity": {"nvidia.com/gpu": "8"}},
    }
)
NODE_LABELS = Object(
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "gpu-01", "labels": {"gpuplan.dev/pool": "h100"}},
    },
    manager="patch",
)
NAMESPACE = Object({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "search"}})
CLAIM = Object(
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "models", "namespace": "search"},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "100Gi"}},
        },
    }
)
DEPLOYMENT = Object(
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "assistant", "namespace": "search"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": LABELS},
            "template": {
                "metadata": {"labels": LABELS},
                "spec": {
                    "containers": [
                        {
                            "name": "engine",
                            "image": "vllm/vllm-openai:v0.11.0",
                            "resources": {"limits": {"nvidia.com/gpu": "2"}},
                        }
                    ]
                },
            },
        },
    }
)
OBJECTS = [NAMESPACE, CLAIM, DEPLOYMENT]


def test_objects_come_and_go(cluster: Kube) -> None:
    before = cluster.inventory()
    cluster.apply([NODE, NODE_LABELS, *OBJECTS])
    [node, patched] = cluster.read([NODE, NODE_LABELS])
    assert node["status"]["allocatable"] == {"nvidia.com/gpu": "8"}
    assert patched["metadata"]["labels"] == {"rack": "7", "gpuplan.dev/pool": "h100"}

    first = cluster.state(OBJECTS)
    cluster.apply([NODE_LABELS, *OBJECTS])
    second = cluster.state(OBJECTS)
    assert changed(first, second) == set()
    cluster.apply([NODE_LABELS, *OBJECTS])
    assert cluster.state(OBJECTS) == second

    larger = copy.deepcopy(DEPLOYMENT.tree)
    larger["spec"]["replicas"] = 3
    cluster.apply([NAMESPACE, CLAIM, Object(larger)])
    assert changed(second, cluster.state(OBJECTS)) == {DEPLOYMENT.reference}

    cluster.delete([NODE_LABELS, *OBJECTS])
    assert cluster.read([NODE])[0]["metadata"]["labels"] == {"rack": "7"}
    assert set(cluster.inventory() - before) == {"/registry/minions/gpu-01"}
    cluster.delete([NODE])
    assert cluster.inventory() == before


def test_an_unknown_field_is_refused(cluster: Kube) -> None:
    tree = copy.deepcopy(NAMESPACE.tree) | {"specification": {}}
    with pytest.raises(Refused, match="specification"):
        cluster.apply([Object(tree)])


def test_a_custom_resource_meets_its_released_definition(cluster: Kube) -> None:
    flavor = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "h100"},
        "spec": {"nodeLabels": {"gpuplan.dev/pool": "h100"}},
    }
    crds.install(cluster, [Object(flavor)], versions=())
    cluster.apply([Object(flavor)])
    with pytest.raises(Refused, match="nodeLabel"):
        cluster.apply([Object(flavor | {"spec": {"nodeLabel": {}}})])
    cluster.delete([Object(flavor)])
