"""CSV text, one request a row → the data of a list of requests. Columns are the fields' names."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath

from gpuplan.diagnostics import Diagnostic
from gpuplan.fleet.messages import broken_text
from gpuplan.fleet.requests.v1 import API_VERSION, RequestSpec
from gpuplan.manifest.explainers import unknown_field
from gpuplan.manifest.load import unlisted
from gpuplan.source import Origin, Path, Place, SourceDocument, Span

MOST_PROBLEMS = 20  # of one list that are shown


def _whole(cell: str) -> object:
    return int(cell) if cell.isdecimal() and len(cell) < 20 else cell


def _part(cell: str) -> object:
    return float(cell) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", cell) else cell


def _words(cell: str) -> object:
    return re.split(r"[\s;]+", cell)


def _truth(cell: str) -> object:
    return {"true": True, "false": False}.get(cell.casefold(), cell)


def _text(cell: str) -> object:
    return cell


_READ: dict[str, Callable[[str], object]] = {
    **dict.fromkeys(("count", "gpus", "cpu_cores", "virtual_functions"), _whole),
    **dict.fromkeys(("compute", "growth"), _part),
    **dict.fromkeys(("gpu", "sharing"), _words),
    "media": _truth,
}


class CsvDocument(SourceDocument):
    """`lines` are the rows' first lines, `columns` the header's fields."""

    __slots__ = ("columns", "lines")

    def __init__(self, name: str, text: str, path: str) -> None:
        super().__init__(name, text, path)
        self.columns: Sequence[str] = ()
        self.lines: Sequence[int] = ()

    def span(self, origin: Origin) -> Span | None:
        path: Path = origin.path
        if path[:1] != ("requests",) or len(path) < 2 or not isinstance(path[1], int):
            return self._of_line(1, None)
        field = path[2] if len(path) > 2 and not origin.key else None
        place = self.columns.index(str(field)) if field in self.columns else None
        return self._of_line(self.lines[path[1]], place)

    def _of_line(self, line: int, place: int | None) -> Span:
        """A cell of a line; the line where the cell is not known or cells are quoted."""
        text = self.text.split("\n")[line - 1] if self.text else ""
        cells = text.split(",")
        if place is None or '"' in text or place >= len(cells):
            return Span(line, 1, line, max(2, len(text) + 1))
        start = sum(len(c) + 1 for c in cells[:place])
        return Span(line, start + 1, line, start + 1 + max(1, len(cells[place])))


def read_csv(name: str, text: str, path: str) -> tuple[SourceDocument, list[Diagnostic]]:
    """The document of `text`; its list is called as the file. Empty cells are left out."""
    document = CsvDocument(name, text, path)
    problems: list[Diagnostic] = []
    rows: list[Mapping[str, object]] = []
    lines: list[int] = []
    reader = csv.reader(text.split("\n"), strict=True)
    first = 1
    try:
        for cells in reader:
            line, first = first, reader.line_num + 1
            if not any(c.strip() for c in cells):
                continue
            if not document.columns:
                document.columns = [c.strip() for c in cells]
                problems += _unknown(document, line)
            elif len(cells) > len(document.columns):
                problems.append(_longer(document, line, len(cells)))
            else:
                rows.append(_row(document.columns, cells))
                lines.append(line)
    except csv.Error as problem:
        problems.append(broken_text("CSV", str(problem), Place(name, Span(first, 1, first, 2))))
    document.lines = lines
    document.data = {"apiVersion": API_VERSION, "name": _called(path), "requests": rows}
    return document, problems


def _row(columns: Sequence[str], cells: Sequence[str]) -> dict[str, object]:
    return {
        field: _READ.get(field, _text)(cell.strip())
        for field, cell in zip(columns, cells, strict=False)
        if cell.strip()
    }


def _unknown(document: CsvDocument, line: int) -> list[Diagnostic]:
    from dataclasses import replace

    known = tuple(RequestSpec.model_fields)
    unknown = [place for place, field in enumerate(document.columns) if field not in known]
    problems = []
    for place in unknown[:MOST_PROBLEMS]:
        span = document._of_line(line, place)  # noqa: SLF001
        wrong = unknown_field(document.columns[place], known, Origin(document.name))
        problems.append(replace(wrong, origin=Place(document.name, span)))
    if (more := len(unknown) - MOST_PROBLEMS) > 0:
        problems.append(unlisted(document.name, more))
    return problems


def _longer(document: CsvDocument, line: int, cells: int) -> Diagnostic:
    reason = f"{cells} cells under {len(document.columns)} columns"
    place = Span(line, 1, line, 2)
    return broken_text("CSV", reason, Place(document.name, place))


def _called(path: str) -> str:
    """The file's name as the name of a list."""
    name = re.sub(r"[^a-z0-9]+", "-", PurePath(path).stem.casefold()).strip("-")
    return (name if name[:1].isalpha() else f"requests-{name}".rstrip("-"))[:40].rstrip("-")
