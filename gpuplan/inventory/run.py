"""Texts → an inventory: recognise, read, sort by host, merge, fold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gpuplan.diagnostics import Diagnostic
from gpuplan.frozen import record
from gpuplan.inventory.document import folded, written
from gpuplan.inventory.facts import Reader, Reading
from gpuplan.inventory.hosts import by_host
from gpuplan.inventory.merge.host import described
from gpuplan.inventory.merge.messages import empty, gap_messages, not_recognised, nothing_read
from gpuplan.inventory.texts import Text
from gpuplan.inventory.v1 import Inventory
from gpuplan.manifest.load import validate
from gpuplan.source import Place, SourceDocument, Span


@record
class Imported:
    """`text` is empty where nothing could be read."""

    text: str = ""
    data: dict[str, Any] | None = None
    problems: tuple[Diagnostic, ...] = ()


def imported(
    texts: Sequence[Text], name: str, readers: Callable[[str], Iterable[Reader]]
) -> Imported:
    """The inventory `name` of what `texts` say. `readers` are those that may know a text."""
    given: list[tuple[str, tuple[Reading, ...]]] = []
    problems: list[Diagnostic] = []
    for text in texts:
        said = tuple(r for reader in readers(text.document.text) for r in _read(reader, text))
        if not said:
            problems.append(_unknown(text.document))
        given.append((text.place, said))
    hosts = [described(h) for h in by_host(given) if any(r.facts for r in h.readings)]
    problems += [p for readings in given for r in readings[1] if not r.facts for p in r.problems]
    if not hosts:
        return Imported(problems=(*problems, nothing_read(len(texts))))
    problems += [p for host in hosts for p in host.problems]
    problems += gap_messages(gap for host in hosts for gap in host.gaps)
    document = written(name, folded(hosts))
    source = SourceDocument("the inventory", "", data=document.data)
    wrong = validate(Inventory, source)[1]  # where texts say things that no host has
    return Imported(text=document.text, data=document.data, problems=(*problems, *wrong))


def _unknown(document: SourceDocument) -> Diagnostic:
    if not document.text.strip():
        return empty(document.name)
    return not_recognised(document.name, Place(document.name, Span(1, 1, 1, 2)))


def _read(reader: Reader, text: Text) -> tuple[Reading, ...]:
    return reader.read(text.document) if reader.recognises(text.document.text) else ()
