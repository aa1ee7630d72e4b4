"""Reviewed prices into the files of a catalogue's folder. Prices that stay keep their source; those
that are taken get rows of their own, with the new one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from gpuplan.catalog.update.changes import Change
from gpuplan.frozen import record

KINDS = {"on-demand": "on_demand", "spot": "spot"}
Row = dict[str, Any]  # instance, source, on_demand and spot by region


@record
class ListSource:
    """Where a list comes from: `key` names it in the files. Its `date`, or the day it was `read`
    where it has none."""

    key: str
    title: str
    url: str
    date: str | None
    read: str


def written(folder: Path, taken: Sequence[Change], source: ListSource) -> dict[Path, str]:
    """The files of `folder` (`gpuplan/catalog/data`) that change, with their new text."""
    texts = {}
    for provider in dict.fromkeys(change.quote.provider for change in taken):
        path = folder / "rates" / f"{provider}.yaml"
        document = _read(path, provider)
        mine = [change for change in taken if change.quote.provider == provider]
        texts[path] = text_of(_with(document, mine, source))
    return texts


def _read(path: Path, provider: str) -> dict[str, Any]:
    from ruamel.yaml import YAML

    if not path.is_file():
        return {"kind": "rates", "id": provider, "provider": provider, "rates": [], "sources": {}}
    rates: dict[str, Any] = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    return rates


def _with(document: dict[str, Any], taken: Sequence[Change], source: ListSource) -> dict[str, Any]:
    """`document` with the taken prices. A source that nothing names any more is dropped."""
    new: dict[str, Row] = {}
    for change in taken:
        quote, kind = change.quote, KINDS[change.quote.capacity]
        for row in document["rates"]:
            if row["instance"] == quote.instance:
                row.get(kind, {}).pop(quote.region, None)
        empty: Row = {"instance": quote.instance, "source": source.key}
        row = new.setdefault(quote.instance, empty)
        row.setdefault(kind, {})[quote.region] = usd(quote.usd_per_hour)
    kept = [r for r in document["rates"] if any(r.get(kind) for kind in KINDS.values())]
    rows = joined([*kept, *new.values()])
    named = {row["source"] for row in rows}
    sources = {k: v for k, v in document["sources"].items() if k in named and k != source.key}
    sources[source.key] = _source(source)
    return {**document, "rates": rows, "sources": sources}


def joined(rows: Iterable[Row]) -> list[Row]:
    """One row of each instance and source, sorted."""
    merged: dict[tuple[str, str], Row] = {}
    for row in rows:
        entry = merged.setdefault((row["instance"], row["source"]), dict(row))
        for kind in KINDS.values():
            if row.get(kind):
                entry[kind] = {**entry.get(kind, {}), **row[kind]}
    return [merged[key] for key in sorted(merged)]


def _source(source: ListSource) -> dict[str, str]:
    when = {"date": source.date} if source.date else {"read": source.read}
    return {"title": source.title, "url": source.url, **when}


def usd(price: Decimal) -> str:
    """To a micro-dollar."""
    return f"${price.quantize(Decimal('0.000001')).normalize():f}/hour"


def text_of(document: Mapping[str, Any]) -> str:
    """As the generator of the catalogue's files writes them (`bench/catalog/common.py`)."""
    lines = [f"kind: rates\nid: {document['id']}\nprovider: {document['provider']}\nrates:\n"]
    for row in document["rates"]:
        lines.append(f"  - instance: {row['instance']}\n")
        for kind in KINDS.values():
            if row.get(kind):
                cells = ", ".join(f"{k}: {v}" for k, v in sorted(row[kind].items()))
                lines.append(f"    {kind}: {{{cells}}}\n")
        lines.append(f"    source: {row['source']}\n")
    if document.get("notes"):
        lines.append("notes:\n")
        lines += [f"  - {_quoted(note)}\n" for note in document["notes"]]
    lines.append("sources:\n")
    for key, source in document["sources"].items():
        lines.append(f"  {key}:\n")
        lines += [f"    {name}: {_field(name, value)}\n" for name, value in source.items()]
    return "".join(lines)


def _field(name: str, value: object) -> str:
    return str(value) if name in ("repository", "commit", "path") else _quoted(str(value))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
