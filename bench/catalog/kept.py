"""What people and `gpuplan catalog update` wrote into the files of the catalogue stays when they
are made anew from tables: prices of other sources, and who labels nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from gpuplan.catalog.update.write import KINDS, joined, text_of

Document = dict[str, Any]


def with_kept(path: Path, text: str) -> str:
    """`text`, made from tables for the file at `path`, with what is there and no table has. A price
    of another source gives way to a table with a date of its own that is later."""
    if not path.is_file():
        return text
    old, new = _read(path.read_text(encoding="utf-8")), _read(text)
    if new["kind"] == "rates":
        return _rates(old, new, text)
    return _labels(old, text)


def _read(text: str) -> Document:
    document: Document = YAML(typ="safe", pure=True).load(text)
    return document


def _rates(old: Document, new: Document, text: str) -> str:
    others = {key: s for key, s in old["sources"].items() if key not in new["sources"]}
    stay = [row for row in old["rates"] if row["source"] in others]
    rows = [dict(row) for row in new["rates"]]
    held = []
    for row in stay:
        left = {kind: _left(row, kind, rows, others[row["source"]], new) for kind in KINDS.values()}
        if any(left.values()):
            held.append({"instance": row["instance"], **left, "source": row["source"]})
    if not held:
        return text
    rows = [row for row in rows if any(row.get(kind) for kind in KINDS.values())]
    named = {row["source"] for row in held}
    notes = dict.fromkeys((*new.get("notes", ()), *old.get("notes", ())))
    sources = {**new["sources"], **{k: s for k, s in others.items() if k in named}}
    rates = joined([*rows, *held])
    return text_of({**new, "rates": rates, "notes": list(notes), "sources": sources})


def _left(
    row: Document, kind: str, rows: list[Document], source: Document, new: Document
) -> dict[str, str]:
    """The prices of `row` that no later table has; the tables' own are taken out of `rows`."""
    kept = {}
    for region, usd in row.get(kind, {}).items():
        made = [r for r in rows if r["instance"] == row["instance"] and region in r.get(kind, {})]
        day = source.get("date") or source["read"]
        if any(new["sources"][r["source"]].get("date", "") > day for r in made):
            continue
        kept[region] = usd
        for other in made:
            other[kind] = {k: v for k, v in other[kind].items() if k != region}
    return kept


def _labels(old: Document, text: str) -> str:
    """With the source that says that a provider's Kubernetes labels nodes by their type."""
    key = old.get("labels_nodes")
    if key is None or "\nlabels_nodes:" in text:
        return text
    head = f"provider: {old['provider']}\n"
    lines = "".join(f"    {name}: {_field(name, v)}\n" for name, v in old["sources"][key].items())
    labelled = text.replace(head, f"{head}labels_nodes: {key}\n", 1)
    return labelled if f"\n  {key}:\n" in text else f"{labelled}  {key}:\n{lines}"


def _field(name: str, value: object) -> str:
    return str(value) if name in ("repository", "commit", "path") else f'"{value}"'
