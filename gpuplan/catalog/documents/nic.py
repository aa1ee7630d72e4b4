"""A network card."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from gpuplan.catalog.documents.base import Count, FactDocument, File, PciId, Rate

RdmaProtocol = Literal["infiniband", "roce-v2", "iwarp", "srd"]


class NicFile(File):
    """One family of cards. `rate` is the fastest that a card of it has, one direction. `vf_limit`
    is the most virtual functions of one physical function that the documentation names: what a
    machine has is in its `sriov_totalvfs`."""

    kind: Literal["nic"]
    name: str
    vendor: str
    pci_ids: FactDocument[Annotated[list[PciId], Field(min_length=1)]]
    vf_pci_id: FactDocument[PciId] | None = None
    driver: FactDocument[str] | None = None
    rate: FactDocument[Rate] | None = None
    ports: FactDocument[Count] | None = None
    links: FactDocument[list[Literal["infiniband", "ethernet"]]] | None = None
    rdma: FactDocument[list[RdmaProtocol]] | None = None
    vf_limit: FactDocument[Count] | None = None
    sriov_operator: FactDocument[bool] | None = None
    switchdev: FactDocument[bool] | None = None

    def cited(self) -> Iterable[str]:
        for field in type(self).model_fields:
            value = getattr(self, field)
            if isinstance(value, FactDocument):
                yield value.source
