"""Machines that a provider rents, and what they cost by region."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gpuplan.catalog.documents.base import (
    Bytes,
    Count,
    File,
    Identifier,
    Rate,
    Strict,
    Usd,
    unique,
)

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]*$", max_length=63)]
Fraction = Annotated[str, Field(pattern=r"^1/[2-9]$")]


class Drives(Strict):
    """Local NVMe: `size` is of all `count` drives together."""

    count: Count | None = None
    size: Bytes | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.count is None and self.size is None:
            raise ValueError("nvme has a count or a size")
        return self


class Rdma(Strict):
    """Interfaces for traffic between GPUs of several machines; `rate` is one interface's."""

    kind: Literal["efa", "infiniband", "roce", "tcpx"]
    interfaces: Count
    rate: Rate | None = None


class Allocatable(Strict):
    """What Kubernetes offers to pods on the machine."""

    cpu: Annotated[str, Field(pattern=r"^[0-9]+m$")]
    memory: Bytes
    gpus: Count | None = None


class InstanceDocument(Strict):
    """`gpus` whole GPUs, or a `fraction` of one with `gpu_memory`. Cores are physical."""

    name: Name
    gpu: Identifier
    gpus: Count | None = None
    fraction: Fraction | None = None
    gpu_memory: Bytes | None = None
    vcpus: Count | None = None
    cores: Count | None = None
    threads_per_core: Literal[1, 2] | None = None
    sockets: Count | None = None
    numa_nodes: Count | None = None
    memory: Bytes | None = None
    nvme: Drives | None = None
    network: Rate | None = None
    rdma: Rdma | None = None
    allocatable: Allocatable | None = None
    source: str

    @model_validator(mode="after")
    def _of_a_piece(self) -> Self:
        if (self.gpus is None) == (self.fraction is None):
            raise ValueError(f"{self.name}: whole gpus, or a fraction of one")
        if self.cores and self.vcpus and self.vcpus > self.cores * (self.threads_per_core or 2):
            raise ValueError(f"{self.name}: {self.vcpus} vCPUs on {self.cores} cores")
        offered = self.allocatable
        if offered and self.memory and offered.memory > self.memory:
            raise ValueError(f"{self.name}: more memory for pods than there is")
        return self


class InstanceFile(File):
    """The machines of one provider. `labels_nodes`: the source that says that its Kubernetes writes
    their names into the label node.kubernetes.io/instance-type."""

    kind: Literal["instances"]
    provider: Identifier
    labels_nodes: str | None = None
    instances: Annotated[list[InstanceDocument], Field(min_length=1)]

    def cited(self) -> Iterable[str]:
        yield from filter(None, (self.labels_nodes,))
        yield from (x.source for x in self.instances)

    @model_validator(mode="after")
    def _once(self) -> Self:
        unique("instance", (x.name for x in self.instances))
        return self


class RateDocument(Strict):
    """Prices of a machine by region, on demand and on spare capacity, of one source: of several the
    machine has several rows."""

    instance: Name
    on_demand: dict[Identifier, Usd] = {}
    spot: dict[Identifier, Usd] = {}
    source: str


class RateFile(File):
    """Prices of one provider's machines. Placeholders (0, 700) are not prices."""

    kind: Literal["rates"]
    provider: Identifier
    rates: Annotated[list[RateDocument], Field(min_length=1)]

    def cited(self) -> Iterable[str]:
        return (x.source for x in self.rates)

    @model_validator(mode="after")
    def _real(self) -> Self:
        unique("price", (f"{x.instance} on demand in {r}" for x in self.rates for r in x.on_demand))
        unique("price", (f"{x.instance} spot in {r}" for x in self.rates for r in x.spot))
        for x in self.rates:
            for price in (*x.on_demand.values(), *x.spot.values()):
                if not 0 < price < 700:
                    raise ValueError(f"{x.instance}: {price} is not an hourly price")
        return self
