"""YAML and JSON files as blocks. Canonical YAML is read fast and without lines (`lines.line_of`
finds one when a finding needs it); any other YAML is read with ruamel.yaml."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from gpuplan.policy.api import KEYS, Block, Entry, Unreadable
from gpuplan.render import yaml
from gpuplan.render.tree import File
from gpuplan.source import Path, SourceDocument

# What some rule looks for in a document; an escape could spell any of it.
_WORTH_READING = re.compile(r"""privileged|\\|\b(?:image|version)["']?\s*:""")


def document_blocks(file: File) -> tuple[Block, ...] | Unreadable:
    if not _WORTH_READING.search(file.text):
        return ()
    plain = SourceDocument(file.path, "")
    try:
        read = json.loads if file.path.endswith(".json") else yaml.loads
        return tuple(_blocks(read(file.text), plain))
    except yaml.NotCanonical:
        return _general(file)
    except (ValueError, RecursionError) as problem:
        return Unreadable(file.path, f"not valid JSON: {problem}")


def _general(file: File) -> tuple[Block, ...] | Unreadable:
    from gpuplan.manifest.text import read_yaml

    blocks: list[Block] = []
    for document, problems in read_yaml(file.path, file.text):
        if problems:
            first = problems[0]
            span = getattr(first.origin, "span", None)
            return Unreadable(file.path, first.message, span.line if span else None)
        document.path = file.path
        blocks.extend(_blocks(document.data, document))
    return tuple(blocks)


def _blocks(root: Any, document: SourceDocument) -> Iterator[Block]:
    """A block for every mapping and every text below `root`, each with the object it belongs to."""
    kind, resource = _identity(root)
    pending: list[tuple[Any, Path, str]] = [(root, (), "")]
    while pending:
        node, route, path = pending.pop()
        entries: tuple[Entry, ...] = ()
        if isinstance(node, dict):
            entries = tuple(
                Entry(key=str(k), value=v, line=_line(document, (*route, k)))
                for k, v in node.items()
                if k in KEYS
            )
            children = [(v, (*route, k), f"{path}.{k}".lstrip(".")) for k, v in node.items()]
            pending.extend(reversed(children))
        elif isinstance(node, list):
            items = [(v, (*route, i), f"{path}[{_label(v, i)}]") for i, v in enumerate(node)]
            pending.extend(reversed(items))
        elif isinstance(node, str):
            entries = (Entry(key="text", value=node, line=_line(document, route)),)
        if entries:
            yield Block(
                file=document.path or document.name,
                kind="text" if isinstance(node, str) else kind,
                resource=resource,
                path=path,
                line=_line(document, route),
                entries=entries,
            )


def _identity(root: Any) -> tuple[str, str]:
    """(kind, `Kind/name`) of a Kubernetes object; empty for another document."""
    if not isinstance(root, dict) or not isinstance(root.get("kind"), str):
        return "", ""
    kind, metadata = root["kind"], root.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return kind, f"{kind}/{name}" if name else ""


def _label(node: Any, number: int) -> str:
    name = node.get("name") if isinstance(node, dict) else None
    return name if isinstance(name, str) else str(number)


def _line(document: SourceDocument, route: Path) -> int | None:
    span = document.keys.get(route) or document.values.get(route)
    return span.line if span else None
