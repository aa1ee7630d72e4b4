"""`kubectl get nodes -o json` and `-o yaml`, and a single node: one reading for each node."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from itertools import pairwise

from gpuplan.inventory.facts import Reader, Reading
from gpuplan.inventory.readers.gather import HOST, Gathering, unreadable
from gpuplan.inventory.readers.jsonread import Json, Parsed, parse
from gpuplan.inventory.readers.trees.kubernetes_labels import INSTANCES, TOOL, Node, gpus
from gpuplan.inventory.readers.words import Word
from gpuplan.inventory.readers.yamlread import parse_yaml
from gpuplan.source import SourceDocument

_JSON_KIND = re.compile(r'"kind"\s*:\s*"Node(?:List)?"')
_YAML_KIND = re.compile(r"^(?:- | {2,4})?kind: Node(?:List)?\s*$", re.MULTILINE)
_JSON_START = re.compile(r"^([{\[])", re.MULTILINE)
_YAML_START = re.compile(r"^(?:apiVersion|kind|items|metadata):", re.MULTILINE)
_STATUS = re.compile(r"\b(?:capacity|allocatable|nodeInfo)\"?:")
_QUANTITY = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)(?:([eE][+-]?[0-9]{1,2})|([a-zA-Z]{0,2}))")
# Suffixes of quantities. Source: Kubernetes API, resource.Quantity.
_SUFFIXES = {"": Decimal(1), "m": Decimal("0.001")}
_SUFFIXES |= {s: Decimal(1000) ** i for i, s in enumerate(("k", "M", "G", "T", "P", "E"), 1)}
_SUFFIXES |= {f"{s}i": Decimal(1024) ** i for i, s in enumerate("KMGTPE", 1)}
_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64", "ppc64le": "ppc64le"}
_VENDORS = {"Intel": "intel", "AMD": "amd"}
_LABELS = {
    "node_type": INSTANCES,
    "zone": ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
}
_SIZES = {
    "memory": "memory_bytes",
    "hugepages-2Mi": "hugepages_2mi_bytes",
    "hugepages-1Gi": "hugepages_1gi_bytes",
}
_DRIVER = "nvidia.com/cuda.driver"


def recognises(text: str) -> bool:
    return (_JSON_KIND.search(text) is not None or _yaml(text)) and _STATUS.search(text) is not None


def _yaml(text: str) -> bool:
    return _YAML_KIND.search(text) is not None and re.search(r"^kind: Pod", text, re.M) is None


def read(document: SourceDocument) -> tuple[Reading, ...]:
    json = _JSON_KIND.search(document.text)
    trees = _json(document) if json else parse_yaml(_padded(document, _YAML_START))
    readings: list[Reading] = []
    for tree in trees:
        nodes = _nodes(tree.value) if tree.value else []
        readings += [node_reading(document, node) for node in nodes]
        problems = _problems(document, tree, len(nodes))
        if problems.problems:
            readings.append(problems)
    return tuple(readings)


READER = Reader(tool=TOOL, recognises=recognises, read=read)


def _json(document: SourceDocument) -> tuple[Parsed, ...]:
    """The values that begin a line and hold nodes, whatever else was captured with them."""
    starts = [m.start(1) for m in _JSON_START.finditer(document.text)]
    parsed = []
    for start, end in pairwise((*starts, len(document.text))):
        part = document.text[start:end]
        if _JSON_KIND.search(part):
            lines = "\n" * document.text.count("\n", 0, start)
            parsed.append(parse(SourceDocument(document.name, lines + part), r"[{\[]"))
    return tuple(parsed) or (parse(document, r"[{\[]"),)


def _padded(document: SourceDocument, start: re.Pattern[str]) -> SourceDocument:
    """The text from a first match on, its lines where they were."""
    match = start.search(document.text)
    if not match:
        return document
    lines = "\n" * document.text.count("\n", 0, match.start())
    return SourceDocument(document.name, lines + document.text[match.start() :])


def _at(value: Json | None, *path: str) -> Json | None:
    """The value below these keys."""
    for key in path:
        value = value.members.get(key) if value else None
    return value


def _word(value: Json, *path: str) -> Word | None:
    above = _at(value, *path[:-1])
    return above.text(path[-1]) if above else None


def _nodes(root: Json) -> list[Json]:
    """The nodes of a list, or the one that the text is."""
    kind, items = root.text("kind"), _at(root, "items")
    if items or (kind and kind.text in {"List", "NodeList"}):
        inside = items.items if items else []
        return [i for i in inside if (k := i.text("kind")) is None or k.text == "Node"]
    return [root] if kind and kind.text == "Node" else []


def _problems(document: SourceDocument, tree: Parsed, nodes: int) -> Reading:
    """What is wrong with the text as a whole."""
    gathering = Gathering(TOOL, document.name)
    root = tree.value
    if tree.fault:
        last = document.text.rstrip().count("\n") + 1
        end = tree.fault.place.span.end_line >= last
        if end:
            where = f"inside node {nodes}" if nodes else "before its first node"
            gathering.cut_off(f"it ends {where}", tree.fault.place)
        else:
            reason = "what stands here is neither JSON nor YAML, and what follows is not read"
            gathering.problems.append(unreadable(TOOL, reason, tree.fault.place))
    elif root and "items" in root.members and "kind" not in root.members:
        gathering.cut_off("the list's kind, which follows its nodes, is missing", root.word.place)
    return gathering.reading()


def node_reading(document: SourceDocument, node: Json) -> Reading:
    """The facts of one node, from its tree as the API has it."""
    name = _word(node, "metadata", "name")
    host = name.text if name and name.text else None
    known = host or "a node"
    gathering = Gathering(TOOL, document.name)
    nothing = Json(node.word, kind="object")
    labels = _at(node, "metadata", "labels") or nothing
    capacity = _at(node, "status", "capacity") or nothing
    if not _complete(node):
        gathering.cut_off(f"it ends inside {known}", node.word.place)
    if name and host:
        gathering.add(HOST, "name", host, name.place)
    _sizes(gathering, known, capacity)
    _system(gathering, node)
    if _complete(node):
        _of_labels(gathering, node, labels)
        gpus(gathering, Node(name=known, labels=labels, capacity=capacity))
    _without_last(document, gathering)
    return gathering.reading(host)


def _complete(node: Json) -> bool:
    """`status` is a node's last part, and `nodeInfo` among its last."""
    return node.closed and _at(node, "status", "nodeInfo") is not None


