"""Where a provider's machines are ordered, and what it says of its nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gpuplan.catalog.documents.base import File, Identifier, Strict

Sentence = Annotated[str, Field(min_length=10, max_length=400)]


class StatementDocument(Strict):
    """What the source says of the provider's nodes, in one or two sentences."""

    about: Sentence
    source: str


class DriverStatement(StatementDocument):
    """Who installs the GPU driver in its Kubernetes: the `provider` alone, its customer (`nobody`
    else does), or as one chooses."""

    by: Literal["provider", "nobody", "choice"]


class LinksDocument(Strict):
    """Pages of the provider, each by the key of its source, which has title, address and day."""

    machines: str | None = None
    prices: str | None = None
    quotas: str | None = None
    capacity: str | None = None
    kubernetes: str | None = None
    network: str | None = None
    disks: str | None = None
    spot: str | None = None


class ProviderFile(File):
    """One provider. `node_pools`: what a manifest of its node pools is, where they are objects of
    Kubernetes."""

    kind: Literal["provider"]
    provider: Identifier
    name: Annotated[str, Field(min_length=2, max_length=60)]
    links: LinksDocument
    machines: StatementDocument | None = None
    driver: DriverStatement | None = None
    network: StatementDocument | None = None
    disks: StatementDocument | None = None
    quotas: StatementDocument | None = None
    node_pools: Literal["compute.coreweave.com/v1alpha1"] | None = None
    node_pools_source: str | None = None

    def cited(self) -> Iterable[str]:
        yield from (key for _, key in self.links if key)
        parts = (self.machines, self.driver, self.network, self.disks, self.quotas)
        yield from (part.source for part in parts if part)
        yield from filter(None, (self.node_pools_source,))

    @model_validator(mode="after")
    def _readable(self) -> Self:
        for _, key in self.links:
            if key and key in self.sources and self.sources[key].url is None:
                raise ValueError(f"{key}: what people open has a url")
        if (self.node_pools is None) != (self.node_pools_source is None):
            raise ValueError("node_pools has a source")
        return self
