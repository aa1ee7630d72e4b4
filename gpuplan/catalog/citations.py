"""Where the facts of one catalogue file come from, as their records say it."""

from __future__ import annotations

from typing import Any

from gpuplan.catalog.model import CatalogSource


class Citations:
    """Writes the `source` of a fact of one file: `catalog: FILE FIELD (TITLE, DATE)`."""

    def __init__(self, folder: str, identifier: str, entry: dict[str, Any]) -> None:
        self.file = f"{folder}/{identifier}.yaml"
        self.sources = tuple(
            CatalogSource(key=key, title=title, where=where, date=date, published=bool(published))
            for key, (title, where, date, published) in entry["sources"].items()
        )

    def source(self, key: str) -> CatalogSource:
        return next(s for s in self.sources if s.key == key)

    def of(self, key: str, field: str = "") -> str:
        return f"catalog: {self.file}{field and ' '}{field} ({self.source(key).citation})"
