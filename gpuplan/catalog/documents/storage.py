"""Storage as a Kubernetes storage class."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from gpuplan.catalog.documents.base import Bytes, Count, FactDocument, File, Rate

AccessMode = Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]


def decimal(value: object) -> object:
    """A number of YAML as the digits that are written there."""
    return Decimal(str(value)) if isinstance(value, (int, float)) else value


Number = Annotated[Decimal, BeforeValidator(decimal), Field(gt=0)]


class StorageFile(File):
    """Limits are of one volume. `access_modes` are those that the source shows in use. A price is
    in USD for a decimal gigabyte and month."""

    kind: Literal["storage"]
    name: str
    provider: str | None = None
    medium: Literal["block", "file", "object", "local"]
    provisioner: FactDocument[Annotated[str, Field(pattern=r"^[a-z0-9.-]+(/[a-z0-9.-]+)?$")]]
    parameters: dict[str, str] = {}
    access_modes: FactDocument[Annotated[list[AccessMode], Field(min_length=1)]]
    size_minimum: FactDocument[Bytes] | None = None
    size_maximum: FactDocument[Bytes] | None = None
    iops_maximum: FactDocument[Count] | None = None
    throughput_maximum: FactDocument[Rate] | None = None
    throughput_per_tib: FactDocument[Rate] | None = None
    usd_per_gb_month: FactDocument[Number] | None = None
    price_region: str | None = None

    def cited(self) -> Iterable[str]:
        for field in type(self).model_fields:
            value = getattr(self, field)
            if isinstance(value, FactDocument):
                yield value.source

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        least, most = self.size_minimum, self.size_maximum
        if least and most and least.value > most.value:
            raise ValueError("size_minimum is more than size_maximum")
        return self
