"""Which changes a provider cannot make in place."""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.preview.comparing.clusters import provider_replacement
from gpuplan.preview.comparing.diff import Change, changes
from gpuplan.preview.comparing.replace import force_new_routes, forces, is_respelled
from gpuplan.preview.registered import Registered
from gpuplan.preview.values import UNKNOWN, Secret
from tests.preview.records import manifest, resource


def replaced(kind: str, old: dict[str, Any], new: dict[str, Any], **provider: Any) -> bool:
    routes = force_new_routes(resource(kind, "x", new), provider)
    return any(forces(routes, c) for c in changes(old, new))


def pod(image: str) -> dict[str, Any]:
    return manifest("Pod", "x", spec={"containers": [{"name": "c", "image": image}]})


def workload(kind: str, api: str, **spec: Any) -> dict[str, Any]:
    return manifest(kind, "x", api, spec=spec)


CASES: list[tuple[str, str, dict[str, Any], dict[str, Any], bool]] = [
    (
        "another image of a Deployment",
        "kubernetes:apps/v1:Deployment",
        workload("Deployment", "apps/v1", template={"spec": {"image": "a"}}),
        workload("Deployment", "apps/v1", template={"spec": {"image": "b"}}),
        False,
    ),
    (
        "another selector of a Deployment",
        "kubernetes:apps/v1:Deployment",
        workload("Deployment", "apps/v1", selector={"matchLabels": {"app": "a"}}),
        workload("Deployment", "apps/v1", selector={"matchLabels": {"app": "b"}}),
        True,
    ),
    (
        "another template of a Job",
        "kubernetes:batch/v1:Job",
        workload("Job", "batch/v1", template={"spec": {"image": "a"}}),
        workload("Job", "batch/v1", template={"spec": {"image": "b"}}),
        True,
    ),
    (
        "another template of a StatefulSet",
        "kubernetes:apps/v1:StatefulSet",
        workload("StatefulSet", "apps/v1", template={"spec": {"image": "a"}}),
        workload("StatefulSet", "apps/v1", template={"spec": {"image": "b"}}),
        False,
    ),
    (
        "other volumes of a StatefulSet",
        "kubernetes:apps/v1:StatefulSet",
        workload("StatefulSet", "apps/v1", volumeClaimTemplates=[{"spec": {"size": "1Gi"}}]),
        workload("StatefulSet", "apps/v1", volumeClaimTemplates=[{"spec": {"size": "2Gi"}}]),
        True,
    ),
    (
        "a larger volume",
        "kubernetes:core/v1:PersistentVolumeClaim",
        workload("PersistentVolumeClaim", "v1", resources={"requests": {"storage": "1Gi"}}),
        workload("PersistentVolumeClaim", "v1", resources={"requests": {"storage": "2Gi"}}),
        False,
    ),
    (
        "another storage class",
        "kubernetes:core/v1:PersistentVolumeClaim",
        workload("PersistentVolumeClaim", "v1", storageClassName="fast"),
        workload("PersistentVolumeClaim", "v1", storageClassName="slow"),
        True,
    ),
    (
        "a storage class where there was no spec at all",
        "kubernetes:core/v1:PersistentVolumeClaim",
        manifest("PersistentVolumeClaim", "x"),
        workload("PersistentVolumeClaim", "v1", storageClassName="slow"),
        True,
    ),
    (
        "another name",
        "kubernetes:core/v1:Service",
        manifest("Service", "x"),
        manifest("Service", "y"),
        True,
    ),
    (
        "another namespace",
        "kubernetes:core/v1:Service",
        manifest("Service", "x"),
        manifest("Service", "x", namespace="other"),
        True,
    ),
    ("a container's image in a Pod", "kubernetes:core/v1:Pod", pod("a"), pod("b"), True),
    (
        "data of a ConfigMap",
        "kubernetes:core/v1:ConfigMap",
        manifest("ConfigMap", "x", data={"a": "1"}),
        manifest("ConfigMap", "x", data={"a": "2"}),
        True,
    ),
    (
        "data of a Secret",
        "kubernetes:core/v1:Secret",
        manifest("Secret", "x", stringData=Secret({"a": "[secret]"}, "1")),
        manifest("Secret", "x", stringData=Secret({"a": "[secret]"}, "2")),
        True,
    ),
    (
        "any field of a custom resource",
        "kubernetes:x.io/v1:Thing",
        workload("Thing", "x.io/v1", selector="a"),
        workload("Thing", "x.io/v1", selector="b"),
        False,
    ),
    (
        "labels of a patch",
        "kubernetes:core/v1:NodePatch",
        manifest("Node", "x", data={"a": "1"}),
        manifest("Node", "x", data={"a": "2"}),
        False,
    ),
    (
        "another role",
        "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding",
        manifest("RoleBinding", "x", "rbac.authorization.k8s.io/v1", roleRef={"name": "a"}),
        manifest("RoleBinding", "x", "rbac.authorization.k8s.io/v1", roleRef={"name": "b"}),
        True,
    ),
    (
        "values of a chart",
        "kubernetes:helm.sh/v3:Release",
        {"name": "x", "values": {"a": 1}},
        {"name": "x", "values": {"a": 2}},
        False,
    ),
    (
        "a chart's namespace",
        "kubernetes:helm.sh/v3:Release",
        {"name": "x", "namespace": "a"},
        {"name": "x", "namespace": "b"},
        True,
    ),
    ("a command", "command:remote:Command", {"create": "a"}, {"create": "b"}, False),
    ("a command's trigger", "command:remote:Command", {"triggers": [1]}, {"triggers": [2]}, True),
]


