"""A preview as people and programs read it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gpuplan.preview.comparing.compare import compare
from gpuplan.preview.jsonpreview import comparison_json, to_json
from gpuplan.preview.registered import LogMessage, Preview, Registered
from gpuplan.preview.sections import View
from gpuplan.preview.tree import render
from gpuplan.preview.values import UNKNOWN, Secret
from gpuplan.render.text import width
from tests.preview.records import (
    claim,
    config_map,
    deployment,
    managed_by,
    preview,
    provider,
    resource,
    shown,
)
from tests.support.samples import HOSTILE

HIDDEN = Secret({"token": "[secret]"}, "digest-of-hunter2")


def first() -> Preview:
    cluster = provider(clusterIdentifier="prod")
    app = resource("my:app:App", "web", custom=False)
    return preview(
        cluster,
        claim(protect=True, provider=managed_by(cluster)),
        app,
        deployment(parent=app.urn, provider=managed_by(cluster)),
        outputs={"url": "http://web", "token": HIDDEN, "address": UNKNOWN},
    )


def test_a_new_stack_is_a_tree_of_creations() -> None:
    assert (
        shown(first())
        == """\
     Type                                         Name      Plan
 +   pulumi:pulumi:Stack                          shop-dev  create
 +   ├─ pulumi:providers:kubernetes               cluster   create
 +   ├─ kubernetes:core/v1:PersistentVolumeClaim  models    create  🔒
 +   └─ my:app:App                                web       create
 +      └─ kubernetes:apps/v1:Deployment          web       create

Outputs:
    address: [unknown]
    token  : [secret]
    url    : "http://web"

Resources:
    + 5 to create
"""
    )


def second() -> Preview:
    old = first()
    cluster, app = old.resources[1], old.resources[3]
    web = deployment(image="web:2", parent=app.urn, provider=managed_by(cluster))
    resources = (cluster, app, web, config_map(), config_map("more"))
    return preview(*resources, outputs={"url": "http://web:2"})


def test_a_comparison_shows_only_what_changes() -> None:
    base = first()
    base = replace(base, resources=(*base.resources, config_map("settings", {"a": "0"})))
    assert (
        render(compare(base, second()))
        == """\
     Type                                         Name      Plan
     pulumi:pulumi:Stack                          shop-dev
     ├─ my:app:App                                web
 ~   │  └─ kubernetes:apps/v1:Deployment          web       update
         [diff: ~spec]
 +-  ├─ kubernetes:core/v1:ConfigMap              settings  replace
         [replaces: data.a]
         [diff: ~data]
 +   ├─ kubernetes:core/v1:ConfigMap              more      create
 -   └─ kubernetes:core/v1:PersistentVolumeClaim  models    delete
         🔒 protected: this would fail

Outputs:
  - address: [unknown]
  - token  : [secret]
  ~ url    : "http://web" => "http://web:2"

error: 1 step would fail: protected resources are not deleted

Resources:
    + 1 to create
    ~ 1 to update
    - 1 to delete
    +-1 to replace
    4 changes. 3 unchanged
