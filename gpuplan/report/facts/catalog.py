"""The catalogue for people: lists, and every fact of one entry with its source."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Any

from gpuplan.catalog.load import Catalog
from gpuplan.catalog.model import (
    BuildPin,
    CatalogSource,
    Citation,
    ComponentPin,
    CudaPin,
    EnginePin,
    Fact,
    Gpu,
    Price,
)
from gpuplan.render.text import width
from gpuplan.units import format_quantity, format_usd

STALE_DAYS = 90
COLUMN = 26  # of values, behind the names of fields


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns as wide as their content, no trailing spaces."""
    lines = [head, *rows]
    widths = [max(width(row[i]) for row in lines) for i in range(len(head))]
    return "".join(
        "  ".join(c + " " * (w - width(c)) for c, w in zip(row, widths, strict=True)).rstrip()
        + "\n"
        for row in lines
    )


def gpus(known: Iterable[Gpu], catalog: Catalog, as_of: date) -> str:
    rows = [_gpu_row(gpu, catalog.price(gpu.identifier), as_of) for gpu in known]
    head = ("GPU", "memory", "bandwidth", "bf16", "fp8", "NVLink", "power", "MIG", "USD/h")
    return table(head, rows)


def _gpu_row(gpu: Gpu, price: Price | None, as_of: date) -> tuple[str, ...]:
    cost = "unpriced" if price is None else f"{format_usd(price.usd_per_hour)}{_age(price, as_of)}"
    facts = (
        gpu.memory_bytes,
        gpu.memory_bytes_per_s,
        gpu.peak_bf16,
        gpu.peak_fp8,
        gpu.nvlink_bytes_per_s,
        gpu.watts,
    )
    shown = [format_quantity(f.value, f.unit) if f else "–" for f in facts]
    return (gpu.identifier, *shown, "yes" if gpu.mig_profiles else "–", cost)


def _age(price: Price, as_of: date) -> str:
    days = (as_of - date.fromisoformat(price.date)).days
    if not price.dated:
        return " (undated)"
    return f" ({days} d old)" if days > STALE_DAYS else ""


def engines(pins: Iterable[EnginePin]) -> str:
    rows = [(p.name, p.version, ", ".join(p.tasks), p.image) for p in pins]
    return table(("engine", "version", "tasks", "image"), rows)


def builds(pins: Iterable[BuildPin]) -> str:
    """The images of engines for GPUs of other vendors."""
    rows = [
        (p.engine, p.version, p.vendor, ", ".join(p.architectures), ", ".join(p.tasks), p.image)
        for p in pins
    ]
    return table(("engine", "version", "GPUs of", "architectures", "tasks", "image"), rows)


def components(pins: Iterable[ComponentPin]) -> str:
    """Every release that a source states, the newest first."""
    rows = [
        (p.name, p.version, p.driver or "–", " to ".join(p.kubernetes_tested) or "–", p.repository)
        for p in pins
    ]
    return table(("component", "version", "driver", "Kubernetes", "repository"), rows)


def cuda(pins: Iterable[CudaPin]) -> str:
    return table(("CUDA", "oldest driver"), [(p.name, p.driver) for p in pins])


def show(record: Any, sources: Sequence[CatalogSource], notes: Sequence[str] = ()) -> str:
    """Every fact of a record with its source, then the sources in full."""
    lines = [*_fields(record), ""]
    lines += [f"note: {n}" for n in notes]
    lines += [f"{s.key}: {s.citation}\n    {s.where}" for s in sources]
    return "\n".join(lines).rstrip() + "\n"


def _fields(record: Any) -> Iterator[str]:
    for item in dataclasses.fields(record):
        value = getattr(record, item.name)
        if isinstance(value, Fact):
            shown = format_quantity(value.value, value.unit)
            yield f"{item.name:<{COLUMN}}{shown:<16}{place(value.source)}"
        elif isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
            yield f"{item.name}:"
            yield from (f"  {line}" for line in _rows(value))
        elif value not in (None, ()):
            yield f"{item.name:<{COLUMN}}{_words(item.name, value)}"


def place(source: str) -> str:
    """A source as those read it who know that it is of the catalogue."""
    return source.place if isinstance(source, Citation) else source


def _rows(records: Sequence[Any]) -> Iterator[str]:
    """The name of each record, then the rest of it."""
    first = dataclasses.fields(records[0])[0].name
    column = max(16, *(width(str(getattr(r, first))) + 2 for r in records))
    for record in records:
        yield f"{getattr(record, first):<{column}}{_rest(record, skip=first)}"


def _rest(record: Any, skip: str = "") -> str:
    """What is known of a record, without its sources."""
    values = ((f.name, getattr(record, f.name)) for f in dataclasses.fields(record))
    return ", ".join(
        f"{_title(name)} {_words(name, value)}"
        for name, value in values
        if name not in (skip, "source", "sources") and value not in (None, ())
    )


def _title(name: str) -> str:
    name = name.removesuffix("_per_s").removesuffix("_bytes").removesuffix("_flop")
    return name.replace("_", " ")


def _words(name: str, value: Any) -> str:
    if dataclasses.is_dataclass(value):
        return _rest(value)
    if name.endswith("_bytes"):
        return format_quantity(value, "B")
    if name.endswith("_bytes_per_s"):
        return format_quantity(value, "B/s")
    if name.endswith("_flop_per_s"):
        return format_quantity(value, "FLOP/s")
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
