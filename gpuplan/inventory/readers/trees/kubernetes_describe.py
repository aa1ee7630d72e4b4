"""`kubectl describe nodes`: the same facts as the nodes' JSON, as people paste them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuplan.inventory.facts import Reader, Reading
from gpuplan.inventory.readers.jsonread import Json
from gpuplan.inventory.readers.trees.kubernetes_labels import TOOL
from gpuplan.inventory.readers.trees.kubernetes_nodes import node_reading
from gpuplan.inventory.readers.words import Line, Word, lines_of
from gpuplan.source import SourceDocument

_HEAD = re.compile(r"([A-Z][A-Za-z -]*):(?:\s+(\S.*))?")
_SIZE = re.compile(r"\s+([a-z0-9./-]+):\s+(\S+)\s*", re.IGNORECASE)
_LABEL = re.compile(r"([^\s=]+)=(\S*)")
_TAINT = re.compile(r"([^\s=:]+)(?:=([^\s:]*))?:([A-Za-z]+)")
_OF_NODES = re.compile(r"^Capacity:\s*$.*?^System Info:\s*$", re.MULTILINE | re.DOTALL)
_INFO = {"Kubelet Version": "kubeletVersion", "Architecture": "architecture"}

Parts = dict[str, list[Line]]


def recognises(text: str) -> bool:
    return "\nCapacity:" in text and _OF_NODES.search(text) is not None


def read(document: SourceDocument) -> tuple[Reading, ...]:
    return tuple(node_reading(document, _node(parts)) for parts in _nodes(document))


READER = Reader(tool=TOOL, recognises=recognises, read=read)


def _nodes(document: SourceDocument) -> Iterator[Parts]:
    """The parts of each node by their heads, each with the head's own line."""
    parts: Parts = {}
    name = ""
    for line in lines_of(document):
        head = _HEAD.fullmatch(line.text.rstrip())
        if head and head[1] == "Name":
            if "Capacity" in parts:
                yield parts
            parts = {}
        if head:
            name = head[1]
            parts.setdefault(name, []).append(line)
        elif line.text[:1].isspace() and name in parts:
            parts[name].append(line)
        else:
            name = ""  # another command
    if "Capacity" in parts:
        yield parts


def _node(parts: Parts) -> Json:
    """As the node's JSON has it."""
    first = next(iter(parts.values()))[0].word()
    info = dict(_pairs(parts.get("System Info", [])))
    known = {_INFO[n]: w for n, w in info.items() if n in _INFO}
    capacity = {m[1]: line.group(m, 2) for line, m in _matches(parts["Capacity"], _SIZE)}
    status = {"capacity": _object(first, capacity)}
    if "Kubelet Version" in info:  # near the end of a part that is whole
        status["nodeInfo"] = _object(first, known)
    name, provider = _value(parts, "Name"), _value(parts, "ProviderID")
    labels = {m[1]: line.group(m, 2) for line, m in _matching(parts.get("Labels", []), _LABEL)}
    taints = Json(first, kind="array", items=[*_taints(first, parts.get("Taints", []))])
    named = _object(first, {"name": name} if name else {})
    named.members["labels"] = _object(first, labels)
    spec = _object(first, {"providerID": provider} if provider else {})
    spec.members["taints"] = taints
    members = {
        "metadata": named,
        "spec": spec,
        "status": Json(first, kind="object", members=status),
    }
    return Json(first, kind="object", members=members)


def _taints(first: Word, lines: list[Line]) -> Iterator[Json]:
    for line, match in _matching(lines, _TAINT):
        words = {"key": line.group(match, 1), "effect": line.group(match, 3)}
        if match[2] is not None:
            words["value"] = line.group(match, 2)
        yield _object(first, words)


def _object(place: Word, words: dict[str, Word]) -> Json:
    members = {name: Json(word, data=word.text) for name, word in words.items()}
    return Json(place, kind="object", members=members)


def _value(parts: Parts, head: str) -> Word | None:
    lines = parts.get(head, [])
    match = _HEAD.fullmatch(lines[0].text.rstrip()) if lines else None
    return lines[0].group(match, 2) if match and match[2] else None


def _pairs(lines: list[Line]) -> Iterator[tuple[str, Word]]:
    for line in lines[1:]:
        name, mark, _ = line.text.partition(":")
        if mark:
            yield name.strip(), line.word(len(name) + 1)


def _matches(lines: list[Line], pattern: re.Pattern[str]) -> Iterator[tuple[Line, re.Match[str]]]:
    for line in lines[1:]:
        if match := pattern.fullmatch(line.text):
            yield line, match


def _matching(lines: list[Line], pattern: re.Pattern[str]) -> Iterator[tuple[Line, re.Match[str]]]:
    """Behind the head on its own line, and one on each that follows."""
    for number, line in enumerate(lines):
        start = line.text.find(":") + 1 if number == 0 else 0
        if match := pattern.search(line.text, start):
            yield line, match
