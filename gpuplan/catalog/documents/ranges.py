"""What things cost to buy and to run, as ranges: inputs with a label, never facts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gpuplan.catalog.documents.base import File, Identifier, Strict, unique
from gpuplan.catalog.documents.storage import Number

Moment = Annotated[str, Field(pattern=r"^20[0-9]{2}(-[01][0-9](-[0-3][0-9])?|-H[12]|-Q[1-4])?$")]
Unit = Literal["USD", "USD/kWh", "EUR/kWh", "USD/kW/month", "W", "ratio", "share", "months"]
Status = Literal["official", "measured", "survey", "list", "estimate"]


class RangeRow(Strict):
    """`when` is the time that the numbers are of; `status` how sure they are: official statistics,
    a measurement, a survey, a list price, or estimates of the trade. `default` marks the row that
    is proposed where nothing is known."""

    item: Identifier
    about: str
    gpu: Identifier | None = None
    node: Identifier | None = None
    region: str | None = None
    unit: Unit
    low: Number | None = None
    typical: Number | None = None
    high: Number | None = None
    when: Moment
    status: Status
    default: bool = False
    sources: Annotated[list[str], Field(min_length=1)]

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        given = [n for n in (self.low, self.typical, self.high) if n is not None]
        if not given or given != sorted(given):
            raise ValueError(f"{self.item}: low, typical and high do not ascend")
        if self.default and self.typical is None:
            raise ValueError(f"{self.item}: a default needs a typical value")
        return self


class RangesFile(File):
    """Power (electricity, buildings, what nodes draw) or purchase (GPUs, nodes, keeping them)."""

    kind: Literal["power", "purchase"]
    ranges: Annotated[list[RangeRow], Field(min_length=1)]

    def cited(self) -> Iterable[str]:
        return (source for row in self.ranges for source in row.sources)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        unique("item", (row.item for row in self.ranges))
        return self
