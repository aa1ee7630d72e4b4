"""Machines for rent and their prices by region, at run time.

`market.json` is compiled beside `compiled.json`; plans read it where nodes are to be bought.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Literal

from gpuplan.catalog.citations import Citations
from gpuplan.catalog.model import CatalogSource, Citation, Price
from gpuplan.frozen import record
from gpuplan.units import MICRO

MARKET = Path(__file__).with_name("market.json")
CapacityKind = Literal["on-demand", "spot"]


@record
class Rdma:
    """`kind`: efa, infiniband, roce or tcpx; `bytes_per_s` is one interface's."""

    kind: str
    interfaces: int
    bytes_per_s: float | None


@record
class Instance:
    """A machine of a provider: `gpus` whole GPUs, or a `fraction` of one (`1/6`) with
    `gpu_memory_bytes`. Cores are physical, drives local NVMe with `nvme_bytes` together;
    `allocatable_*` is what Kubernetes offers to pods; `labels_nodes`: its provider's Kubernetes
    writes `name` into the label node.kubernetes.io/instance-type. None is unknown."""

    provider: str
    name: str
    gpu: str
    gpus: int | None
    fraction: str | None
    gpu_memory_bytes: int | None
    vcpus: int | None
    cores: int | None
    threads_per_core: int | None
    sockets: int | None
    numa_nodes: int | None
    memory_bytes: int | None
    nvme_drives: int | None
    nvme_bytes: int | None
    network_bytes_per_s: float | None
    rdma: Rdma | None
    allocatable_millicores: int | None
    allocatable_memory_bytes: int | None
    labels_nodes: bool
    source: Citation


@record
class RegionPrice:
    """USD per hour of the machine. `date` is when the list was published, or, where it is not
    `dated`, when it was read."""

    provider: str
    instance: str
    region: str
    capacity: CapacityKind
    usd_per_hour: Decimal
    date: str
    dated: bool
    source: Citation


class Market:
    """Instances and prices, sorted by provider, then as their files have them."""

    def __init__(self, tree: dict[str, Any]) -> None:
        self._tree = tree
        self._of_gpu: dict[str, tuple[Instance, ...]] = {}
        self._rates: dict[tuple[str, str], tuple[RegionPrice, ...]] = {}

    def instances(self) -> tuple[Instance, ...]:
        return tuple(
            _instance(row, entry, Citations("instances", name, entry))
            for name, entry in self._tree["instances"].items()
            for row in entry["instances"]
        )

    def prices(self) -> tuple[RegionPrice, ...]:
        return tuple(
            price
            for name, entry in self._tree["rates"].items()
            for price in _prices(entry, Citations("rates", name, entry))
        )

    def regions(self, provider: str) -> tuple[str, ...]:
        """Those that a provider has a price in, sorted."""
        rates = (e["rates"] for e in self._tree["rates"].values() if e["provider"] == provider)
        return tuple(sorted({r for rows in rates for _, *usd, _ in rows for u in usd for r in u}))

    def of_gpu(self, gpu: str) -> tuple[Instance, ...]:
        """The machines with a GPU type, or with a part of one."""
        if gpu not in self._of_gpu:
            self._of_gpu[gpu] = tuple(
                _instance(row, entry, Citations("instances", name, entry))
                for name, entry in self._tree["instances"].items()
                for row in entry["instances"]
                if row["gpu"] == gpu
            )
        return self._of_gpu[gpu]

    def providers(self) -> tuple[str, ...]:
        """Those with a machine, sorted."""
        entries = self._tree["instances"].values()
        return tuple(sorted({e["provider"] for e in entries if e["instances"]}))

    def rates(self, machine: Instance, capacity: CapacityKind) -> tuple[RegionPrice, ...]:
        """The prices of one machine by region."""
        key = (machine.provider, machine.name)
        if key not in self._rates:
            self._rates[key] = tuple(
                price
                for name, entry in self._tree["rates"].items()
                if entry["provider"] == machine.provider
                for price in _prices(entry, Citations("rates", name, entry), machine.name)
            )
        return tuple(price for price in self._rates[key] if price.capacity == capacity)

    def instance(self, name: str) -> tuple[str, Instance, tuple[CatalogSource, ...]] | None:
        """The file of an instance type, the type and the file's sources."""
        for file, entry in self._tree["instances"].items():
            for row in entry["instances"]:
                if row["name"] == name:
                    citations = Citations("instances", file, entry)
                    return file, _instance(row, entry, citations), citations.sources
        return None

    def names(self) -> tuple[str, ...]:
        entries = self._tree["instances"].values()
        return tuple(row["name"] for entry in entries for row in entry["instances"])


@cache
def load_market() -> Market:
    return Market(json.loads(MARKET.read_bytes()))


def _instance(row: dict[str, Any], file: dict[str, Any], citations: Citations) -> Instance:
    nvme, rdma, pods = row.get("nvme", {}), row.get("rdma"), row.get("allocatable", {})
    plain = ("gpus", "fraction", "vcpus", "cores", "threads_per_core", "sockets", "numa_nodes")
    cpu = pods.get("cpu")
    return Instance(
        provider=file["provider"],
        name=row["name"],
        gpu=row["gpu"],
        **{field: row.get(field) for field in plain},
        gpu_memory_bytes=row.get("gpu_memory"),
        memory_bytes=row.get("memory"),
        nvme_drives=nvme.get("count"),
        nvme_bytes=nvme.get("size"),
        network_bytes_per_s=row.get("network"),
        rdma=rdma
        and Rdma(kind=rdma["kind"], interfaces=rdma["interfaces"], bytes_per_s=rdma.get("rate")),
        allocatable_millicores=int(cpu.removesuffix("m")) if cpu else None,
        allocatable_memory_bytes=pods.get("memory"),
        labels_nodes="labels_nodes" in file,
        source=citations.of(row["source"], row["name"]),
    )


def _prices(
    entry: dict[str, Any], citations: Citations, only: str | None = None
) -> Iterator[RegionPrice]:
    for name, on_demand, spot, key in entry["rates"]:
        if only not in (None, name):
            continue
        source = citations.source(key)
        kinds: tuple[tuple[CapacityKind, dict[str, str]], ...] = (
            ("on-demand", on_demand),
            ("spot", spot),
        )
        for capacity, regions in kinds:
            for region, usd in regions.items():
                yield RegionPrice(
                    provider=entry["provider"],
                    instance=name,
                    region=region,
                    capacity=capacity,
                    usd_per_hour=Decimal(usd),
                    date=source.date,
                    dated=source.published,
                    source=citations.of(key, name),
                )


def of_one_gpu(price: RegionPrice, machine: Instance) -> Price:
    """The price of one GPU with its share of the machine."""
    each = (
        price.usd_per_hour / machine.gpus if machine.gpus else price.usd_per_hour * parts(machine)
    )
    return Price(
        gpu=machine.gpu,
        usd_per_hour=each.quantize(MICRO).normalize(),
        provider=price.provider,
        region=price.region,
        date=price.date,
        source=price.source,
        dated=price.dated,
        instance=price.instance,
        capacity=price.capacity,
    )


def parts(machine: Instance) -> int:
    """Into how many parts its GPU is cut."""
    return int((machine.fraction or "1/1").removeprefix("1/"))
