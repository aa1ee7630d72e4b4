"""A server with GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, model_validator

from gpuplan.catalog.documents.base import (
    Bytes,
    Count,
    FactDocument,
    File,
    Identifier,
    Rate,
    Strict,
    Watts,
)

Index = Annotated[int, Field(ge=0)]


class NodeNics(Strict):
    """Equal network cards. `rate` is one direction of one card as it is used here."""

    nic: Identifier
    count: Count
    purpose: Literal["compute", "storage", "management"] | None = None
    rate: FactDocument[Rate] | None = None
    source: str


class NodeDrives(Strict):
    """Equal drives."""

    count: Count
    size: Bytes
    purpose: Literal["boot", "data"] | None = None
    form: str | None = None
    source: str


class PcieSwitch(Strict):
    """GPUs and compute cards below one PCIe switch, by their number in the node."""

    gpus: list[Index] = []
    nics: list[Index] = []


class Topology(Strict):
    """`numa_nodes` lists the GPUs of each NUMA node; compute card N is on rail N."""

    numa_nodes: list[list[Index]]
    switches: list[PcieSwitch] = []
    source: str


class PowerSupplies(Strict):
    """`spare` of the `count` may fail before the node has less than it needs."""

    count: Count
    power: Watts
    spare: Index | None = None
    source: str


class MeasuredPower(Strict):
    """Of the whole node, under a named load."""

    power: Watts
    load: str
    source: str


class NodeFile(File):
    """Cores are physical; `power` is the most that the whole node draws. `reference` makes it the
    node that stands for its GPU where neither inventory nor manifest describes one. `nvlink_nodes`:
    of so many such nodes NVLink joins all GPUs."""

    kind: Literal["node"]
    name: str | None = None
    vendor: str | None = None
    reference: bool = False
    gpu: Identifier
    gpus: Count
    sockets: Count
    cpu_cores: Count
    memory: Bytes
    numa_nodes: Count | None = None
    cpu: FactDocument[str] | None = None
    threads_per_core: FactDocument[Count] | None = None
    interconnect: FactDocument[str] | None = None
    nvlink_nodes: FactDocument[Count] | None = None
    nics: list[NodeNics] = []
    drives: list[NodeDrives] = []
    topology: Topology | None = None
    power: FactDocument[Watts] | None = None
    power_supplies: PowerSupplies | None = None
    measured_power: list[MeasuredPower] = []
    rack_units: FactDocument[Count] | None = None
    cooling: FactDocument[Literal["air", "liquid", "air and liquid"]] | None = None
    source: str

    def cited(self) -> Iterable[str]:
        yield self.source
        for field in type(self).model_fields:
            yield from _sources(getattr(self, field))

    @model_validator(mode="after")
    def _plausible(self) -> Self:
        if self.cpu_cores % self.sockets:
            raise ValueError(f"{self.cpu_cores} cores do not divide by {self.sockets} sockets")
        if self.reference and self.numa_nodes is None:
            raise ValueError("a reference node needs numa_nodes")
        if self.topology:
            self._check_topology(self.topology)
        if self.power and self.power_supplies:
            self._check_supplies(self.power_supplies, self.power.value)
        return self

    def _check_topology(self, topology: Topology) -> None:
        placed = sorted(gpu for gpus in topology.numa_nodes for gpu in gpus)
        if placed != list(range(self.gpus)):
            raise ValueError(f"topology: the NUMA nodes do not have each of {self.gpus} GPUs once")
        if self.numa_nodes and len(topology.numa_nodes) != self.numa_nodes:
            raise ValueError(f"topology: {len(topology.numa_nodes)} NUMA nodes, not numa_nodes")
        cards = sum(n.count for n in self.nics if n.purpose == "compute")
        below = {"gpus": self.gpus, "nics": cards}
        for devices, count in below.items():
            numbers = [n for s in topology.switches for n in getattr(s, devices)]
            if len(set(numbers)) < len(numbers) or any(n >= count for n in numbers):
                raise ValueError(
                    f"topology: the switches do not have each of {count} {devices} once"
                )

    def _check_supplies(self, supplies: PowerSupplies, watts: float) -> None:
        spare = supplies.spare or 0
        if spare >= supplies.count or supplies.power * (supplies.count - spare) < watts:
            raise ValueError(f"power_supplies give less than the node's {watts:g} W")


def _sources(value: object) -> Iterator[str]:
    """The sources that a field's value names."""
    if isinstance(value, list):
        for item in value:
            yield from _sources(item)
    elif isinstance(value, BaseModel):
        source = getattr(value, "source", None)
        if isinstance(source, str):
            yield source
        if isinstance(value, NodeNics):
            yield from _sources(value.rate)
