"""The checked-in stacks, and what their programs register."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from gpuplan.plan.read import read_tree
from gpuplan.preview.objects import ManifestObject, kubernetes_objects
from gpuplan.preview.running.run import preview
from gpuplan.targets import TARGETS
from tests.tools.kube import OWNER, Object
from tests.tools.program import ROOT


def stacks(target: str) -> list[Path]:
    plans = sorted((ROOT / "stacks").glob("*/plan.yaml"))
    return [p.parent for p in plans if read_tree(p.parent)["target"] == target]


def clusters() -> list[Path]:
    """Those of every target whose workloads are Kubernetes objects."""
    own = [t.name for t in TARGETS.values() if "pulumi.kubernetes" in t.backends]
    return [stack for target in own for stack in stacks(target)]


def settings(stack: Path) -> dict[str, dict[str, Any]]:
    """The configuration that a program declares."""
    project = YAML(typ="safe", pure=True).load((stack / "Pulumi.yaml").read_text("utf-8"))
    return dict(project["config"])


def switches(stack: Path) -> dict[str, str]:
    """The options of a program, all on."""
    return {name: "true" for name, s in settings(stack).items() if s["type"] == "boolean"}


def objects_of(stack: Path, config: dict[str, str] | None = None) -> list[Object]:
    """What the program puts on the API server, in dependency order; charts are not in it. Without
    `config`, every option is on."""
    found = kubernetes_objects(preview(stack, config=config or switches(stack)))
    assert not [o.urn for o in found if o.has_unknown]
    return [_object(o) for o in found]


def _object(found: ManifestObject) -> Object:
    """The provider has a manager of its own for each patch of each stack."""
    _, stack, _, name = found.urn.split("::")
    return Object(dict(found.manifest), f"{stack}-{name}" if found.patch else OWNER)
