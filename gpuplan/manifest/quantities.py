"""Pydantic types for quantities with a unit; inside the model they are plain base units."""

from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from gpuplan import units
from gpuplan.manifest.base import QUANTITY


def _parser(parse: Callable[[str], Any], kind: str, example: str) -> BeforeValidator:
    def convert(value: object) -> object:
        if not isinstance(value, str):
            raise ValueError(f"a {kind} needs a unit, for example '{example}'")
        return parse(value)

    return BeforeValidator(convert)


def _schema(description: str, *examples: str) -> WithJsonSchema:
    tree = {"type": "string", "description": description, "examples": list(examples)}
    quantity = description.partition(" (")[0].removesuffix(".")
    return WithJsonSchema({**tree, QUANTITY: f"{quantity[0].lower()}{quantity[1:]}"})


Bytes = Annotated[
    int,
    _parser(units.parse_bytes, "size", "80 GiB"),
    Field(gt=0),
    _schema("A size with its unit.", "80 GiB", "2 TB"),
]
BytesPerSecond = Annotated[
    float,
    _parser(units.parse_rate, "bandwidth", "400 Gb/s"),
    Field(gt=0),
    _schema("A bandwidth with its unit (b is bits, B is bytes).", "400 Gb/s", "12 GB/s"),
]
SecondsOrZero = Annotated[
    float,
    _parser(units.parse_seconds, "duration", "40 ms"),
    _schema("A duration with its unit.", "40 ms", "3 d"),
]
Seconds = Annotated[SecondsOrZero, Field(gt=0)]


def _share(value: object) -> object:
    """`0.6` as it is, `"60 %"` as 0.6."""
    return units.parse_share(value) if isinstance(value, str) else value


Share = Annotated[
    float,
    BeforeValidator(_share),
    WithJsonSchema(
        {
            "anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^[0-9.]+ *%$"}],
            "description": "A part of one, as a number or in percent.",
            "examples": [0.6, "60 %"],
        }
    ),
]
Watts = Annotated[
    float,
    _parser(units.parse_watts, "power", "500 W"),
    Field(gt=0),
    _schema("A power with its unit.", "500 W", "0.7 kW"),
]
UsdPerHour = Annotated[
    Decimal,
    _parser(units.parse_usd_per_hour, "price", "$2.50/hour"),
    _schema("A price an hour, day, month or year.", "$2.50/hour", "$20,000/month"),
]
UsdPerGbMonth = Annotated[
    Decimal,
    _parser(units.parse_usd_per_gb_month, "price of storage", "$0.08/GB/month"),
    Field(gt=0),
    _schema("A price of a gigabyte a month.", "$0.08/GB/month"),
]
