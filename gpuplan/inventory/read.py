"""An inventory's file, and the hosts of it that are asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gpuplan.diagnostics import Diagnostic, did_you_mean, error
from gpuplan.errors import Rejected
from gpuplan.inventory.v1 import HostSpec, Inventory
from gpuplan.manifest.load import read_document, read_text, validate
from gpuplan.source import Sources


class RejectedInventory(Rejected):
    """`Rejected`, with the text that the problems stand in."""

    def __init__(self, diagnostics: Sequence[Diagnostic], sources: Sources) -> None:
        super().__init__(diagnostics)
        self.sources = sources


def no_host(name: str, known: Sequence[str]) -> Diagnostic:
    remedy = did_you_mean(name, known) or f"hosts are {', '.join(known[:12])}"
    return error("GP006", f"the inventory has no host '{name}'", help=remedy)


def no_answer(path: Path, reason: str) -> Diagnostic:
    message = f"{path} is no answer of `gpuplan pack --json`: {reason}"
    return error("GP009", message, help="write it with `gpuplan pack … --json > FILE`")


def read_inventory(path: Path) -> tuple[Inventory, Sources]:
    """Raises `Rejected` with everything that is wrong with the file."""
    sources = Sources()
    remedy = "`gpuplan inventory import` writes one"
    document, problems = read_document(path, path.name, sources, remedy)
    if document is None or problems:
        raise RejectedInventory(problems, sources)
    inventory, wrong = validate(Inventory, document)
    if inventory is None:
        raise RejectedInventory(wrong, sources)
    return inventory, sources


def chosen(
    inventory: Inventory, names: Sequence[str], *, each: bool
) -> list[tuple[HostSpec, str, bool]]:
    """Hosts with a name and whether they stand for themselves alone: those of `names`, else all,
    one by one (`each`) or one of each kind. Raises `Rejected` for a name that is not there."""
    known = [name for spec in inventory.hosts for name in spec.names]
    if missing := [name for name in names if name not in known]:
        raise Rejected([no_host(name, known) for name in missing])
    return list(_chosen(inventory, names, each=each))


def _chosen(
    inventory: Inventory, names: Sequence[str], *, each: bool
) -> Iterator[tuple[HostSpec, str, bool]]:
    for spec in inventory.hosts:
        if not names and not each:
            yield spec, spec.names[0], False
        for name in spec.names:
            if name in names or (each and not names):
                yield spec, name, True


def read_answer(path: Path) -> Any:
    """The answer of `gpuplan pack --json`. Raises `Rejected` where the file is none."""
    content = read_text(path)
    if isinstance(content, Diagnostic):
        raise Rejected([content])
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise Rejected([no_answer(path, "it is not JSON")]) from problem
    rows = answer.get("placed") if isinstance(answer, dict) else None
    if not isinstance(rows, list) or not all(map(_is_placed, rows)):
        raise Rejected([no_answer(path, "it has no list 'placed'")])
    return answer


def _is_placed(row: Any) -> bool:
    if not isinstance(row, dict):
        return False
    numbers = all(isinstance(row.get(k), int) for k in ("host", "number"))
    words = all(isinstance(row.get(k), str) for k in ("request", "host_type"))
    gpus = row.get("gpus")
    start = row.get("start")
    return (
        numbers
        and words
        and isinstance(gpus, list)
        and all(isinstance(g, int) for g in gpus)
        and (start is None or isinstance(start, int))
    )
