"""What a provider charges beside machines, what a commitment to a machine costs, and how much
carbon a kilowatt-hour of its regions means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gpuplan.catalog.documents.base import File, Identifier, Strict, unique
from gpuplan.catalog.documents.instance import Name
from gpuplan.catalog.documents.ranges import Moment
from gpuplan.catalog.documents.storage import Number
from gpuplan.catalog.tariffs import ChargeItem

ChargeUnit = Literal["USD/hour", "USD/machine/hour", "USD/GB", "USD/GB/month", "USD/year"]
Term = Literal["1y", "3y"]


class ChargeDocument(Strict):
    """A price of `item`. `from_gb` is the volume of a month from which a price of traffic holds;
    the tiers of an item ascend. `region`: where it holds, of one that differs by region. `most`: of
    what is paid by machine, however many there are."""

    item: ChargeItem
    about: str
    unit: ChargeUnit
    price: Number
    from_gb: Annotated[int, Field(ge=0)] = 0
    most: Number | None = None
    region: Identifier | None = None
    when: Moment
    source: str

    @model_validator(mode="after")
    def _by_machine(self) -> Self:
        if self.most is not None and self.unit != "USD/machine/hour":
            raise ValueError(f"{self.item}: the most is of what is paid by machine")
        return self


class ChargesFile(File):
    """What one provider charges beside machines. What is not here is unpriced, never free."""

    kind: Literal["charges"]
    provider: Identifier
    charges: Annotated[list[ChargeDocument], Field(min_length=1)]

    def cited(self) -> Iterable[str]:
        return (x.source for x in self.charges)

    @model_validator(mode="after")
    def _tiers(self) -> Self:
        unique("charge", (f"{x.item} from {x.from_gb} GB" for x in self.charges))
        return self


class CommitmentDocument(Strict):
    """What a machine costs by region for who commits to it: USD an hour of the term, used or
    not."""

    instance: Name
    term: Term
    usd_per_hour: dict[Identifier, Number]
    when: Moment
    source: str


class CommitmentsFile(File):
    """Commitments to one provider's machines, each by a source that states this type's rate: a
    provider's largest discount is no rate."""

    kind: Literal["commitments"]
    provider: Identifier
    commitments: Annotated[list[CommitmentDocument], Field(min_length=1)]

    def cited(self) -> Iterable[str]:
        return (x.source for x in self.commitments)

    @model_validator(mode="after")
    def _once(self) -> Self:
        unique("commitment", (f"{x.instance} {x.term}" for x in self.commitments))
        return self


class CarbonFile(File):
    """Grams of carbon dioxide equivalent of a kilowatt-hour of the grid, by region."""

    kind: Literal["carbon"]
    provider: Identifier
    when: Moment
    source: str
    regions: Annotated[dict[Identifier, Number], Field(min_length=1)]

    def cited(self) -> Iterable[str]:
        return (self.source,)


class InterruptionsFile(File):
    """How often spare machines are taken back: of each machine the ranges that a provider states,
    with the regions of each."""

    kind: Literal["interruptions"]
    provider: Identifier
    when: Moment
    source: str
    machines: Annotated[dict[Name, dict[str, list[Identifier]]], Field(min_length=1)]

    def cited(self) -> Iterable[str]:
        return (self.source,)

    @model_validator(mode="after")
    def _once(self) -> Self:
        for name, ranges in self.machines.items():
            unique(f"range of {name} for", (r for regions in ranges.values() for r in regions))
        return self
