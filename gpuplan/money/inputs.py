"""The inputs of owning and renting: what a person says, else what the catalogue labels as usual."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal

from gpuplan.catalog.hardware import Range
from gpuplan.catalog.load import Catalog
from gpuplan.catalog.tariffs import Tariffs
from gpuplan.frozen import record
from gpuplan.plan.model import NodePool

UNITS = {
    "owned.purchase": "USD a node",
    "owned.network_share": "of the purchase",
    "owned.financing.rate": "a year",
    "owned.financing.months": "months",
    "owned.financing.share": "of the purchase",
    "owned.power": "W a node",
    "owned.load": "of that power",
    "owned.pue": "",
    "owned.tariff": "USD/kWh",
    "owned.colocation.price": "USD/kW/month",
    "owned.colocation.includes_power": "",
    "owned.facility": "USD/month",
    "owned.maintenance": "of the purchase a year",
    "owned.staff": "USD/month",
    "owned.life_months": "months",
    "owned.residual": "of the purchase",
    "rented.server": "USD/month a node",
    "rented.setup": "USD a node",
    "rented.months": "months at least",
    "carbon_grams_per_kwh": "g/kWh",
}


@record
class Value:
    """An input, with the least and the most that it may be where those are known. `given`: a person
    set it; else it is a label of the catalogue, or the plan's. `without` names what it does not
    hold, so that what follows is a floor."""

    name: str
    unit: str
    low: Decimal | None
    typical: Decimal
    high: Decimal | None
    source: str
    given: bool = False
    without: str = ""


Inputs = Mapping[str, Value]


def inputs(
    given: Iterable[Value], pool: NodePool, catalog: Catalog, tariffs: Tariffs
) -> dict[str, Value]:
    """By name, of a pool's nodes. What is neither given nor known is not in it. A server that is
    given has no set-up and no least time of a listed one."""
    values = {value.name: value for value in _usual(pool, catalog)}
    said = {value.name: value for value in given}
    if "rented.server" not in said:
        values |= {value.name: value for value in _server(pool, tariffs)}
    return values | said


def _usual(pool: NodePool, catalog: Catalog) -> Iterator[Value]:
    bought = _purchase(pool, catalog)
    if bought is not None:
        yield bought
    if pool.watts is not None:
        boards = pool.boards_only
        source = f"plan: most that {'GPU boards draw' if boards else 'the server draws'}"
        watts = _value("owned.power", Decimal(repr(pool.watts)), source)
        yield replace(watts, without="power beside the GPU boards" if boards else "")
    named = {
        "owned.tariff": catalog.range_of("power", "electricity-data-centre"),
        "owned.pue": catalog.range_of("power", "pue-new"),
        "owned.life_months": catalog.range_of("purchase", "amortisation"),
        "owned.network_share": catalog.range_of("purchase", "network-share"),
    }
    loads = (r for r in catalog.ranges("power") if r.unit == "share" and r.gpu == pool.gpu)
    named["owned.load"] = next(loads, None)
    for name, row in named.items():
        if row is not None and (value := _of_range(name, row)) is not None:
            yield value


def _server(pool: NodePool, tariffs: Tariffs) -> Iterator[Value]:
    """The cheapest month of servers with the pool's GPUs, between the cheapest and the dearest."""
    servers = tariffs.servers(pool.gpu, pool.gpus_per_node)
    if not servers:
        return
    best, dearest = servers[0], servers[-1]
    where = f" in {best.place}" if best.place else ""
    source = f"{best.source}: {best.provider}{where}, for {best.months} months at least"
    price = _value("rented.server", best.usd_per_month, source)
    more = dearest.usd_per_month
    yield replace(price, high=more) if more > best.usd_per_month else price
    yield _value("rented.months", Decimal(best.months), source)
    if best.setup is not None:
        yield _value("rented.setup", best.setup, source)


def _purchase(pool: NodePool, catalog: Catalog) -> Value | None:
    """Of the server that the pool names, else of one with as many of the GPUs, else of its GPUs
    alone, which is said."""
    rows = [r for r in catalog.ranges("purchase") if r.unit == "USD"]
    named = [r for r in rows if r.node and r.node == pool.node_type]
    count = f"node-{pool.gpus_per_node}x-"
    named += [r for r in rows if r.gpu == pool.gpu and r.item.startswith(count)]
    for row in named:
        if (value := _of_range("owned.purchase", row)) is not None:
            return value
    single = next((r for r in rows if r.item == pool.gpu and r.default), None)
    value = None if single is None else _of_range("owned.purchase", single)
    if value is None:
        return None
    times = Decimal(pool.gpus_per_node)
    return replace(
        value,
        low=None if value.low is None else value.low * times,
        typical=value.typical * times,
        high=None if value.high is None else value.high * times,
        source=f"{value.source}: GPUs alone",
        without="servers around the GPUs",
    )


def _of_range(name: str, row: Range) -> Value | None:
    """A row without a typical value has its middle, which is said."""
    middle, said = row.typical, ""
    if middle is None and row.low is not None and row.high is not None:
        middle, said = (row.low + row.high) / 2, ", the middle of its range"
    if middle is None:
        return None
    value = _value(name, middle, f"{row.sources[0]}: {row.about}{said}")
    return replace(value, low=row.low, high=row.high)


def _value(name: str, middle: Decimal, source: str) -> Value:
    return Value(name=name, unit=UNITS[name], low=None, typical=middle, high=None, source=source)
