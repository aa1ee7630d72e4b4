"""Small Pulumi programs in a folder, and what a preview says of them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

from gpuplan.preview.messages import PreviewFailed
from gpuplan.preview.registered import Preview
from gpuplan.preview.running.run import preview
from tests.support.require import require

PROJECT = "name: shop\nruntime: python\n"
IMPORTS = """\
import pulumi
import pulumi_kubernetes as k8s
from pulumi import Alias, ResourceOptions

config = pulumi.Config()
"""


def need_sdk() -> None:
    missing = [m for m in ("pulumi", "pulumi_kubernetes", "pulumi_command") if not find_spec(m)]
    if missing:
        require("sdk", f"no {', '.join(missing)} in this Python: pip install 'gpuplan[pulumi]'")


def write(
    folder: Path,
    program: str,
    *,
    project: str = PROJECT,
    settings: str | None = None,
    files: Mapping[str, str] | None = None,
) -> Path:
    """A stack's folder; `files` are further ones, by path."""
    found = {"Pulumi.yaml": project, "__main__.py": textwrap.dedent(program), **(files or {})}
    if settings is not None:
        found["Pulumi.dev.yaml"] = settings
    for path, text in found.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


def failed(folder: Path, **options: object) -> list[str]:
    """The messages of a preview that must fail."""
    with pytest.raises(PreviewFailed) as caught:
        preview(folder, **options)  # type: ignore[arg-type]
    return [d.message for d in caught.value.diagnostics]


def names(found: Preview) -> list[str]:
    return [r.name for r in found.resources]
