"""What stands now: the answer of an earlier run of `gpuplan pack --json`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from gpuplan.diagnostics import Diagnostic
from gpuplan.fleet.messages import bad_result
from gpuplan.fleet.problem import HostType, Placed, Request
from gpuplan.fleet.requests.jsontext import read_json
from gpuplan.manifest.load import read_text
from gpuplan.sharing.modes import ModeName
from gpuplan.source import Origin, SourceDocument, Sources, format_path

Count = Annotated[int, Field(ge=0, le=1_000_000_000)]


class _Row(BaseModel):
    """A placement, as `gpuplan pack --json` prints it."""

    request: str
    number: Count
    host_type: str
    host: Count
    gpus: tuple[Count, ...]
    mode: ModeName | None = None
    part: str | None = None
    start: Count | None = None
    cards: tuple[Count, ...] = ()
    host_name: str | None = None


class _Result(BaseModel):
    placed: list[_Row]


def read_kept(
    path: Path, hosts: Sequence[HostType], requests: Sequence[Request], sources: Sources
) -> tuple[tuple[Placed, ...], list[Diagnostic]]:
    """The placements of the items that are still wanted, on the hosts that are still there. A host
    of the inventory is found by its name, wherever it now stands in the list."""
    text = read_text(path)
    if isinstance(text, Diagnostic):
        return (), [text]
    name = path.name if path.name not in sources.documents else str(path)
    document, problems = read_json(name, text, str(path))
    sources.add(document)
    if problems:
        return (), problems
    try:
        rows = _Result.model_validate(document.data).placed
    except ValidationError as problem:
        return (), [_fault(problem, document)]
    kept = [(Placed(**row.model_dump(exclude={"host_name"})), row.host_name) for row in rows]
    return tuple(_standing(kept, hosts, requests)), []


def _fault(problem: ValidationError, document: SourceDocument) -> Diagnostic:
    """The first that is wrong, by its path; a field that is missing at what should have it."""
    first = problem.errors()[0]
    path = first["loc"][:-1] if first["type"] == "missing" else first["loc"]
    place = format_path(first["loc"]) or "the document"
    if first["type"] == "missing":
        reason = f"it has no '{place}'"
    elif first["type"] in ("model_type", "model_attributes_type"):
        reason = f"{place} is no object"
    else:
        reason = f"{place}: {first['msg'].partition(':')[0].lower()}"
    return bad_result(document.path, reason, Origin(document.name, path))


def _standing(
    kept: Sequence[tuple[Placed, str | None]],
    hosts: Sequence[HostType],
    requests: Sequence[Request],
) -> Iterator[Placed]:
    from dataclasses import replace

    named = {n: (k.name, i) for k in hosts for i, n in enumerate(k.names)}
    room = {k.name: k.available for k in hosts}
    wanted = {r.name: r.count + r.growth for r in requests}
    for placed, name in kept:
        kind, host = (placed.host_type, placed.host)
        if name is not None:
            if name not in named:
                continue
            kind, host = named[name]
        limit = room.get(kind, 0)
        exists = limit is None or host < limit
        if exists and placed.number < wanted.get(placed.request, 0):
            yield replace(placed, host_type=kind, host=host)
