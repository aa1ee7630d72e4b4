"""The catalogue for people: lists, and every fact of one entry with its source."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Any

from gpuplan.catalog.load import Catalog
from gpuplan.catalog.model import CatalogSource, Fact, Gpu, Price
from gpuplan.report.paint import width
from gpuplan.units import format_quantity, format_usd

STALE_DAYS = 90


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns as wide as their content, no trailing spaces."""
    lines = [head, *rows]
    widths = [max(width(row[i]) for row in lines) for i in range(len(head))]
    return "".join(
        "  ".join(c + " " * (w - width(c)) for c, w in zip(row, widths, strict=True)).rstrip()
        + "\n"
        for row in lines
    )


def gpus(catalog: Catalog, as_of: date, only: str = "") -> str:
    rows = []
    for name in (n for n in catalog.gpu_ids if only in n):
        gpu = catalog.gpu(name)
        assert gpu is not None
        rows.append(_gpu_row(gpu, catalog, as_of))
    head = ("GPU", "memory", "bandwidth", "bf16", "fp8", "NVLink", "power", "MIG", "USD/h")
    return table(head, rows)


def _gpu_row(gpu: Gpu, catalog: Catalog, as_of: date) -> tuple[str, ...]:
    price = catalog.price(gpu.identifier)
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


def _when(price: Price, as_of: date) -> str:
    days = (as_of - date.fromisoformat(price.date)).days
    return f"{price.date} ({days} d old)" if price.dated else f"undated, read {price.date}"


def prices(catalog: Catalog, as_of: date, only: str = "") -> str:
    rows = [
        (
            gpu,
            format_usd(p.usd_per_hour),
            p.provider,
            p.instance or "–",
            p.region or "–",
            _when(p, as_of),
        )
        for gpu in catalog.gpu_ids
        if only in gpu
        for p in catalog.prices(gpu)
    ]
    return table(("GPU", "USD/h each", "provider", "instance", "region", "date"), rows)


def nodes(catalog: Catalog, only: str = "") -> str:
    found = (catalog.node(g) for g in catalog.gpu_ids)
    rows = [
        (
            n.identifier,
            f"{n.gpus} × {n.gpu}",
            str(n.cpu_cores),
            format_quantity(n.memory_bytes, "B"),
            str(n.numa_nodes),
        )
        for n in found
        if n and only in n.identifier
    ]
    return table(("node", "GPUs", "cores", "memory", "NUMA nodes"), sorted(rows))


def engines(catalog: Catalog, only: str = "") -> str:
    pins = (catalog.engine(n) for n in catalog.ids("engines"))
    rows = [(p.name, p.version, ", ".join(p.tasks), p.image) for p in pins if p and only in p.name]
    return table(("engine", "version", "tasks", "image"), rows)


def components(catalog: Catalog, only: str = "") -> str:
    pins = (catalog.component(n) for n in catalog.ids("components"))
    rows = [(p.name, p.version, p.repository) for p in pins if p and only in p.name]
    return table(("component", "version", "repository"), rows)


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
            yield f"{item.name:<22}{shown:<16}{value.source.removeprefix('catalog: ')}"
        elif isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
            yield f"{item.name}:"
            yield from (f"  {_compact(v)}" for v in value)
        elif value not in (None, ()):
            yield f"{item.name:<22}{', '.join(value) if isinstance(value, tuple) else value}"


def _compact(record: Any) -> str:
    fields = dataclasses.fields(record)
    name, *rest = ((f.name, getattr(record, f.name)) for f in fields if f.name != "source")
    parts = (
        f"{k.replace('_bytes', '').replace('_', ' ')} "
        + (format_quantity(v, "B") if k.endswith("_bytes") else str(v).strip("()"))
        for k, v in rest
        if v is not None
    )
    return f"{name[1]:<16}{', '.join(parts)}"
