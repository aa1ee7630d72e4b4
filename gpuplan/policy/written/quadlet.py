"""Podman's units: the settings of a container, network or volume, and of the service it becomes."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.plan.outside.objects import UNIT, Setting, Written
from gpuplan.render.tree import File

FOLDER = "quadlet/"


def read(file: File) -> Iterator[Written]:
    """An option for Podman's command line is a setting of its own."""
    if not file.path.startswith(FOLDER):
        return
    settings = []
    for number, line in enumerate(file.text.split("\n"), start=1):
        key, equals, value = line.partition("=")
        if equals and not line.startswith(("#", ";")):
            if key == "PodmanArgs":
                key, _, value = value.partition("=")
            settings.append(Setting(name=key, value=value, line=number))
    yield Written(
        kind=UNIT, name=file.path.removeprefix(FOLDER), file=file.path, settings=tuple(settings)
    )