"""
    )


def test_differences_are_shown_property_by_property() -> None:
    text = render(compare(first(), second()), View(diff=True, columns=100))
    assert '~ spec.template.spec.containers[0].image: "web:1" => "web:2"' in text
    assert '+ metadata.name: "more"' in text


def test_a_long_text_is_compared_line_by_line() -> None:
    lines = [f"<line n='{n}'/>" for n in range(50)]
    old = resource("command:remote:Command", "vm", {"stdin": "\n".join(lines)})
    lines[30] = "<changed/>"
    new = resource("command:remote:Command", "vm", {"stdin": "\n".join(lines)})
    text = render(compare(preview(old), preview(new)), View(diff=True))
    assert "-<line n='30'/>" in text
    assert "+<changed/>" in text
    assert "n='20'" not in text


def test_details_say_where_and_by_whom() -> None:
    cluster = provider()
    found = config_map(
        provider=managed_by(cluster),
        position="pools.py:12",
        dependencies=(claim().urn,),
        aliases=(
            config_map("old").urn,
            config_map().urn.replace("core/v1", "core/v1beta1"),
        ),
        ignore_changes=("data.a",),
        retain_on_delete=True,
    )
    text = shown(preview(cluster, found), View(details=True))
    for line in (
        "urn:pulumi:dev::shop::kubernetes:core/v1:ConfigMap::settings",
        "at pools.py:12",
        "provider kubernetes 4.34.2 (cluster)",
        "depends on kubernetes:core/v1:PersistentVolumeClaim::models",
        "was known as kubernetes:core/v1:ConfigMap::old",
        "ignores changes of data.a",
        "kept when deleted",
    ):
        assert f"         {line}\n" in text
    assert "v1beta1" not in text
    assert "at pools.py" not in shown(preview(cluster, found), View(urns=True))


def test_lines_fit_the_terminal() -> None:
    long = config_map("assistant-settings", provider=managed_by(provider()))
    wide = resource("kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding", "web")
    new = replace(long, inputs={**long.inputs, "data": {"a": "x" * 60, "b": "y" * 60}})
    for view in (View(), View(diff=True)):
        text = render(compare(preview(long, deployment()), preview(new, wide)), view)
        table = text.partition("\n\n")[0].splitlines()
        assert [line for line in table if width(line) > 80] == []


def test_types_that_are_too_wide_lose_their_beginning_and_columns_stay_aligned() -> None:
    name = "a-name-of-thirty-six-characters-long"
    policy = resource("kubernetes:networking.k8s.io/v1:NetworkPolicy", name)
    assert (
        shown(preview(claim(protect=True), policy)).partition("\n\n")[0]
        == """\
     Type                       Name                                  Plan
 +   pulumi:pulumi:Stack        shop-dev                              create
 +   ├─ …PersistentVolumeClaim  models                                create  🔒
 +   └─ …io/v1:NetworkPolicy    a-name-of-thirty-six-characters-long  create"""
    )


def test_names_cannot_drive_the_terminal() -> None:
    evil = "\x1b[2Jname\u202e\n\x07"
    found = resource("my:app:App", evil, {"key\x1b": evil + HOSTILE}, custom=False)
    base = preview(outputs={"x": evil}, messages=(LogMessage(severity="info", text=evil),))
    comparison = compare(None, replace(base, resources=(*base.resources, found)))
    text = render(comparison, View(details=True, diff=True))
    assert [c for c in text if not c.isprintable() and c != "\n"] == []
    assert "漢" in text


def test_colour_is_the_callers() -> None:
    text = shown(first(), View(paint=lambda style, t: f"<{style}>{t}</>" if style else t))
    assert "<green> + </>" in text
    assert "<green>create</>" in text


def test_json_is_stable_and_masked() -> None:
    found = first()
    data = json.loads(json.dumps(to_json(found)))
    assert [r["name"] for r in data["resources"]] == [
        "shop-dev",
        "cluster",
        "models",
        "web",
        "web",
    ]
    assert data["resources"][2]["protect"] is True
    assert data["outputs"] == {"url": "http://web", "token": "[secret]", "address": "[unknown]"}
    assert "hunter2" not in json.dumps(data)
    steps = comparison_json(compare(found, second()))
    assert steps["counts"] == {"create": 2, "delete": 1, "same": 3, "update": 1}
    update = next(s for s in steps["steps"] if s["operation"] == "update")
    assert update["changes"] == [
        {
            "path": "spec.template.spec.containers[0].image",
            "kind": "update",
            "old": "web:1",
            "new": "web:2",
        }
    ]


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        (
            {"placeholders": ("s:token",)},
            "note: no value here, so a placeholder stands in: s:token",
        ),
        ({"messages": (LogMessage(severity="warning", text="old"),)}, "  warning: old"),
    ],
)
def test_what_a_reader_must_know_is_said(changes: dict[str, Any], note: str) -> None:
    assert note in shown(preview(**changes))


def test_same_resources_are_shown_on_request() -> None:
    settings: list[Registered] = [config_map()]
    comparison = compare(preview(*settings), preview(*settings))
    assert "settings" not in render(comparison)
    assert "settings" in render(comparison, View(same=True))
    assert render(comparison).endswith("Resources:\n    2 unchanged\n")
