"""Where the facts of one catalogue file come from, as their records say it."""

from __future__ import annotations

from typing import Any

from gpuplan.catalog.model import CatalogSource, Citation


class Citations:
    """The sources of one file, and the citation of each of its facts."""

    def __init__(self, folder: str, identifier: str, entry: dict[str, Any]) -> None:
        self.file = f"{folder}/{identifier}.yaml"
        self.sources = tuple(
            CatalogSource(key=key, title=title, where=where, date=date, published=bool(published))
            for key, (title, where, date, published) in entry["sources"].items()
        )

    def source(self, key: str) -> CatalogSource:
        return next(s for s in self.sources if s.key == key)

    def of(self, key: str, subject: str = "") -> Citation:
        return Citation(self.file, subject, self.source(key))
