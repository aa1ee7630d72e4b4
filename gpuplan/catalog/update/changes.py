"""New prices beside those of the catalogue: what would change, and what is not to be believed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from statistics import median
from typing import Literal

from gpuplan.catalog.market import Instance, Market, RegionPrice, parts
from gpuplan.catalog.update.quotes import Key, Quote
from gpuplan.frozen import record

LARGEST = 700  # USD an hour: lists have 0 and 700 where they know no price
JUMP = Decimal("1.5")  # times, between two lists
FAR = 3  # times, from the median price of the GPU type
Verdict = Literal["new", "changed", "same", "older", "unknown machine", "refused"]


@record
class Change:
    """What a quote would do to the catalogue. `before` is its price there; `odd` says why it is an
    outlier, and a person should look. `refused` are no prices at all."""

    kind: Verdict
    quote: Quote
    date: str
    before: Decimal | None = None
    before_date: str = ""
    odd: tuple[str, ...] = ()

    @property
    def share(self) -> float | None:
        """The change over the price before."""
        if not self.before:
            return None
        return float(self.quote.usd_per_hour / self.before - 1)


@record
class Review:
    """All that a list would change. `unlisted` are prices of the catalogue, of regions and
    capacities that the list has, which the list does not have: perhaps no longer offered."""

    changes: tuple[Change, ...]
    unlisted: tuple[Key, ...]

    def of(self, kind: Verdict) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.kind == kind)

    @property
    def outliers(self) -> tuple[Change, ...]:
        return tuple(c for c in self.changes if c.odd and c.kind in ("new", "changed"))

    @property
    def taken(self) -> tuple[Change, ...]:
        """New and changed prices, outliers left out."""
        return tuple(c for c in self.changes if not c.odd and c.kind in ("new", "changed"))


def review(quotes: Iterable[Quote], market: Market, day: date) -> Review:
    """`day` is the list's own, for quotes without a date. Of several zones the dearest counts: that
    is what a pool in any of them pays at most."""
    known = {(p.provider, p.instance, p.region, p.capacity): p for p in market.prices()}
    machines = {(m.provider, m.name): m for m in market.instances()}
    levels = _levels(known.values(), machines)
    best: dict[Key, Quote] = {}
    for quote in quotes:
        other = best.get(quote.key)
        if other is None or quote.usd_per_hour > other.usd_per_hour:
            best[quote.key] = quote
    changes = [_change(q, known.get(q.key), machines, levels, day) for q in best.values()]
    flagged = _spot_above(changes, known)
    order = sorted(flagged, key=lambda c: c.quote.key)
    return Review(changes=tuple(order), unlisted=tuple(_unlisted(best, known)))


def _change(
    quote: Quote,
    before: RegionPrice | None,
    machines: Mapping[tuple[str, str], Instance],
    levels: Mapping[str, Decimal],
    day: date,
) -> Change:
    when = quote.date or day.isoformat()
    machine = machines.get((quote.provider, quote.instance))
    if not 0 < quote.usd_per_hour < LARGEST:
        why = f"{quote.usd_per_hour} is a placeholder: no price is from 0 to {LARGEST}"
        return Change(kind="refused", quote=quote, date=when, odd=(why,))
    if machine is None:
        return Change(kind="unknown machine", quote=quote, date=when)
    odd = tuple(_odd(quote, before, machine, levels))
    if before is None:
        return Change(kind="new", quote=quote, date=when, odd=odd)
    kind: Verdict = "changed"
    if before.usd_per_hour == quote.usd_per_hour:
        kind = "same"
    elif before.dated and when < before.date:
        kind = "older"
    return Change(
        kind=kind,
        quote=quote,
        date=when,
        before=before.usd_per_hour,
        before_date=before.date if before.dated else f"read {before.date}",
        odd=odd,
    )


def _odd(
    quote: Quote,
    before: RegionPrice | None,
    machine: Instance,
    levels: Mapping[str, Decimal],
) -> Iterator[str]:
    if before is not None:
        ratio = quote.usd_per_hour / before.usd_per_hour
        if not 1 / JUMP <= ratio <= JUMP:
            yield f"{float(ratio):.2f} times what it was"
    level = levels.get(machine.gpu)
    each = _of_gpu(quote.usd_per_hour, machine)
    if level and quote.capacity == "on-demand" and not level / FAR <= each <= level * FAR:
        yield f"{each:.2f} a GPU where {machine.gpu} costs {level:.2f} in the middle"


def _of_gpu(usd: Decimal, machine: Instance) -> Decimal:
    return usd / machine.gpus if machine.gpus else usd * parts(machine)


def _levels(
    prices: Iterable[RegionPrice], machines: Mapping[tuple[str, str], Instance]
) -> dict[str, Decimal]:
    """The median on-demand price of one GPU, by its type."""
    by_gpu: dict[str, list[Decimal]] = {}
    for price in prices:
        machine = machines.get((price.provider, price.instance))
        if machine and price.capacity == "on-demand":
            by_gpu.setdefault(machine.gpu, []).append(_of_gpu(price.usd_per_hour, machine))
    return {gpu: median(each) for gpu, each in by_gpu.items()}


def _spot_above(changes: Sequence[Change], known: Mapping[Key, RegionPrice]) -> Iterator[Change]:
    """Spare capacity that costs more than capacity on demand."""
    listed = {c.quote.key: c.quote.usd_per_hour for c in changes if c.kind != "refused"}
    for change in changes:
        quote = change.quote
        key: Key = (quote.provider, quote.instance, quote.region, "on-demand")
        demand = listed.get(key) or (known[key].usd_per_hour if key in known else None)
        if quote.capacity == "spot" and demand is not None and quote.usd_per_hour > demand:
            why = f"spot above on demand, which costs {demand}"
            yield _with(change, why)
        else:
            yield change


def _with(change: Change, why: str) -> Change:
    return Change(
        kind=change.kind,
        quote=change.quote,
        date=change.date,
        before=change.before,
        before_date=change.before_date,
        odd=(*change.odd, why),
    )


def _unlisted(best: Mapping[Key, Quote], known: Mapping[Key, RegionPrice]) -> Iterator[Key]:
    places = {(key[0], key[2], key[3]) for key in best}
    yield from sorted(k for k in known if k not in best and (k[0], k[2], k[3]) in places)
