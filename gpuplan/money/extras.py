"""What a provider charges beside machines: control plane, load balancers, NAT, traffic, volumes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from gpuplan.catalog.tariffs import Charge, Tariffs
from gpuplan.frozen import record
from gpuplan.money.parts import Part
from gpuplan.plan.model import Plan
from gpuplan.targets import TARGETS
from gpuplan.units import HOURS_PER_MONTH, format_unit_usd, significant

GB = Decimal(10**9)
TRAFFIC = {
    "internet": ("internet traffic", "internet-traffic"),
    "cross_zone": ("traffic between zones", "cross-zone-traffic"),
    "nat": ("NAT traffic", "nat-traffic"),
}


@record
class Extras:
    """What a person says of a month: bytes of traffic by kind (`internet`, `cross_zone`, `nat`),
    counts, a price of storage, interruptions of each spot node. None is unsaid."""

    traffic_bytes: tuple[tuple[str, int], ...] = ()
    load_balancers: int | None = None
    nat_gateways: int | None = None
    storage_usd_per_gb_month: Decimal | None = None
    interruptions: Decimal | None = None


NOTHING = Extras()


def provider_of(plan: Plan) -> str | None:
    """Whose machines the stack is on: its target's, else of the first pool that is rented."""
    rented = (pool.provider for pool in plan.node_pools if pool.provider)
    return TARGETS[plan.target].provider or next(rented, None)


def extra_parts(plan: Plan, provider: str | None, tariffs: Tariffs, said: Extras) -> Iterator[Part]:
    """What a stack on a provider's machines pays beside them; on one's own, volumes alone."""
    if provider is not None:
        if TARGETS[plan.target].provider is not None:
            yield _hourly("control plane", 1, tariffs.charges(provider, "control-plane"))
        if said.load_balancers is not None:
            charges = tariffs.charges(provider, "load-balancer")
            yield _hourly("load balancers", said.load_balancers, charges)
        if said.nat_gateways is not None:
            charges = tariffs.charges(provider, "nat-gateway")
            yield _hourly("NAT gateways", said.nat_gateways, charges)
        volumes = dict(said.traffic_bytes)
        for kind, (name, item) in TRAFFIC.items():
            if kind in volumes:
                yield traffic(name, Decimal(volumes[kind]) / GB, tariffs.charges(provider, item))
            elif kind != "nat":
                yield Part(name=name, what="nobody says how much", state="unpriced")
    yield from _volumes(plan, said)


def _hourly(name: str, count: int, charges: Sequence[Charge]) -> Part:
    if not charges:
        return Part(name=name, what=f"{count}", state="unpriced")
    charge = charges[0]
    return Part(
        name=name,
        what=f"{count} at {format_unit_usd(charge.price)}/h ({charge.about})",
        state="priced",
        usd_per_month=charge.price * count * HOURS_PER_MONTH,
        source=charge.source,
        when=charge.when,
    )


def traffic(name: str, gigabytes: Decimal, charges: Sequence[Charge]) -> Part:
    """A month's volume through the tiers: each price holds from its `from_gb` to the next one's."""
    what = f"{significant(float(gigabytes))} GB a month"
    if not charges:
        return Part(name=name, what=what, state="unpriced")
    ends = [*(Decimal(c.from_gb) for c in charges[1:]), gigabytes]
    usd = sum(
        (
            max(Decimal(0), min(gigabytes, end) - charge.from_gb) * charge.price
            for charge, end in zip(charges, ends, strict=True)
        ),
        Decimal(0),
    )
    return Part(
        name=name,
        what=f"{what}, from {format_unit_usd(charges[0].price)}/GB",
        state="priced",
        usd_per_month=usd,
        source=charges[0].source,
        when=charges[0].when,
    )


def _volumes(plan: Plan, said: Extras) -> Iterator[Part]:
    """Persistent volumes; what a run's checkpoints cost is in the run's own price."""
    size = sum(w.storage_bytes for w in plan.workloads if w.usd_of_storage is None)
    if not size:
        return
    gigabytes = Decimal(size) / GB
    what = f"{significant(float(gigabytes))} GB"
    price = said.storage_usd_per_gb_month
    if price is None:
        yield Part(name="volumes", what=what, state="unpriced")
        return
    yield Part(
        name="volumes",
        what=f"{what} at {format_unit_usd(price)}/GB",
        state="priced",
        usd_per_month=gigabytes * price,
        source="costs file: storage",
        given=True,
    )
