"""The steps that a comparison foresees are those that the real `pulumi preview` plans."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuplan.preview.comparing.compare import compare
from gpuplan.preview.running.run import preview
from tests.preview.programs import IMPORTS, write
from tests.tools.updates import Workspace, need_pulumi, short

pytestmark = [pytest.mark.pulumi, pytest.mark.sdk]

PROGRAM = (
    IMPORTS
    + """
import pulumi_command as command

NEW = False
value, image = ("2", "web:2") if NEW else ("1", "web:1")
provider = k8s.Provider("cluster", render_yaml_to_directory="out")
other = k8s.Provider("other", render_yaml_to_directory="other-new" if NEW else "other")


def options(**more):
    return ResourceOptions(provider=provider, **more)


def place(name, **more):
    return {"name": name, "namespace": "shop", **more}


def config_map(name, data, logical=None, **more):
    opts = options(**more) if "provider" not in more else ResourceOptions(**more)
    return k8s.core.v1.ConfigMap(logical or name, metadata=place(name), data=data, opts=opts)


def deployment(name, selector="a", **more):
    template = {"metadata": {"labels": {"app": selector}}, "spec": {"containers": [
        {"name": "web", "image": image}]}}
    return k8s.apps.v1.Deployment(
        name,
        metadata=place(name),
        spec={"selector": {"matchLabels": {"app": selector}}, "template": template},
        opts=options(**more),
    )


def claim(name, storage_class="fast", size="1Gi", **more):
    spec = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": size}},
    }
    return k8s.core.v1.PersistentVolumeClaim(
        name, metadata=place(name), spec=spec, opts=options(**more)
    )


config_map("same", {"a": "1"})
root = config_map("root", {"a": value})
config_map("copy", {"a": root.metadata["name"]})
config_map("renamed", {"a": "1"}, logical="renamed-2" if NEW else None,
           aliases=[Alias(name="renamed")] if NEW else None)
config_map("elsewhere", {"a": "1"}, provider=other)
config_map("new" if NEW else "gone", {"a": "1"})
config_map("side-by-side", {"a": value}, delete_before_replace=False)
deployment("updated")
deployment("reselected", selector="b" if NEW else "a")
deployment("ignored", ignore_changes=["spec.template.spec.containers[0].image"])
deployment("asked", replace_on_changes=["spec.template"])
claim("grown", size="2Gi" if NEW else "1Gi")
claim("respelled", size="1024Mi" if NEW else "1Gi")
claim("moved", storage_class="slow" if NEW else "fast")
k8s.batch.v1.Job(
    "job",
    metadata=place("job"),
    spec={"template": {"spec": {"restartPolicy": "Never", "containers": [
        {"name": "job", "image": image}]}}},
    opts=options(),
)
k8s.core.v1.Secret("secret", metadata=place("secret"), string_data={"a": value}, opts=options())
k8s.core.v1.NamespacePatch(
    "patch", metadata={"name": "patch", "labels": {"a": value}}, opts=options()
)
first = command.local.Command("first", create=f"echo {value}")
command.local.Command("second", create="true", triggers=[first.stdout])


class Part(pulumi.ComponentResource):
    def __init__(self, name, **more):
        super().__init__("shop:parts:Part", name, None, ResourceOptions(**more))
        opts = ResourceOptions(parent=self, provider=provider)
        k8s.core.v1.Service(f"{name}-service", metadata=place("service"), spec={}, opts=opts)


Part("part-2" if NEW else "part", aliases=[Alias(name="part")])
"""
)


PROJECT = """\
name: shop
runtime: {name: python, options: {toolchain: pip, virtualenv: venv}}
config: {}
"""
# A replacement is told in up to three steps.
REPLACEMENTS = ("create-replacement", "delete-replaced")


def real_steps(workspace: Workspace) -> dict[str, str]:
    """Type and name → what the CLI would do."""
    return {
        name: "replace" if operation in REPLACEMENTS else operation
        for operation, names in workspace.preview().items()
        for name in names
    }


def test_the_steps_are_those_of_the_real_engine(tmp_path: Path) -> None:
    need_pulumi()
    old = write(tmp_path / "old", PROGRAM, project=PROJECT)
    new = write(tmp_path / "new", PROGRAM.replace("NEW = False", "NEW = True"), project=PROJECT)
    workspace = Workspace(tmp_path / "program", tmp_path / "home")
    workspace.create(old, {})
    workspace.up()
    workspace.replace(new)
    steps = compare(preview(old), preview(new)).steps
    foreseen = {short(s.urn): s.operation for s in steps if s.operation != "same"}
    assert foreseen == real_steps(workspace)
    assert set(foreseen.values()) == {"create", "update", "replace", "delete"}
    assert len(foreseen) > 12
