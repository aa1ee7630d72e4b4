"""Servers, network cards, storage classes and running costs for people: lists, and all of one."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from gpuplan.catalog.hardware import Amount, Flag, Host, Names, Nic, Range, StorageClass, WordedFact
from gpuplan.catalog.load import Catalog
from gpuplan.catalog.model import CatalogSource, Fact
from gpuplan.report.facts.catalog import place, table
from gpuplan.units import format_bytes, format_quantity, format_rate

NONE = "–"


def nodes(hosts: Iterable[Host]) -> str:
    """Reference nodes have a `*`."""
    rows = [
        (
            f"{h.identifier}{' *' if h.reference else ''}",
            f"{h.gpus} × {h.gpu}",
            h.cpu.value if h.cpu else NONE,
            str(h.cpu_cores),
            format_bytes(h.memory_bytes),
            str(h.numa_nodes or NONE),
            _fact(h.watts),
        )
        for h in hosts
    ]
    head = ("node", "GPUs", "CPU", "cores", "memory", "NUMA nodes", "power")
    return table(head, rows) + "* stands for its GPU where nothing describes a node\n"


def nics(cards: Iterable[Nic]) -> str:
    rows = [
        (
            n.identifier,
            ", ".join(n.pci_ids.values),
            _bits(n.bytes_per_s),
            ", ".join(n.rdma.values) if n.rdma else NONE,
            _fact(n.vf_limit),
            _flag(n.sriov_operator),
            _flag(n.switchdev),
        )
        for n in cards
    ]
    head = ("card", "PCI ids", "rate", "RDMA", "functions", "SR-IOV operator", "switchdev")
    return table(head, rows) + "functions: of one port at most; sriov_totalvfs of a card decides\n"


def storage(classes: Iterable[StorageClass]) -> str:
    rows = [
        (
            s.identifier,
            s.provisioner.value,
            ", ".join(s.access_modes.values),
            _fact(s.iops_maximum),
            _throughput(s.bytes_per_s_maximum, s.bytes_per_s_per_tib),
            f"{s.usd_per_gb_month.value:f}" if s.usd_per_gb_month else "unpriced",
        )
        for s in classes
    ]
    head = ("class", "provisioner", "access", "IOPS", "throughput", "USD/GB/month")
    return table(head, rows)


def _throughput(most: Fact | None, per_tib: Fact | None) -> str:
    if most:
        return format_rate(most.value)
    return f"{format_rate(per_tib.value)} a TiB" if per_tib else NONE


def ranges(inputs: Iterable[Range]) -> str:
    """The rows that `default` marks have a `*`."""
    rows = [
        (
            f"{r.item}{' *' if r.default else ''}",
            _number(r.low),
            _number(r.typical),
            _number(r.high),
            r.unit,
            r.when,
            r.status,
            r.about,
        )
        for r in inputs
    ]
    head = ("item", "low", "typical", "high", "unit", "of", "status", "about")
    return table(head, rows) + "* proposed where nothing is known; all are inputs, not facts\n"


def _bits(rate: Fact | None) -> str:
    """Networks are sold by bits."""
    return f"{rate.value * 8 / 1e9:g} Gb/s" if rate else NONE


def _number(value: Decimal | None) -> str:
    if value is None:
        return NONE
    return f"{value:,f}" if value == value.to_integral_value() else f"{value:f}"


def _fact(fact: Fact | None) -> str:
    return format_quantity(fact.value, fact.unit) if fact else NONE


def _flag(flag: Flag | None) -> str:
    return NONE if flag is None else "yes" if flag.value else "no"


def show(record: Any, sources: Sequence[CatalogSource], notes: Sequence[str] = ()) -> str:
    """Every field of a record with its source, then the sources in full."""
    lines = [*_lines(record), ""]
    lines += [f"note: {n}" for n in notes]
    lines += [f"{s.key}: {s.citation}\n    {s.where}" for s in sources]
    return "\n".join(lines).rstrip() + "\n"


def cost(row: Range) -> str:
    """One input of a cost calculation with its label."""
    return "\n".join(_lines(row)) + "\n"


def short_memory(host: Host, catalog: Catalog) -> tuple[str, ...]:
    """A note where a host has less memory than its GPUs together."""
    gpu = catalog.gpu(host.gpu)
    total = host.gpus * gpu.memory_bytes.value if gpu else 0.0
    if host.memory_bytes >= total:
        return ()
    have, need = format_bytes(host.memory_bytes), format_bytes(total)
    return (f"The host has {have} of memory, its GPUs {need}: models do not fit its page cache.",)


def _lines(record: Any) -> Iterator[str]:
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if value in (None, ()):
            continue
        if isinstance(value, tuple) and dataclasses.is_dataclass(value[0]):
            yield f"{field.name}:"
            yield from (f"  {_text(v):<38}{_source(v)}".rstrip() for v in value)
        else:
            yield f"{field.name:<22}{_text(value, field.name):<18}{_source(value)}".rstrip()


def _source(value: Any) -> str:
    source = getattr(value, "source", "")
    return "  " + place(source) if source else ""


def _text(value: Any, name: str = "") -> str:
    """A value in words, with its unit."""
    if isinstance(value, Fact):
        return _bits(value) if name == "bytes_per_s" else format_quantity(value.value, value.unit)
    if isinstance(value, WordedFact | Flag | Amount):
        return str(value.value)
    if isinstance(value, Names):
        return ", ".join(value.values)
    if isinstance(value, tuple):
        return ", ".join("=".join(v) if isinstance(v, tuple) else _text(v) for v in value)
    if dataclasses.is_dataclass(value):
        return _compact(value)
    if name == "size_bytes":  # drives are sold by decimal bytes
        return f"{value / 1e12:g} TB"
    if name.endswith("_bytes"):
        return format_bytes(value)
    return format_quantity(value, "W") if name == "watts" else str(value)


def _compact(record: Any) -> str:
    """`8 × connectx-7, compute, 50 GB/s`; lists of GPUs as `[0, 1] [2, 3]`."""
    parts = []
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if field.name == "source" or value is None or value == ():
            continue
        if field.name in ("numa_nodes", "switches", "gpus", "nics", "spare"):
            parts.append(f"{field.name.replace('_', ' ')} {_group(value)}")
        else:
            parts.append(f"{value} ×" if field.name == "count" else _text(value, field.name))
    return ", ".join(sorted(parts, key=lambda part: not part.endswith("×"))).replace("×, ", "× ")


def _group(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(f"[{_group(v)}]" if not isinstance(v, int) else str(v) for v in value)
    return _compact(value) if dataclasses.is_dataclass(value) else str(value)
