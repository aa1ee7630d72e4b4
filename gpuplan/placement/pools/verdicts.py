"""What was not chosen and why: the best candidate of each other offer beside the chosen ones."""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_DOWN, Context, Decimal

from gpuplan.placement.pools.outcome import Outcome, Weigher
from gpuplan.plan.model import Alternative, Flip, Shortfall
from gpuplan.sizing.candidates.choose import Candidate, furthest, leading
from gpuplan.sizing.decide.searched import Search
from gpuplan.sizing.evidence.formula import canonical
from gpuplan.units import MICRO

PARALLEL = ("serving", "batch")  # the GPUs of a replica split its layers
SLACK = 1e-9
_FOUR_DIGITS = Context(prec=4, rounding=ROUND_DOWN)


def alternatives(
    search: Search, weigher: Weigher, chosen: Outcome, place: int
) -> tuple[Alternative, ...]:
    """One for each other kind of machine, or GPU type that is bought, nearest first: its best
    candidate while the other workloads keep theirs, or the one that got furthest."""
    ranked: list[tuple[tuple[object, ...], Alternative]] = []
    own = chosen.candidates[place].device.offer
    for kind, group in search.kinds.items():
        if kind in (id(own), own.shape and own.gpu.identifier):
            continue
        swaps = [_swapped(weigher, chosen, place, c) for c in leading(group)]
        if swaps:
            swap = min(swaps, key=lambda o: o.rank)
            key = (not swap.feasible, *swap.rank)
            ranked.append((key, _fitting(search, weigher, chosen, swap, place)))
        elif (stopped := furthest(group)) is not None:
            key = (True, -stopped.passed, stopped.device.gpu.identifier)
            gate, shortfalls = stopped.shortfalls[0].resource, stopped.shortfalls
            item = _alternative(search, stopped, gate, shortfalls=shortfalls, flip=stopped.flip)
            ranked.append((key, item))
    return tuple(a for _, a in sorted(ranked, key=lambda item: (item[0][0], item[0][1:])))


def _swapped(weigher: Weigher, chosen: Outcome, place: int, candidate: Candidate) -> Outcome:
    before, after = chosen.candidates[:place], chosen.candidates[place + 1 :]
    return weigher((*before, candidate, *after))


def _fitting(
    search: Search, weigher: Weigher, chosen: Outcome, swap: Outcome, place: int
) -> Alternative:
    """A candidate that fits alone: beside the others it is dearer, unpriced or finds no nodes."""
    candidate = swap.candidates[place]
    short = tuple(s for s in swap.short if s not in chosen.short)
    if short:
        return _alternative(search, candidate, short[0].resource, shortfalls=short)
    if candidate.device.offer.usd_per_gpu_hour is None:
        return _alternative(search, candidate, "price unknown")
    forced = search.demand.overrides.gpu is not None
    flip = _forced_flip(chosen, swap, place) if forced else _flip(weigher, chosen, place, candidate)
    own = weigher.paid(chosen, place).usd_per_hour or Decimal(0)
    if candidate.hours is None:  # an hour of the month that is printed
        more = swap.cost - chosen.cost
    else:
        more = swap.usd_per_hour - chosen.usd_per_hour
    usd = own + Decimal(repr(more))
    if usd <= 0:  # more than its own part is saved, of nodes that nobody needs then
        usd = weigher.paid(swap, place).usd_per_hour or own
    alternative = _alternative(
        search,
        candidate,
        "override" if forced else "cost",
        flip=flip,
        usd_per_hour=usd.quantize(MICRO),
    )
    saved = Decimal(repr(-more)).quantize(MICRO)
    cheaper = candidate.hours is None and saved > 0
    return replace(alternative, saves_usd_per_hour=saved) if cheaper else alternative


def _alternative(
    search: Search,
    candidate: Candidate,
    gate: str,
    *,
    shortfalls: tuple[Shortfall, ...] = (),
    flip: Flip | None = None,
    usd_per_hour: Decimal | None = None,
) -> Alternative:
    offer = candidate.device.offer
    return Alternative(
        gpu=candidate.device.gpu.identifier,
        node_type=candidate.device.offer.shape_name,
        rented=offer.shape.rented if offer.shape else None,
        priced_at=offer.listed.source.origin.citation if offer.listed and offer.shape else None,
        gpu_count=candidate.gpu_count,
        tensor_parallel_size=candidate.tensor_parallel_size
        if search.demand.kind in PARALLEL
        else 1,
        replicas=candidate.replicas,
        usd_per_hour=usd_per_hour,
        seconds=None if candidate.hours is None else canonical(candidate.hours * 3600),
        gate=gate,
        shortfalls=shortfalls,
        flip=flip,
    )


def _flip(weigher: Weigher, chosen: Outcome, place: int, candidate: Candidate) -> Flip | None:
    """The price of one GPU below which a combination with the candidate's type here costs least of
    all that were weighed."""
    pool, price = candidate.device.offer.pool, candidate.device.offer.usd_per_gpu_hour
    if price is None or chosen.candidates[place].device.offer.pool == pool:
        return None
    weighed = [o for o in weigher.seen.values() if o.rank[:3] == chosen.rank[:3]]
    lines = [(o, (amount := o.amount(pool)), o.cost - amount * price.value) for o in weighed]
    mine = [x for x in lines if x[0].candidates[place].device.offer.pool == pool]
    rivals = [x for x in lines if x[0].candidates[place].device.offer.pool != pool]
    at = price.value
    for _ in rivals:  # one line of their lower envelope after the other; prices that round to none
        rival, amount, rest = min(rivals, key=lambda x: (x[2] + x[1] * at, x[0] is not chosen))
        crossings = [_crossing(x, (rival, amount, rest)) for x in mine]
        below = max((min(c, at) for c in crossings if c and c <= at * (1 + SLACK)), default=0.0)
        if below <= 0.0:
            return None
        if rest + amount * below <= min(x[2] + x[1] * below for x in rivals) * (1 + SLACK):
            return _at_price(price.value, below)
        at = below
    return None


Line = tuple[Outcome, float, float]


def _crossing(mine: Line, rival: Line) -> float | None:
    """The price at which two lines cost the same."""
    slope = mine[1] - rival[1]
    return (rival[2] - mine[2]) / slope if slope > 0 else None


def _forced_flip(chosen: Outcome, swap: Outcome, place: int) -> Flip | None:
    """The price at which the candidate would cost what the one that was asked for does."""
    pool = swap.candidates[place].device.offer.pool
    price = swap.candidates[place].device.offer.usd_per_gpu_hour
    more = swap.amount(pool) - chosen.amount(pool)
    if price is None or more <= 0:
        return None
    needed = price.value + (chosen.cost - swap.cost) / more
    return _at_price(price.value, needed) if needed > 0 else None


def _at_price(now: float, needed: float) -> Flip:
    exact = float(_FOUR_DIGITS.create_decimal(repr(needed)))
    return Flip(quantity="usd_per_gpu_hour", now=now, needed=exact, unit="USD/h")
