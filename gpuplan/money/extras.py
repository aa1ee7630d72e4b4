"""What a provider charges beside machines: control plane, load balancers, NAT, traffic, volumes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from gpuplan.catalog.tariffs import Charge, Tariffs
from gpuplan.frozen import record
from gpuplan.money.parts import Part
from gpuplan.plan.model import Plan, Workload
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
            nodes = sum(pool.node_count for pool in plan.node_pools)
            yield _hourly("NAT gateways", said.nat_gateways, charges, nodes)
        volumes = dict(said.traffic_bytes)
        for kind, (name, item) in TRAFFIC.items():
            if kind in volumes:
                yield traffic(name, Decimal(volumes[kind]) / GB, tariffs.charges(provider, item))
            elif kind != "nat":
                yield Part(name=name, what="nobody says how much", state="unpriced")
    yield from _volumes(plan, said, tariffs)


def _hourly(name: str, count: int, charges: Sequence[Charge], nodes: int = 1) -> Part:
    """`nodes` use what is paid by machine."""
    if not charges:
        return Part(name=name, what=f"{count}", state="unpriced")
    charge = charges[0]
    price, about = charge.price, charge.about
    if charge.unit == "USD/machine/hour":
        price, about = price * nodes, f"{about}: {nodes}"
        price = price if charge.most is None else min(price, charge.most)
    return Part(
        name=name,
        what=f"{count} at {format_unit_usd(price)}/h ({about})",
        state="priced",
        usd_per_month=price * count * HOURS_PER_MONTH,
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


def _volumes(plan: Plan, said: Extras, tariffs: Tariffs) -> Iterator[Part]:
    """Persistent volumes, at the price that is said, else those of the class that its provider's
    clusters have by default at what it charges; what a run's checkpoints cost is in the run's own
    price."""
    kept = [w for w in plan.workloads if w.usd_of_storage is None]
    own = TARGETS[plan.target].provider
    charges = tariffs.charges(own, "block-storage") if own else ()
    price = said.storage_usd_per_gb_month
    if price is not None or not charges:
        stated = None if price is None else Stated(price, "", "costs file: storage", given=True)
        yield from _stored("volumes", kept, stated)
        return
    charge = charges[0]
    listed = Stated(charge.price, f" ({charge.about})", charge.source, charge.when)
    plain = [w for w in kept if not any(v.storage_class or v.shared for v in w.volumes)]
    yield from _stored("volumes", plain, listed)
    yield from _stored("volumes of other classes", [w for w in kept if w not in plain], None)


class Stated(NamedTuple):
    """USD of a gigabyte a month, and who states it."""

    price: Decimal
    about: str
    source: str
    when: str = ""
    given: bool = False


def _stored(name: str, work: Sequence[Workload], stated: Stated | None) -> Iterator[Part]:
    size = sum(w.storage_bytes for w in work)
    if not size:
        return
    gigabytes = Decimal(size) / GB
    what = f"{significant(float(gigabytes))} GB"
    if stated is None:
        yield Part(name=name, what=what, state="unpriced")
        return
    yield Part(
        name=name,
        what=f"{what} at {format_unit_usd(stated.price)}/GB{stated.about}",
        state="priced",
        usd_per_month=gigabytes * stated.price,
        source=stated.source,
        when=stated.when,
        given=stated.given,
    )
