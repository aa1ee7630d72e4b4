"""The costs file, version 1: what people say of prices and volumes that no list has."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Generic, Literal, Self, TypeVar

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from gpuplan import units
from gpuplan.diagnostics import Diagnostic
from gpuplan.errors import Rejected
from gpuplan.manifest.base import Count, Document, Shorthand, Text, optional
from gpuplan.manifest.load import read_document, validate
from gpuplan.manifest.quantities import Bytes, Seconds, UsdPerGbMonth
from gpuplan.money.extras import Extras
from gpuplan.money.inputs import UNITS, Value
from gpuplan.plan.outside.regions import Limits, Region
from gpuplan.resolve.messages import unknown_gpu
from gpuplan.source import Origin, Sources

N = TypeVar("N")


def _money(parse: object, example: str) -> tuple[object, ...]:
    def read(value: object) -> object:
        if not isinstance(value, str):
            raise ValueError(f"an amount needs its unit, for example '{example}'")
        return parse(value)  # type: ignore[operator]

    return BeforeValidator(read), WithJsonSchema({"type": "string", "examples": [example]})


def _decimal(value: object) -> object:
    """`8 %` or `0.08`, with the digits that are written."""
    if isinstance(value, str):
        return Decimal(repr(units.parse_share(value)))
    return Decimal(str(value)) if isinstance(value, int | float) else value


def _watts(text: str) -> Decimal:
    return Decimal(repr(units.parse_watts(text)))


Usd = Annotated[Decimal, *_money(units.parse_usd, "$320,000"), Field(ge=0)]
UsdPerMonth = Annotated[Decimal, *_money(units.parse_usd_per_month, "$6,000/month"), Field(ge=0)]
UsdPerKwh = Annotated[Decimal, *_money(units.parse_usd_per_kwh, "$0.12/kWh"), Field(gt=0)]
UsdPerKwMonth = Annotated[
    Decimal, *_money(units.parse_usd_per_kw_month, "$200/kW/month"), Field(gt=0)
]
Power = Annotated[Decimal, *_money(_watts, "10.2 kW"), Field(gt=0)]
Fraction = Annotated[Decimal, BeforeValidator(_decimal), Field(ge=0, le=1)]
Ratio = Annotated[Decimal, BeforeValidator(_decimal), Field(ge=1, le=5)]
Number = Annotated[Decimal, BeforeValidator(_decimal), Field(gt=0, le=10**6)]


class Spread(Document, Generic[N]):
    """A value, and between what it may lie: a bare value has no range."""

    low: N | None = None
    typical: N
    high: N | None = None

    @model_validator(mode="after")
    def _ascends(self) -> Self:
        given = [n for n in (self.low, self.typical, self.high) if n is not None]
        if given != sorted(given):  # type: ignore[type-var]
            raise ValueError("low, typical and high do not ascend")
        return self


TEXT, NUMBER = Shorthand("typical", "string"), Shorthand("typical", "number")


class Either(Shorthand):
    """A share as a number or in percent."""

    def expand(self, value: object) -> object:
        bare = isinstance(value, str | int | float) and not isinstance(value, bool)
        return {self.field: value} if bare else value


EITHER = Either("typical", "number")


class Traffic(Document):
    """What leaves, in a month."""

    internet: Bytes | None = optional("To the internet.", "2 TB")
    cross_zone: Bytes | None = optional("Between zones of a region.", "500 GB")
    nat: Bytes | None = optional("Through NAT gateways.", "1 TB")


class Colocation(Document):
    """Space, by the power that a node may draw. All-in prices hold power and cooling already: then
    neither tariff nor PUE is counted again."""

    price: Annotated[Spread[UsdPerKwMonth], TEXT]
    includes_power: bool = False


class Financing(Document):
    """An annuity for `share` of the purchase."""

    rate: Annotated[Spread[Fraction], EITHER]
    months: Count
    share: Fraction = Decimal(1)


class OwnedNode(Document):
    """What a node with one GPU type costs to buy, and the most that it draws."""

    purchase: Annotated[Spread[Usd], TEXT] | None = None
    power: Annotated[Spread[Power], TEXT] | None = None


class Owned(Document):
    """Nodes that are bought. `purchase` and `power` are of one node, `nodes` by GPU type where they
    differ; `facility` and `staff` are of all of them together."""

    nodes: dict[str, OwnedNode] = {}

    purchase: Annotated[Spread[Usd], TEXT] | None = None
    network_share: Annotated[Spread[Fraction], EITHER] | None = None
    financing: Financing | None = None
    power: Annotated[Spread[Power], TEXT] | None = None
    load: Annotated[Spread[Fraction], EITHER] | None = None
    pue: Annotated[Spread[Ratio], NUMBER] | None = None
    tariff: Annotated[Spread[UsdPerKwh], TEXT] | None = None
    colocation: Colocation | None = None
    facility: Annotated[Spread[UsdPerMonth], TEXT] | None = None
    maintenance: Annotated[Spread[Fraction], EITHER] | None = None
    staff: Annotated[Spread[UsdPerMonth], TEXT] | None = None
    life_months: Count | None = None
    residual: Annotated[Spread[Fraction], EITHER] | None = None


class Rented(Document):
    """Servers by the month, for at least `months`: the price of one node, and what its set-up costs
    once."""

    server: Annotated[Spread[UsdPerMonth], TEXT]
    months: Count = 1
    setup: Usd | None = None


class Level(Document):
    """The part of the hours in which the load is at most `load` of its peak."""

    hours: Fraction
    load: Fraction


class RegionSpec(Document):
    """A target in a region, and what nobody but its user knows of it."""

    target: Text
    latency: Seconds | None = None
    residency: Text | None = None


class LimitSpec(Document):
    """What regions must keep, before their price is looked at."""

    latency: Seconds | None = None
    residency: list[Text] = []


class Costs(Document):
    """What no price list knows."""

    api_version: Literal["gpuplan.dev/costs/v1"] = Field(alias="apiVersion")
    traffic: Traffic | None = None
    load_balancers: Annotated[int, Field(ge=0, le=10**4)] | None = None
    nat_gateways: Annotated[int, Field(ge=0, le=10**4)] | None = None
    storage: UsdPerGbMonth | None = None
    interruptions: Number | None = None
    owned: Owned | None = None
    rented: Rented | None = None
    load_duration: Annotated[list[Level], Field(min_length=2)] | None = None
    carbon_grams_per_kwh: Number | None = None
    regions: list[RegionSpec] = []
    limits: LimitSpec | None = None

    @model_validator(mode="after")
    def _curve(self) -> Self:
        levels = [(x.hours, x.load) for x in self.load_duration or ()]
        if levels != sorted(levels) or (levels and levels[-1] != (Decimal(1), Decimal(1))):
            raise ValueError("load_duration ascends to hours 1, load 1")
        return self


def read_costs(path: Path, sources: Sources, gpus: Sequence[str]) -> Costs:
    """`gpus` are the types that there are. Raises `Rejected` with every problem of the file."""
    remedy = "it begins with apiVersion: gpuplan.dev/costs/v1 (docs/cost.md)"
    document, problems = read_document(path, path.name, sources, remedy)
    checked: tuple[Costs | None, tuple[Diagnostic, ...]] = (None, ())
    if document is not None:
        checked = validate(Costs, document)
    costs, wrong = checked
    if problems or wrong or costs is None:
        raise Rejected([*problems, *wrong])
    named = costs.owned.nodes if costs.owned else {}
    at = Origin(path.name, ("owned", "nodes"))
    unknown = [n for n in named if n not in gpus]
    if unknown:
        origins = (Origin(at.document, (*at.path, n), key=True) for n in unknown)
        raise Rejected([unknown_gpu(n, gpus, o) for n, o in zip(unknown, origins, strict=True)])
    return costs


def extras(costs: Costs) -> Extras:
    given = costs.traffic
    pairs = [(n, getattr(given, n)) for n in Traffic.model_fields] if given else []
    return Extras(
        traffic_bytes=tuple((n, size) for n, size in pairs if size is not None),
        load_balancers=costs.load_balancers,
        nat_gateways=costs.nat_gateways,
        storage_usd_per_gb_month=costs.storage,
        interruptions=costs.interruptions,
    )


def regions_of(costs: Costs) -> tuple[Region, ...]:
    return tuple(
        Region(target=r.target, latency_seconds=r.latency, residency=r.residency)
        for r in costs.regions
    )


def limits_of(costs: Costs) -> Limits:
    given = costs.limits
    if given is None:
        return Limits()
    return Limits(latency_seconds=given.latency, residency=tuple(given.residency))


def values(costs: Costs, name: str, gpu: str) -> tuple[Value, ...]:
    """What the file `name` says of owned and rented nodes with a GPU type."""
    spreads: dict[str, object] = {}
    owned, rented = costs.owned, costs.rented
    if owned is not None:
        plain: tuple[str, ...] = ("purchase", "network_share", "power", "load", "pue", "tariff")
        plain += ("facility", "maintenance", "staff", "residual")
        spreads |= {f"owned.{n}": getattr(owned, n) for n in plain}
        own = owned.nodes.get(gpu)
        if own is not None:
            of_gpu = {"owned.purchase": own.purchase, "owned.power": own.power}
            spreads |= {n: s for n, s in of_gpu.items() if s is not None}
        spreads["owned.life_months"] = owned.life_months
        if owned.colocation is not None:
            spreads["owned.colocation.price"] = owned.colocation.price
            spreads["owned.colocation.includes_power"] = int(owned.colocation.includes_power)
        if owned.financing is not None:
            spreads["owned.financing.rate"] = owned.financing.rate
            spreads["owned.financing.months"] = owned.financing.months
            spreads["owned.financing.share"] = owned.financing.share
    if rented is not None:
        spreads |= {"rented.server": rented.server, "rented.setup": rented.setup}
        spreads["rented.months"] = rented.months
    spreads["carbon_grams_per_kwh"] = costs.carbon_grams_per_kwh
    return tuple(_value(n, s, name) for n, s in spreads.items() if s is not None)


def _value(name: str, spread: object, file: str) -> Value:
    low = typical = high = spread
    if isinstance(spread, Spread):
        low, typical, high = spread.low, spread.typical, spread.high
    return Value(
        name=name,
        unit=UNITS[name],
        low=None if low is typical or low is None else Decimal(str(low)),
        typical=Decimal(str(typical)),
        high=None if high is typical or high is None else Decimal(str(high)),
        source=f"{file}: {name}",
        given=True,
    )