def _without_last(document: SourceDocument, gathering: Gathering) -> None:
    """A last line without an end may hold half a value; JSON's brackets show that it does not."""
    last = document.text.count("\n") + 1
    if document.text.rstrip(" ")[-1:] in {"\n", "}", "]"}:
        return
    half = [key for key, fact in gathering.facts.items() if fact.place.span.end_line >= last]
    for key in half:
        gathering.drop(*key)


def _of_labels(gathering: Gathering, node: Json, labels: Json) -> None:
    provider = _word(node, "spec", "providerID")
    for attribute, names in _LABELS.items():
        word = next((w for n in names if (w := labels.text(n)) and w.text), None)
        own = word and provider and provider.text.split(":")[0] == word.text  # k3s, rke2
        if word and not own:
            gathering.add(HOST, attribute, word.text, word.place)
    vendor = labels.text("feature.node.kubernetes.io/cpu-model.vendor_id")
    if vendor and vendor.text in _VENDORS:
        gathering.add(HOST, "cpu_vendor", _VENDORS[vendor.text], vendor.place)
    whole_version = labels.text(f"{_DRIVER}-version.full")
    parts = [labels.text(f"{_DRIVER}.{part}") for part in ("major", "minor", "rev")]
    words = [p for p in parts if p and p.text]
    if whole_version and whole_version.text:
        gathering.add(HOST, "driver_version", whole_version.text, whole_version.place)
    elif len(words) > 1 and parts[0] and parts[1]:
        version = ".".join(word.text for word in words)
        gathering.add(HOST, "driver_version", version, words[0].place)


def _sizes(gathering: Gathering, node: str, capacity: Json) -> None:
    """`cpu` counts logical CPUs; `memory` is what the kernel has."""
    cpus = capacity.text("cpu")
    _quantity(gathering, f"the CPUs of {node}", "cpu_count", cpus)
    for name, attribute in _SIZES.items():
        _quantity(gathering, f"the {name} of {node}", attribute, capacity.text(name))
    devices = tuple(
        f"{name}={word.text}"
        for name in sorted(capacity.members)
        if re.search(r"rdma|infiniband|efa\b", name) and (word := capacity.text(name))
    )
    if devices and capacity.closed:
        gathering.add(HOST, "rdma_devices", devices, capacity.word.place)


def _quantity(gathering: Gathering, fact: str, attribute: str, word: Word | None) -> None:
    if word is None:
        return
    value = quantity(word.text)
    if value is None or value != int(value):
        expected = "a whole quantity like 128 or 1056410708Ki"
        gathering.not_understood(fact, word, expected)
    elif value or attribute not in {"cpu_count", "memory_bytes"}:
        gathering.add(HOST, attribute, int(value), word.place)


def quantity(text: str) -> Decimal | None:
    """`128`, `127500m`, `1056410708Ki`, `1e9` → a number in base units."""
    match = _QUANTITY.fullmatch(text.strip())
    if not match or (match[3] or "") not in _SUFFIXES:
        return None
    try:
        return Decimal(match[1] + (match[2] or "")) * _SUFFIXES[match[3] or ""]
    except InvalidOperation:
        return None


def _system(gathering: Gathering, node: Json) -> None:
    architecture = _word(node, "status", "nodeInfo", "architecture")
    if architecture and architecture.text in _ARCHITECTURES:
        known = _ARCHITECTURES[architecture.text]
        gathering.add(HOST, "architecture", known, architecture.place)
    version = _word(node, "status", "nodeInfo", "kubeletVersion")
    if version and version.text:
        gathering.add(HOST, "kubelet_version", version.text, version.place)
    taints = []
    listed = _at(node, "spec", "taints")
    for taint in listed.items if listed else ():
        key, value, effect = (taint.text(part) for part in ("key", "value", "effect"))
        if key and effect:
            taints.append(f"{key.text}={value.text if value else ''}:{effect.text}")
    if taints and listed and listed.closed:
        gathering.add(HOST, "taints", tuple(taints), listed.word.place)
