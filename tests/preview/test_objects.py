"""Kubernetes objects for tools, and names that must not change."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuplan.preview.identity import check_identity, compare_identities
from gpuplan.preview.objects import kubernetes_objects
from gpuplan.preview.values import UNKNOWN, Secret
from tests.preview.records import claim, config_map, deployment, manifest, preview, resource


def test_objects_are_manifests_in_dependency_order() -> None:
    chart = resource("kubernetes:helm.sh/v3:Release", "operator", {"chart": "x"})
    found = kubernetes_objects(preview(config_map(), chart, deployment()))
    assert [o.identity for o in found] == [
        ("v1", "ConfigMap", "shop", "settings"),
        ("apps/v1", "Deployment", "shop", "web"),
    ]
    assert found[0].manifest == manifest("ConfigMap", "settings", data={"a": "1"})


def test_secrets_become_placeholders_that_the_api_accepts() -> None:
    hidden = {
        "stringData": Secret({"a": "[secret]"}, "1"),
        "data": Secret({"b": "[secret]"}, "2"),
        "type": "Opaque",
    }
    kind = "kubernetes:core/v1:Secret"
    [found] = kubernetes_objects(preview(resource(kind, "s", manifest("Secret", "s", **hidden))))
    assert found.manifest["stringData"] == {"a": "[secret]"}
    assert found.manifest["data"] == {"b": "W3NlY3JldF0="}
    assert found.manifest["type"] == "Opaque"


def test_patches_and_unknown_values_are_marked() -> None:
    patch = resource("kubernetes:core/v1:NodePatch", "n", manifest("Node", "n"))
    unknown = config_map("c", {"id": UNKNOWN})
    first, second = kubernetes_objects(preview(patch, unknown))
    assert (first.patch, first.has_unknown) == (True, False)
    assert (second.patch, second.has_unknown) == (False, True)
    assert second.manifest["data"] == {"id": "unknown"}


def test_an_object_without_a_name_gets_its_logical_one() -> None:
    kind = "kubernetes:core/v1:Service"
    [found] = kubernetes_objects(
        preview(resource(kind, "s", {"apiVersion": "v1", "kind": "Service"}))
    )
    assert found.identity == ("v1", "Service", "", "s")


LIST = """\
# The stack's resources.
kubernetes:core/v1:PersistentVolumeClaim::models  retain
kubernetes:core/v1:ConfigMap::settings
kubernetes:core/v1:ConfigMap::precious  protect
kubernetes:core/v1:PersistentVolumeClaim::extra  if=wantExtra

my:app:App$kubernetes:core/v1:ConfigMap::child
"""


def listed(*extra: str) -> list[str]:
    found = preview(claim(), config_map("precious"), config_map())
    text = LIST + "".join(f"{line}\n" for line in extra)
    return [d.message for d in compare_identities(found, text)]


def test_a_program_that_registers_what_matters_passes() -> None:
    assert listed() == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("kubernetes:core/v1:PersistentVolumeClaim::data", "it holds state"),
        ("kubernetes:apps/v1:Deployment::web  protect", "it is protected"),
    ],
)
def test_a_lost_resource_is_an_error(line: str, reason: str) -> None:
    [message] = listed(line)
    assert message.startswith(f"'{line.split('  ', maxsplit=1)[0]}' is committed in urns.txt")
    assert message.endswith(reason)


def test_an_alias_accounts_for_a_rename() -> None:
    moved = claim("weights", aliases=(claim().urn,))
    found = preview(moved, config_map("precious"), config_map())
    messages = [d.message for d in compare_identities(found, LIST)]
    assert messages == ["urns.txt does not list kubernetes:core/v1:PersistentVolumeClaim::weights"]


def test_a_line_that_is_no_name_is_shown() -> None:
    [message] = listed("what is this")
    assert message == "urns.txt:8 is not a line of the form type::name: 'what is this'"


def test_the_list_of_a_folder_is_read_where_there_is_one(tmp_path: Path) -> None:
    found = preview()
    assert check_identity(tmp_path, found) == ()
    (tmp_path / "urns.txt").write_text(LIST)
    assert len(check_identity(tmp_path, found)) == 2
