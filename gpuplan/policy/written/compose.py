"""A Compose project as its services."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from gpuplan.plan.outside.objects import SERVICE, Setting, Written
from gpuplan.render.tree import File
from gpuplan.source import SourceDocument

FILE = "compose.yaml"


def read(file: File) -> Iterator[Written]:
    """An argument is a setting of its own, so that a change shows what it is."""
    if file.path != FILE:
        return
    from gpuplan.manifest.text import read_yaml

    for document, problems in read_yaml(file.path, file.text):
        data = document.data if not problems else None
        every = data.get("services") if isinstance(data, dict) else None
        for name, service in every.items() if isinstance(every, dict) else ():
            if isinstance(service, dict):
                yield Written(
                    kind=SERVICE,
                    name=str(name),
                    file=file.path,
                    settings=tuple(
                        Setting(name=k, value=v, line=_line(document, name, at))
                        for at, k, v in _settings(service)
                    ),
                )


def _line(document: SourceDocument, name: str, key: str) -> int | None:
    span = document.keys.get(("services", name, key))
    return span.line if span else None


def _settings(service: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(key of the service, name, value)."""
    for key, value in service.items():
        if key == "command" and isinstance(value, list):
            for word in value:
                name, _, given = str(word).partition("=")
                yield key, name, given
        elif isinstance(value, (dict, list)):
            yield key, str(key), json.dumps(value, ensure_ascii=False)
        else:
            yield key, str(key), str(value)
