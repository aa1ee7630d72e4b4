"""Files → manifests and lists of requests: every problem of all of them at once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpuplan.diagnostics import Diagnostic
from gpuplan.fleet import messages
from gpuplan.fleet.requests.csvtext import MOST_PROBLEMS, read_csv
from gpuplan.fleet.requests.jsontext import read_json
from gpuplan.fleet.requests.v1 import API_VERSION, Requests, RequestSpec
from gpuplan.frozen import frozen
from gpuplan.manifest.load import (
    Loaded,
    document_names,
    load_manifests,
    read_text,
    same_name,
    unlisted,
    validate,
)
from gpuplan.manifest.text import MAXIMUM_NODES, read_yaml
from gpuplan.plan.isolation import guarded
from gpuplan.source import Origin, SourceDocument, Sources

_REQUESTS = re.compile(
    rf"""^[\s{{]*["']?apiVersion["']?\s*:\s*["']?{re.escape(API_VERSION)}\b""", re.M
)


@frozen
class List:
    """A valid list of requests and the name of its document."""

    requests: Requests
    document: str


@dataclass(slots=True)
class Wanted:
    """What is to be packed: manifests to size, lists as they are."""

    manifests: list[Loaded] = field(default_factory=list)
    lists: list[List] = field(default_factory=list)
    sources: Sources = field(default_factory=Sources)
    problems: list[Diagnostic] = field(default_factory=list)

    @property
    def inventory(self) -> Path | None:
        """The inventory that all manifests name; None where they name several, or none."""
        named = {
            m.folder / m.manifest.platform.inventory if m.manifest.platform.inventory else None
            for m in self.manifests
        }
        return named.pop() if len(named) == 1 else None


def read_wanted(paths: Sequence[Path]) -> Wanted:
    """Files with the suffix .csv are lists; of others the `apiVersion` says what they are."""
    wanted = Wanted()
    manifests: list[Path] = []
    for path, name in zip(paths, document_names(paths), strict=True):
        text = read_text(path)
        if isinstance(text, str) and (path.suffix == ".csv" or _REQUESTS.search(text)):
            _read_list(wanted, path, name, text)
        else:
            manifests.append(path)
    if manifests:
        reading = load_manifests(manifests)
        wanted.manifests = reading.manifests
        wanted.problems += reading.problems
        wanted.sources.documents.update(reading.sources.documents)
    wanted.problems += _same_names(wanted)
    return wanted


def _read_list(wanted: Wanted, path: Path, name: str, text: str) -> None:
    for document, broken in _documents(path, name, text):
        wanted.sources.add(document)
        if broken:
            wanted.problems += broken
            continue
        requests, values = validate(Requests, document, MOST_PROBLEMS)
        wanted.problems += values
        if requests is None:
            continue
        wrong = list(_contradictions(requests, document.name))
        wanted.lists += [] if wrong else [List(requests, document.name)]
        wanted.problems += wrong[:MOST_PROBLEMS]
        if (more := len(wrong) - MOST_PROBLEMS) > 0:
            wanted.problems.append(unlisted(document.name, more))


def _documents(
    path: Path, name: str, text: str
) -> Iterator[tuple[SourceDocument, list[Diagnostic]]]:
    if path.suffix == ".csv":
        yield read_csv(name, text, str(path))
    elif text.lstrip().startswith("{") and path.suffix == ".json":
        yield read_json(name, text, str(path))
    elif (values := text.count(": ") + text.count("- ")) > MAXIMUM_NODES // 2:
        yield SourceDocument(name, text, str(path)), [messages.too_long(name, values)]
    else:
        yield from read_yaml(name, text, str(path))


def _contradictions(requests: Requests, document: str) -> Iterator[Diagnostic]:
    names: dict[str, Origin] = {}
    for number, spec in enumerate(requests.requests):
        at = Origin(document, ("requests", number))
        yield from _sizes(spec, at)
        if spec.name in names:
            yield messages.same_request(spec.name, names[spec.name], at.child("name"))
        names.setdefault(spec.name, at.child("name"))


def _sizes(spec: RequestSpec, at: Origin) -> Iterator[Diagnostic]:
    if (spec.gpus is None) == (spec.gpu_memory is None):
        given = spec.gpus is not None
        yield messages.one_way(at.child("gpus") if given else at, given)
    elif spec.gpus is not None:
        for name in ("compute", "media", "sharing"):
            if name in spec.model_fields_set:
                yield messages.part_only(name, at.child(name))
    elif "time-slice" in (spec.sharing or ()) and not guarded(spec.isolation):
        yield messages.unprotected(spec.name, at.child("sharing"))


def _same_names(wanted: Wanted) -> Iterator[Diagnostic]:
    first = {m.manifest.name: Origin(m.document, ("name",)) for m in wanted.manifests}
    for item in wanted.lists:
        name, origin = item.requests.name, Origin(item.document, ("name",))
        if name in first:
            yield same_name(name, first[name], origin)
        first.setdefault(name, origin)
