"""How else a pool could be paid: on demand, as spare capacity, with a commitment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Literal

from gpuplan.catalog.market import CapacityKind, Instance, Market, RegionPrice
from gpuplan.catalog.tariffs import Tariffs
from gpuplan.frozen import frozen, record
from gpuplan.money.parts import State
from gpuplan.plan.model import NodePool, Plan, Workload
from gpuplan.units import HOURS_PER_MONTH

Kind = Literal["on demand", "spot", "1 year", "3 years"]
TERMS: dict[str, Kind] = {"1y": "1 year", "3y": "3 years"}


@record
class Way:
    """A way to pay for a pool's nodes. `break_even_share`: of a commitment, the part of the hours
    from which on it costs less than paying on demand; of spot `break_even_interruptions`
    up to which it does, of all its replicas together, a month or, where it `ends`, of the run.
    `interrupted` is the range of spare machines that its provider takes back in a month, where a
    source states it."""

    pool: str
    kind: Kind
    state: State
    usd_per_hour: Decimal | None = None
    source: str = ""
    when: str = ""
    break_even_share: Decimal | None = None
    break_even_interruptions: Decimal | None = None
    interrupted: str = ""
    ends: bool = False
    chosen: bool = False


# Machines of a region that a list of prices has at least; fewer are what somebody saw.
LIST = 3


@frozen
class Lists:
    """The price lists."""

    market: Market
    tariffs: Tariffs


def ways(plan: Plan, lists: Lists) -> Iterator[Way]:
    """Of each pool that is rented in a known region."""
    for pool in plan.node_pools:
        place = pool.rented_from
        listed = pool.node_type and lists.market.instance(pool.node_type)
        if place and listed and listed[1].provider == place[0]:
            on_it = [w for w in plan.workloads if w.node_pool == pool.name]
            yield from _of_pool(pool, listed[1], lists, on_it)


def _of_pool(
    pool: NodePool, machine: Instance, lists: Lists, work: Sequence[Workload]
) -> Iterator[Way]:
    place = pool.rented_from
    assert place is not None, "asked before"
    region, spot = place[1:]
    demand = replace(_listed(pool, "on demand", machine, region, lists.market), chosen=not spot)
    spare = replace(_listed(pool, "spot", machine, region, lists.market), chosen=spot)
    yield demand
    often = lists.tariffs.interruptions(place[0], machine.name, region)
    if often is not None:
        spare = replace(spare, interrupted=f"{often.share} (list of {often.when})")
    yield _with_interruptions(spare, demand, work)
    terms = {c.term: c for c in lists.tariffs.commitments(place[0], machine.name, region)}
    for term, kind in TERMS.items():
        if term not in terms:
            yield Way(pool=pool.name, kind=kind, state="unpriced")
            continue
        usd = terms[term].usd_per_hour * pool.node_count
        yield Way(
            pool=pool.name,
            kind=kind,
            state="priced",
            usd_per_hour=usd,
            source=terms[term].source,
            when=terms[term].when,
            break_even_share=None if demand.usd_per_hour is None else usd / demand.usd_per_hour,
        )


def _listed(
    pool: NodePool,
    kind: Literal["on demand", "spot"],
    machine: Instance,
    region: str,
    market: Market,
) -> Way:
    capacity: CapacityKind = "spot" if kind == "spot" else "on-demand"
    price = next((p for p in market.rates(machine, capacity) if p.region == region), None)
    if price is None:
        return Way(pool=pool.name, kind=kind, state=_absent(machine, region, capacity, market))
    return Way(
        pool=pool.name,
        kind=kind,
        state="priced",
        usd_per_hour=price.usd_per_hour * pool.node_count,
        source=price.source,
        when=_when(price),
    )


def _when(price: RegionPrice) -> str:
    return price.date if price.dated else ""


def _absent(machine: Instance, region: str, capacity: CapacityKind, market: Market) -> State:
    """Not offered where a list of the provider has the region's prices of that kind, but not this
    machine's; else nobody knows. What somebody saw of one machine on one day is no list."""
    listed = Counter(
        _list_of(p)
        for p in market.prices()
        if p.provider == machine.provider and p.region == region and p.capacity == capacity
    )
    return "not offered" if max(listed.values(), default=0) >= LIST else "unpriced"


def _list_of(price: RegionPrice) -> str:
    """The list that a citation is of, without the machine."""
    return price.source.origin.citation


def _with_interruptions(spare: Way, demand: Way, work: Sequence[Workload]) -> Way:
    """With the interruptions at which spare capacity costs as much as nodes that are kept; only
    where what each one costs is known."""
    lost = (w.interruption.usd for w in work if w.interruption and w.interruption.usd)
    each = max(lost, default=None)
    if each is None or spare.usd_per_hour is None or demand.usd_per_hour is None:
        return spare
    runs = [w.run_hours for w in work]
    ends = all(hours is not None for hours in runs)
    hours = max(h for h in runs if h is not None) if ends else Decimal(HOURS_PER_MONTH)
    saved = (demand.usd_per_hour - spare.usd_per_hour) * hours
    return replace(spare, break_even_interruptions=max(Decimal(0), saved / each), ends=ends)
