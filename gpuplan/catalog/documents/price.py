"""Prices of one source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from gpuplan.catalog.documents.base import Bytes, Count, File, Identifier, Strict, Usd


class Listing(Strict):
    """An on-demand price of a machine with `gpus` whole GPUs of one type."""

    provider: str | None = None
    instance: str | None = None
    gpu: Identifier
    gpus: Count
    price: Usd
    region: str | None = None
    vcpus: Count | None = None
    memory: Bytes | None = None
    source: str


class PriceFile(File):
    """Prices of one source. Placeholders (0, 700) are not prices."""

    kind: Literal["prices"]
    provider: str | None = None
    listings: Annotated[list[Listing], Field(min_length=1)]

    def cited(self) -> Iterable[str]:
        return (x.source for x in self.listings)

    @model_validator(mode="after")
    def _real(self) -> Self:
        for x in self.listings:
            if not (x.provider or self.provider):
                raise ValueError("a listing needs a provider")
            if not 0 < x.price < 700:
                raise ValueError(f"{x.instance or x.gpu}: {x.price} is not an hourly price")
        return self
