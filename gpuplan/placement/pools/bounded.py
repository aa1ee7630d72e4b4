"""Many combinations: one that single changes lead to, then all that may be better than it.

Workloads are added one by one. What some of them pay, more of them pay at least, and a candidate
pays at least its share of GPUs: where that is more than the best combination known, none that
begins so is looked at. The work is limited by what is weighed, never by time; where that ends it,
the least that what was not looked at could cost is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpuplan.placement.pools.outcome import Outcome, Pair, Weigher
from gpuplan.sizing.candidates.choose import Candidate, leading
from gpuplan.units import HOURS_PER_MONTH

MOST_STARTS = 3
MOST_LOOKS = 2_000
SLACK = 1e-9

Options = Sequence[list[Candidate]]
Bound = tuple[float, ...]


def downhill(options: Options, weigher: Weigher) -> Outcome:
    """From each workload's own best, and from all on one GPU type, single changes downhill."""
    few = [leading(each) for each in options]
    types = dict.fromkeys(c.device.pool for candidates in few for c in candidates)
    starts = {id(o): o for pool in (None, *types) for o in [weigher(_start(few, pool))]}
    nearest = sorted(starts.values(), key=lambda o: o.rank)[:MOST_STARTS]
    return min((_changed(start, few, weigher) for start in nearest), key=lambda o: o.rank)


def _start(options: Options, pool: str | None) -> list[Candidate]:
    """Each workload's best on `pool`, where it fits there, else its best."""
    return [next((c for c in each if c.device.pool == pool), each[0]) for each in options]


def _changed(start: Outcome, options: Options, weigher: Weigher) -> Outcome:
    while True:
        best = start
        for place, candidates in enumerate(options):
            now = best.candidates
            swaps = [weigher((*now[:place], c, *now[place + 1 :])) for c in candidates]
            best = min([best, *swaps], key=lambda o: o.rank)
        if best.rank >= start.rank:
            return start
        start = best


def searched(
    known: Outcome, options: Options, weigher: Weigher, looks: int = MOST_LOOKS
) -> tuple[Outcome, float]:
    """The best combination, `known` or one that is better; and what no combination costs less
    than, which is its cost where all were looked at."""
    search = _Search(known, options, weigher, looks)
    search.deeper((), 0.0)
    return search.best, min(search.open, search.best.cost)


class _Search:
    """Depth first, the dearest workload before the others, its cheapest candidates first."""

    def __init__(self, known: Outcome, options: Options, weigher: Weigher, looks: int) -> None:
        self.best, self.weigher, self.open = known, weigher, math.inf
        priced = known.feasible and not known.paid[2]
        self.options = [[c for c in each if _priced(c)] if priced else each for each in options]
        prices: dict[str, float] = {}  # the least of the nodes that a pool may be of
        for offer in weigher.offers:
            price = offer.usd_per_gpu_hour.value if offer.usd_per_gpu_hour else 0.0
            prices[offer.pool] = min(price, prices.get(offer.pool, price))
        self.shares = [
            [_share(c, prices[c.device.offer.pool]) for c in each] for each in self.options
        ]
        least = [min(each) for each in self.shares]
        self.order = sorted(range(len(options)), key=lambda n: (-least[n], n))
        self.rest = [sum(least[n] for n in self.order[depth:]) for depth in range(len(options) + 1)]
        self.gpus = [
            sum(min(float(c.asked_gpus) for c in self.options[n]) for n in self.order[depth:])
            for depth in range(len(options) + 1)
        ]
        self.end = weigher.looks + looks

    def deeper(self, pairs: tuple[Pair, ...], paid: float) -> None:
        depth = len(pairs)
        if depth == len(self.order):
            self._complete(pairs)
            return
        place = self.order[depth]
        tried = []
        for number, candidate in enumerate(self.options[place]):
            share = paid + self.shares[place][number]
            if self.weigher.looks >= self.end:
                self.open = min(self.open, share + self.rest[depth + 1])
                continue
            if share + self.rest[depth + 1] > self.best.cost * (1 + SLACK) and self._cheap:
                continue
            more = (*pairs, (place, candidate))
            bound = self._bound(self.weigher.part(more), share, depth + 1)
            if bound <= self.best.paid:
                tried.append((bound, number, more, share))
        for bound, _, more, share in sorted(tried, key=lambda t: t[:2]):
            if bound <= self.best.paid:
                self.deeper(more, share)

    @property
    def _cheap(self) -> bool:
        """Whether the best one known fits, is priced and within the budget: cost alone decides."""
        return not any(self.best.paid[:4])

    def _bound(self, part: Outcome, share: float, depth: int) -> Bound:
        """What every combination that begins so is at least."""
        short, refused, unpriced, over, cost, rest, gpus = part.paid
        least = max(cost, share + self.rest[depth]) * (1 - SLACK)
        return short, refused, unpriced, over, least, rest, gpus + self.gpus[depth]

    def _complete(self, pairs: tuple[Pair, ...]) -> None:
        whole = self.weigher([c for _, c in sorted(pairs, key=lambda pair: pair[0])])
        self.best = min(self.best, whole, key=lambda o: o.rank)


def _priced(candidate: Candidate) -> bool:
    return candidate.device.offer.usd_per_gpu_hour is not None


def _share(candidate: Candidate, price: float) -> float:
    """USD an hour of a month that its GPUs cost at least, whoever has the others of its nodes."""
    hours = 1.0 if candidate.hours is None else candidate.hours / HOURS_PER_MONTH
    return price * float(candidate.least_gpus) * hours
