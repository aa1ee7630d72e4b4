"""What the files of the catalogue share: quantities, facts, and the sources they name.

Every fact names its source; every source has a place (`url`, or repository, commit and path) and a
`date` of its own, or the day it was `read` when it has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Annotated, Any, Generic, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from gpuplan import units

T = TypeVar("T")


class Strict(BaseModel):
    """Unknown fields are errors; scalars are not coerced."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


def _quantity(parse: Callable[[str], Any], example: str) -> tuple[Any, ...]:
    """Annotations of a quantity that is written as a text with its unit."""

    def read(value: object) -> object:
        if not isinstance(value, str):
            raise ValueError(f"write a number and a unit, for example '{example}'")
        return parse(value)

    return BeforeValidator(read), WithJsonSchema({"type": "string", "examples": [example]})


Bytes = Annotated[int, *_quantity(units.parse_bytes, "80 GiB")]
Rate = Annotated[float, *_quantity(units.parse_rate, "3350 GB/s")]
Flops = Annotated[float, *_quantity(units.parse_flops, "989 TFLOP/s")]
Watts = Annotated[float, *_quantity(units.parse_watts, "700 W")]
Usd = Annotated[Decimal, *_quantity(units.parse_usd_per_hour, "$55.04/hour")]
Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$", max_length=60)]
Day = Annotated[str, Field(pattern=r"^20[0-9]{2}-[01][0-9]-[0-3][0-9]$")]
Count = Annotated[int, Field(ge=1)]
Minor = Annotated[str, Field(pattern=r"^1\.[0-9]{1,3}$")]  # a release of Kubernetes
PciId = Annotated[str, Field(pattern=r"^[0-9a-f]{4}:[0-9a-f]{4}$")]


class SourceEntry(Strict):
    """`url`, or `repository` with `commit` and `path`; `date`, or the day it was `read`."""

    title: str
    url: Annotated[str, Field(pattern=r"^https://")] | None = None
    repository: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")] | None = None
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{7,40}$")] | None = None
    path: str | None = None
    date: Day | None = None
    read: Day | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        in_repository = (self.repository, self.commit, self.path)
        if (self.url is None) == any(p is None for p in in_repository):
            raise ValueError("a source has a url, or a repository with commit and path")
        if (self.date is None) == (self.read is None):
            raise ValueError("a source has a date of its own, or the day it was read")
        return self


class FactDocument(Strict, Generic[T]):
    value: T
    source: str


class File(Strict):
    """What every file has. Each source that is named is there, and each that is there is named."""

    id: Identifier
    sources: dict[str, SourceEntry]
    notes: list[str] = []

    def cited(self) -> Iterable[str]:
        """The keys of the sources that the file's facts name."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _sources_match(self) -> Self:
        cited, given = set(self.cited()), set(self.sources)
        if cited - given:
            raise ValueError(f"no such source: {', '.join(sorted(cited - given))}")
        if given - cited:
            raise ValueError(f"a source that nothing names: {', '.join(sorted(given - cited))}")
        return self


def unique(noun: str, names: Iterable[str]) -> None:
    """Raises ValueError for names that are there twice."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"{noun} twice: {', '.join(twice)}")
