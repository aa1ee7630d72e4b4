"""The part of the catalogue that is about servers, network cards, storage and running costs.

`hardware.json` is compiled beside `compiled.json`; plans read servers of it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from gpuplan.catalog import build
from gpuplan.catalog.citations import Citations
from gpuplan.catalog.hardware import Host, Nic, Range, StorageClass
from gpuplan.catalog.model import Fact, NodeTemplate, Price

HARDWARE = Path(__file__).with_name("hardware.json")
HARDWARE_FOLDERS = ("nodes", "nics", "storage", "power", "purchase")
Cost = Literal["power", "purchase"]


class HardwareLookup(ABC):
    """Records by identifier; unknown identifiers are None, never an error."""

    def __init__(self, hardware: dict[str, Any] | None = None) -> None:
        self._given = hardware

    @cached_property
    def _hardware(self) -> dict[str, Any]:
        """The content of `hardware.json`, read when it is first asked for."""
        return self._given or dict(json.loads(HARDWARE.read_bytes()))

    @property
    @abstractmethod
    def gpu_ids(self) -> tuple[str, ...]:
        """All GPU types."""

    @abstractmethod
    def prices(self, gpu: str) -> tuple[Price, ...]:
        """Every on-demand listing of the GPU type, cheapest first."""

    def host(self, identifier: str) -> Host | None:
        """A server with all that is known of it."""
        entry = self._hardware["nodes"].get(identifier)
        return entry and build.host(identifier, entry, Citations("nodes", identifier, entry).of)

    def hosts(self, gpu: str | None = None) -> tuple[Host, ...]:
        """All servers, or those with one GPU type, by identifier."""
        return tuple(
            build.host(name, entry, Citations("nodes", name, entry).of)
            for name, entry in self._hardware["nodes"].items()
            if gpu in (None, entry["gpu"])
        )

    def node_watts(self, name: str | None, gpu: str, gpus: int) -> Fact | None:
        """The most that the server called `name` draws, if it is one with such GPUs and a source
        says it."""
        entry = self._hardware["nodes"].get(name)
        if entry is None or (entry["gpu"], entry["gpus"]) != (gpu, gpus) or "power" not in entry:
            return None
        power = entry["power"]
        source = Citations("nodes", str(name), entry).of(power["source"], "power")
        return Fact(value=power["value"], unit="W", source=source)

    def templates(self, gpu: str) -> tuple[NodeTemplate, ...]:
        """Every server with a GPU type, as plans read it, by identifier."""
        return tuple(
            NodeTemplate(
                **{name: entry[name] for name in ("gpu", "gpus", "sockets", "cpu_cores")},
                identifier=identifier,
                memory_bytes=entry["memory"],
                numa_nodes=entry.get("numa_nodes"),
                nvlink_nodes=entry.get("nvlink_nodes", {}).get("value"),
                source=Citations("nodes", identifier, entry).of(entry["source"]),
            )
            for identifier, entry in self._hardware["nodes"].items()
            if entry["gpu"] == gpu
        )

    def nic(self, identifier: str) -> Nic | None:
        entry = self._hardware["nics"].get(identifier)
        return entry and build.nic(identifier, entry, Citations("nics", identifier, entry).of)

    def nic_by_pci(self, pci_id: str) -> Nic | None:
        """The card whose physical function has the PCI id `vendor:device`, in any case. Virtual
        functions of several families share an id, so that they are not looked up."""
        wanted = pci_id.lower()
        for name, entry in self._hardware["nics"].items():
            if wanted in entry["pci_ids"]["value"]:
                return self.nic(name)
        return None

    def storage_class(self, identifier: str) -> StorageClass | None:
        entry = self._hardware["storage"].get(identifier)
        if entry is None:
            return None
        return build.storage_class(identifier, entry, Citations("storage", identifier, entry).of)

    def ranges(self, cost: Cost) -> tuple[Range, ...]:
        """Inputs of cost calculations with their labels, file by file."""
        return tuple(
            build.range_of(row, Citations(cost, name, entry).of)
            for name, entry in self._hardware[cost].items()
            for row in entry["ranges"]
        )

    def range_of(self, cost: Cost, item: str) -> Range | None:
        rows = (*self.ranges(cost), *(self.rentals() if cost == "purchase" else ()))
        return next((row for row in rows if row.item == item), None)

    def rental(self, gpu: str) -> Range | None:
        """USD an hour of one GPU on demand: the cheapest, the median and the dearest listing.
        `when` is the day of the newest; listings without a date have the day they were read."""
        listings = self.prices(gpu)
        if not listings:
            return None
        undated = sum(not price.dated for price in listings)
        return Range(
            item=f"rent-{gpu}",
            about=f"on demand, listings: {len(listings)}, undated: {undated}",
            gpu=gpu,
            node=None,
            region=None,
            unit="USD/hour",
            low=listings[0].usd_per_hour,
            typical=listings[(len(listings) - 1) // 2].usd_per_hour,
            high=listings[-1].usd_per_hour,
            when=max(price.date for price in listings),
            status="list",
            default=True,
            sources=tuple(dict.fromkeys(price.source for price in (listings[0], listings[-1]))),
        )

    def rentals(self) -> tuple[Range, ...]:
        """What GPUs are rented for, where there is a listing."""
        return tuple(rental for gpu in self.gpu_ids if (rental := self.rental(gpu)))
