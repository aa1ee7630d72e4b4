"""What a provider's managed Kubernetes runs, grants and has in its machines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gpuplan.catalog.documents.base import Count, Day, File, Identifier, Minor, Strict, unique

LowerName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]


class NodeImageDocument(Strict):
    """A release of the image of nodes with GPUs, by its provider's name, and the GPU driver that is
    in it."""

    release: Annotated[str, Field(pattern=r"^1\.[0-9]+\.[0-9]+-[0-9]{8}$")]
    driver: Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)+$")]
    source: str


class AddonsDocument(Strict):
    """Versions of a cluster's add-ons that its provider had together, by the add-on."""

    versions: Annotated[dict[LowerName, str], Field(min_length=1)]
    source: str


class CloudReleaseDocument(Strict):
    """A minor release of Kubernetes, and the last days of its standard support, and of its extended
    one where a source states it; likewise the image of its nodes and its add-ons."""

    version: Minor
    standard_until: Day
    extended_until: Day | None = None
    source: str
    image: NodeImageDocument | None = None
    addons: AddonsDocument | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.extended_until and self.standard_until > self.extended_until:
            raise ValueError(f"{self.version}: extended support ends before standard support")
        if self.image and not self.image.release.startswith(f"{self.version}."):
            raise ValueError(f"{self.version}: its nodes' image is of {self.image.release}")
        return self


class QuotaDocument(Strict):
    """How much an account may run of instance types that begin as one of `families` does, without
    any of all GPU machines. `source` states the name, `code_source` the code."""

    name: str
    code: Annotated[str, Field(pattern=r"^L-[0-9A-F]{8}$")] | None = None
    families: list[Annotated[str, Field(min_length=1)]]
    unit: Literal["vCPUs", "GPUs"] = "vCPUs"
    capacity: Literal["on-demand", "spot", "any"]
    source: str
    code_source: str | None = None


class InterfacesDocument(Strict):
    """Network cards of a machine for traffic between GPUs. On AWS the `first` carries IP, with EFA
    or without, and each other one has an interface that is EFA alone. `rdma`: all of them are for
    RDMA alone, and IP has a card beside them."""

    instance: LowerName
    cards: Count
    first: Literal["efa", "interface", "rdma"]
    source: str


class NumaDocument(Strict):
    """NUMA nodes of a machine."""

    instance: LowerName
    nodes: Count
    source: str


class AcceleratorDocument(Strict):
    """What a provider calls the GPUs of instance types that begin as one of `families` does."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    families: Annotated[list[LowerName], Field(min_length=1)]
    source: str


class CapacityDocument(Strict):
    """A machine that can be had in these ways alone."""

    instance: LowerName
    only: Annotated[list[Literal["spot", "flex-start", "reserved"]], Field(min_length=1)]
    source: str


class DrivesDocument(Strict):
    """Local drives that a machine comes with, where the list of instances has none."""

    instance: LowerName
    count: Count
    source: str


class TemporaryDiskDocument(Strict):
    """The drive of a machine itself that its operating system can lie on."""

    instance: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    gib: Count
    source: str


class OwnDriverDocument(Strict):
    """A machine on which only the driver of the provider's own images installs."""

    instance: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    source: str


class CloudFile(File):
    """One provider."""

    kind: Literal["clouds"]
    provider: Identifier
    releases: Annotated[list[CloudReleaseDocument], Field(min_length=1)]
    quotas: list[QuotaDocument] = []
    interfaces: list[InterfacesDocument] = []
    numa: list[NumaDocument] = []
    accelerators: list[AcceleratorDocument] = []
    capacities: list[CapacityDocument] = []
    drives: list[DrivesDocument] = []
    temporary_disks: list[TemporaryDiskDocument] = []
    own_drivers: list[OwnDriverDocument] = []

    def cited(self) -> Iterable[str]:
        for rows in (self.releases, self.quotas, self.interfaces, self.numa):
            yield from (row.source for row in rows)
        for release in self.releases:
            yield from (part.source for part in (release.image, release.addons) if part)
        for names in (self.accelerators, self.capacities, self.drives, self.temporary_disks):
            yield from (row.source for row in names)
        yield from (row.source for row in self.own_drivers)
        yield from (quota.code_source for quota in self.quotas if quota.code_source)

    @model_validator(mode="after")
    def _once(self) -> Self:
        unique("release", (r.version for r in self.releases))
        unique("quota", (q.name for q in self.quotas))
        unique("machine", (i.instance for i in self.interfaces))
        unique("machine", (n.instance for n in self.numa))
        unique("machine", (c.instance for c in self.capacities))
        unique("machine", (d.instance for d in self.drives))
        unique("machine", (t.instance for t in self.temporary_disks))
        unique("machine", (o.instance for o in self.own_drivers))
        unique("family", (f for a in self.accelerators for f in a.families))
        return self
