"""What stands now: the answer of an earlier run of `gpuplan pack --json`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gpuplan.diagnostics import Diagnostic
from gpuplan.fleet.messages import bad_result
from gpuplan.fleet.problem import HostType, Placed, Request
from gpuplan.manifest.load import read_text


def read_kept(
    path: Path, hosts: Sequence[HostType], requests: Sequence[Request]
) -> tuple[tuple[Placed, ...], list[Diagnostic]]:
    """The placements of the items that are still wanted, on the hosts that are still there. A host
    of the inventory is found by its name, wherever it now stands in the list."""
    text = read_text(path)
    if isinstance(text, Diagnostic):
        return (), [text]
    try:
        kept = [_placed(row) for row in json.loads(text)["placed"]]
    except ValueError:
        return (), [bad_result(str(path), "it is not JSON")]
    except (KeyError, TypeError, AttributeError):
        return (), [bad_result(str(path), "a placement lacks a field, or there are none")]
    return tuple(_standing(kept, hosts, requests)), []


def _placed(row: dict[str, Any]) -> tuple[Placed, str | None]:
    start = row.get("start")
    return (
        Placed(
            request=str(row["request"]),
            number=int(row["number"]),
            host_type=str(row["host_type"]),
            host=int(row["host"]),
            gpus=tuple(int(g) for g in row["gpus"]),
            mode=row.get("mode"),
            part=row.get("part"),
            start=None if start is None else int(start),
            cards=tuple(int(c) for c in row.get("cards", ())),
        ),
        row.get("host_name"),
    )


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
