"""Machines for rent and prices by region, for people."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from gpuplan.catalog.market import Instance, RegionPrice
from gpuplan.catalog.model import Price
from gpuplan.report.facts.catalog import table
from gpuplan.units import format_bytes, format_usd

NONE = "–"


def instances(offers: Iterable[tuple[Instance, RegionPrice | None]], as_of: date) -> str:
    rows = [_instance(machine, price, as_of) for machine, price in offers]
    head = ("instance", "provider", "GPUs", "vCPUs", "memory", "NVMe", "network", "USD/h", "in")
    return table(head, rows)


def _instance(machine: Instance, price: RegionPrice | None, as_of: date) -> tuple[str, ...]:
    return (
        machine.name,
        machine.provider,
        f"{machine.fraction or machine.gpus} × {machine.gpu}",
        str(machine.vcpus or NONE),
        format_bytes(machine.memory_bytes) if machine.memory_bytes else NONE,
        _nvme(machine),
        _network(machine),
        format_usd(price.usd_per_hour) if price else NONE,
        f"{price.region} ({_age(price, as_of)})" if price else NONE,
    )


def _nvme(machine: Instance) -> str:
    if machine.nvme_bytes:
        return f"{machine.nvme_bytes / 1e12:g} TB"
    return f"{machine.nvme_drives} drives" if machine.nvme_drives else NONE


def _network(machine: Instance) -> str:
    """Gigabits per second, of one interface where RDMA says it."""
    rdma = machine.rdma
    if rdma is None:
        return _gigabits(machine.network_bytes_per_s)
    if rdma.bytes_per_s:
        return f"{rdma.interfaces} × {_gigabits(rdma.bytes_per_s)} {rdma.kind}"
    return f"{_gigabits(machine.network_bytes_per_s)}, {rdma.interfaces} {rdma.kind}"


def _gigabits(bytes_per_s: float | None) -> str:
    return f"{bytes_per_s * 8 / 1e9:g}G" if bytes_per_s else NONE


def prices(quotes: Iterable[Price], as_of: date) -> str:
    rows = [
        (
            p.gpu,
            format_usd(p.usd_per_hour),
            p.capacity,
            p.provider,
            p.instance or NONE,
            p.region or NONE,
            when(p, as_of),
        )
        for p in quotes
    ]
    head = ("GPU", "USD/h each", "capacity", "provider", "instance", "region", "date")
    return table(head, rows)


def when(price: Price, as_of: date) -> str:
    """`2026-07-20 (10 d old)`, or the day on which an undated list was read."""
    if not price.dated:
        return f"undated, read {price.date}"
    return f"{price.date} ({_age(price, as_of)} old)"


def _age(price: Price | RegionPrice, as_of: date) -> str:
    if not price.dated:
        return "undated"
    return f"{(as_of - date.fromisoformat(price.date)).days} d"