@pytest.mark.parametrize(
    ("kind", "old", "new", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_a_change_is_made_as_the_provider_makes_it(
    kind: str, old: dict[str, Any], new: dict[str, Any], expected: bool
) -> None:
    assert replaced(kind, old, new) is expected


def test_a_provider_can_be_told_that_config_maps_are_mutable() -> None:
    old, new = (manifest("ConfigMap", "x", data={"a": v}) for v in "12")
    kind = "kubernetes:core/v1:ConfigMap"
    assert not replaced(kind, old, new, enableConfigMapMutable="true")
    fixed = new | {"immutable": True}
    assert replaced(kind, old, fixed, enableConfigMapMutable="true")


def test_the_program_may_ask_for_a_replacement() -> None:
    asking = resource("aws:ec2:Instance", "x", {}, replace_on_changes=("disks[*].size",))
    routes = force_new_routes(asking, {})
    assert forces(routes, Change(route=("disks", 1, "size"), kind="update", old=1, new=2))
    assert not forces(routes, Change(route=("disks", 1, "name"), kind="update", old=1, new=2))


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [("1Gi", "1024Mi", True), ("1000m", "1", True), (1, "1000m", True), ("1Gi", "1G", False)],
)
def test_a_quantity_in_other_words_is_no_change(old: Any, new: Any, same: bool) -> None:
    route = ("spec", "resources", "requests", "cpu")
    assert is_respelled(Change(route=route, kind="update", old=old, new=new)) is same
    assert not is_respelled(Change(route=("data", "size"), kind="update", old=old, new=new))


def kubeconfig(server: str, context: str = "a") -> str:
    return f"""\
current-context: {context}
contexts: [{{name: a, context: {{cluster: one}}}}, {{name: b, context: {{cluster: two}}}}]
clusters:
- {{name: one, cluster: {{server: {server}}}}}
- {{name: two, cluster: {{server: https://two}}}}
users: []
"""


@pytest.mark.parametrize(
    ("old", "new", "reasons"),
    [
        ({"kubeconfig": kubeconfig("x")}, {"kubeconfig": kubeconfig("x") + "# edited\n"}, ()),
        ({"kubeconfig": kubeconfig("x")}, {"kubeconfig": kubeconfig("y")}, ("kubeconfig",)),
        (
            {"kubeconfig": kubeconfig("x")},
            {"kubeconfig": kubeconfig("x"), "context": "b"},
            ("context",),
        ),
        ({"kubeconfig": kubeconfig("x")}, {"kubeconfig": UNKNOWN}, ("kubeconfig",)),
        (
            {"kubeconfig": kubeconfig("x"), "clusterIdentifier": "prod"},
            {"kubeconfig": kubeconfig("y"), "clusterIdentifier": "prod"},
            (),
        ),
        ({"clusterIdentifier": "prod"}, {"clusterIdentifier": "test"}, ("clusterIdentifier",)),
        (
            {"renderYamlToDirectory": "a"},
            {"renderYamlToDirectory": "b"},
            ("renderYamlToDirectory",),
        ),
        ({"namespace": "a"}, {"namespace": "b"}, ()),
        ({}, {}, ()),
    ],
)
def test_a_provider_is_replaced_only_for_another_cluster(
    old: dict[str, Any], new: dict[str, Any], reasons: tuple[str, ...]
) -> None:
    assert provider_replacement(old, new) == reasons


def test_a_record_without_kind_has_no_forced_properties() -> None:
    found: Registered = resource("kubernetes:yaml/v2:ConfigFile", "x", {"file": "a"})
    assert force_new_routes(found, {}) == ()
