"""Files of the catalogue as text: pinned sources, quantities, and rows that fit a line each."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

Row = Mapping[str, object]


@dataclass(frozen=True)
class Source:
    """A file of a repository at a commit. `date` is the table's own, or the commit's; one that has
    none that could be looked up was `read` on a day."""

    key: str
    title: str
    repository: str
    commit: str
    path: str
    date: str = ""
    read: str = ""

    def text(self, checkouts: Path) -> str:
        """The file's content. A checkout is OWNER+NAME or NAME, with or without a work tree; for a
        repository that is too large, a folder without git that holds the file alone."""
        owner, name = self.repository.split("/")
        places = (f"{owner}+{name}/repo", f"{owner}+{name}", f"{owner}/{name}", name)
        folder = next((checkouts / p for p in places if (checkouts / p).is_dir()), None)
        if folder is None:
            raise SystemExit(f"{checkouts} has no checkout of {self.repository}")
        if (folder / self.path).is_file() and not (folder / ".git").exists():
            return (folder / self.path).read_text(encoding="utf-8")
        command = ("git", "-C", str(folder), "show", f"{self.commit}:{self.path}")
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def lines(self) -> str:
        return (
            f"  {self.key}:\n    title: {quoted(self.title)}\n    repository: {self.repository}\n"
            f"    commit: {self.commit}\n    path: {self.path}\n"
            + (f"    date: {quoted(self.date)}\n" if self.date else "")
            + (f"    read: {quoted(self.read)}\n" if self.read else "")
        )


@dataclass(frozen=True)
class Page:
    """A page that was read on a day."""

    key: str
    title: str
    url: str
    read: str

    def lines(self) -> str:
        return (
            f"  {self.key}:\n    title: {quoted(self.title)}\n    url: {quoted(self.url)}\n"
            f"    read: {quoted(self.read)}\n"
        )


def quoted(text: str) -> str:
    return f'"{text}"'


def flow(row: Row) -> str:
    """A mapping on one line, without what is None."""
    parts = (f"{key}: {_value(value)}" for key, value in row.items() if value is not None)
    return "{" + ", ".join(parts) + "}"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return flow(value)
    return str(value)


def size(mebibytes: float) -> str:
    """In GiB where that is exact."""
    gibibytes = mebibytes / 1024
    return f"{gibibytes:g} GiB" if gibibytes * 8 == int(gibibytes * 8) else f"{mebibytes:g} MiB"


def usd(price: str | float) -> str:
    """To a micro-dollar."""
    exact = Decimal(str(price)).quantize(Decimal("0.000001")).normalize()
    return f"${exact:f}/hour"


def instance_file(
    provider: str, rows: Iterable[Row], sources: Iterable[Source | Page], notes: Iterable[str]
) -> str:
    head = f"kind: instances\nid: {provider}\nprovider: {provider}\ninstances:\n"
    return head + "".join(f"  - {flow(r)}\n" for r in rows) + _tail(sources, notes)


def rate_file(
    provider: str, rates: Mapping[str, Mapping[str, Mapping[str, str]]], source: Source, note: str
) -> str:
    """`rates`: instance → on_demand or spot → region → price."""
    head = f"kind: rates\nid: {provider}\nprovider: {provider}\nrates:\n"
    rows = []
    for name, kinds in sorted(rates.items()):
        rows.append(f"  - instance: {name}\n")
        rows += [
            f"    {kind}: {flow(dict(sorted(prices.items())))}\n"
            for kind, prices in sorted(kinds.items())
            if prices
        ]
        rows.append(f"    source: {source.key}\n")
    return head + "".join(rows) + _tail([source], [note])


def _tail(sources: Iterable[Source | Page], notes: Iterable[str]) -> str:
    said = "".join(f"  - {quoted(n)}\n" for n in notes)
    return f"notes:\n{said}sources:\n" + "".join(s.lines() for s in sources)


def real(price: str | float) -> bool:
    """Tables have 0 and 700 where they know no price."""
    return 0 < float(price) < 700
