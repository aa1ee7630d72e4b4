"""Which combination of candidates is chosen, and what would choose another, against all of them."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.main import main
from gpuplan.placement.pools.bounded import searched
from gpuplan.placement.pools.joint import MOST_COMBINATIONS, bounded, finished, joint
from gpuplan.placement.pools.outcome import Outcome, Weigher
from gpuplan.placement.pools.together import size_all
from gpuplan.placement.pools.verdicts import alternatives
from gpuplan.plan.model import Alternative, Shortfall
from gpuplan.sizing.candidates.choose import Candidate, Merit
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.decide.searched import Search
from gpuplan.sizing.decide.size import search
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from tests.support.sizing_cases import BATCH, CHAT_8B, offer, site, wanted

ROOT = Path(__file__).parents[2]
NODE = 8
NAMES = ("a10", "l4", "l40s")
Prices = dict[str, float]
Combination = tuple[tuple[str, int], ...]  # type and GPUs of each workload
CHAT, RUN = wanted(CHAT_8B), wanted(BATCH)


@dataclass(frozen=True)
class Case:
    """`sizes` are the GPUs of each workload on each type, in one replica. Nodes are bought."""

    prices: Prices
    sizes: tuple[dict[str, int], ...]

    @property
    def combinations(self) -> list[Combination]:
        return list(product(*(sizes.items() for sizes in self.sizes)))

    def parts(self, combination: Combination, prices: Prices) -> list[float]:
        """What each pays: its part of the nodes that its type needs. Powers of two fill nodes."""
        asked: dict[str, int] = defaultdict(int)
        for name, gpus in combination:
            asked[name] += gpus
        nodes = {name: -(-gpus // NODE) for name, gpus in asked.items()}
        return [
            prices[name] * nodes[name] * NODE * gpus / asked[name] for name, gpus in combination
        ]

    def cost(self, combination: Combination, prices: Prices | None = None) -> float:
        return sum(self.parts(combination, prices or self.prices))

    def least(self, place: int, gpu: str, price: float) -> tuple[float, float]:
        """The least cost with `gpu` at `place` and without, where it has the price."""
        prices = self.prices | {gpu: price}
        costs = [(c[place][0] == gpu, self.cost(c, prices)) for c in self.combinations]
        with_it = min(cost for uses, cost in costs if uses)
        return with_it, min(cost for uses, cost in costs if not uses)

    def answer(self) -> tuple[list[Search], Weigher, Outcome]:
        offers = {name: _offer(name, price) for name, price in self.prices.items()}
        searches = [
            Search(
                replace(CHAT, name=f"w{n}"),
                tuple((o, (_candidate(o, self.sizes[n][name]),)) for name, o in offers.items()),
            )
            for n in range(len(self.sizes))
        ]
        return _chosen(searches, tuple(offers.values()))


def _offer(name: str, price: float | None, **changes: Any) -> GpuOffer:
    usd = None if price is None else Quantity(price, "USD/h", "test")
    room = {"cpu_cores_per_node": None, "memory_bytes_per_node": None}
    return offer(name, gpus_per_node=NODE, usd_per_gpu_hour=usd, **(room | changes))


def _candidate(on: GpuOffer, gpus: int, replicas: int = 1, **changes: Any) -> Candidate:
    values = {"isolation": CHAT.isolation} | changes
    return Candidate(device=whole(on), gpus=gpus, replicas=replicas, **values)


def _chosen(
    searches: Sequence[Search], offers: tuple[GpuOffer, ...], target: str = "kubernetes"
) -> tuple[list[Search], Weigher, Outcome]:
    weigher = Weigher(searches, Site(target=target, gpus=offers, fabric=None))
    return list(searches), weigher, bounded(searches, weigher)[0]


def _named(outcome: Outcome) -> list[str]:
    return [c.device.gpu.identifier for c in outcome.candidates]


def _others(answer: tuple[list[Search], Weigher, Outcome], place: int = 0) -> list[Alternative]:
    searches, weigher, outcome = answer
    return list(alternatives(searches[place], weigher, outcome, place))


def cases() -> Iterator[Case]:
    draw = random.Random(5)
    for count in (1, 2, 2, 3):
        for _ in range(8):
            prices = {name: round(draw.uniform(0.5, 4), 2) for name in NAMES}
            sizes = tuple({n: draw.choice((1, 2, 4, 8, 16)) for n in NAMES} for _ in range(count))
            yield Case(prices, sizes)


def even() -> Iterator[Case]:
    """Prices and sizes of which several combinations cost the same."""
    draw = random.Random(7)
    for count in (1, 2, 2, 3):
        for _ in range(8):
            prices = {name: draw.choice((1.0, 1.0, 2.0)) for name in NAMES}
            yield Case(
                prices, tuple({n: draw.choice((2, 4, 8, 16)) for n in NAMES} for _ in range(count))
            )


CASES = list(cases())


def test_the_cheapest_combination_is_chosen_and_each_pays_its_part() -> None:
    for case in CASES:
        searches, weigher, outcome = case.answer()
        cheapest = min(map(case.cost, case.combinations))
        assert outcome.cost == pytest.approx(cheapest)
        assert outcome.usd_per_hour == pytest.approx(cheapest)
        taken = tuple((n, s[n]) for n, s in zip(_named(outcome), case.sizes, strict=True))
        paid = [weigher.paid(outcome, n).usd_per_hour for n in range(len(searches))]
        assert [float(p or 0) for p in paid] == pytest.approx(case.parts(taken, case.prices))
        assert outcome.gpus == sum(gpus for _, gpus in taken)


@pytest.mark.parametrize("budget", [None, Decimal(10), Decimal(60)])
def test_what_is_not_looked_at_could_not_have_been_better(budget: Decimal | None) -> None:
    """Of every combination of three workloads the best, though most are never weighed whole."""
    looked = combinations = 0
    for case in (*CASES, *even()):
        searches, every, _ = case.answer()
        weigher = Weigher(
            searches, Site(target="kubernetes", gpus=every.offers, fabric=None), budget
        )
        options = [[c for _, group in s.groups for c in group] for s in searches]
        best = min(map(weigher, product(*options)), key=lambda o: o.rank)
        for start in map(weigher, product(*(each[:1] for each in options))):
            fresh = Weigher(
                searches, Site(target="kubernetes", gpus=every.offers, fabric=None), budget
            )
            found, least = searched(start, options, fresh)
            assert found.rank == best.rank
            assert least == found.cost
            looked += len(fresh.seen)
            combinations += len(list(product(*options)))
    assert looked < combinations / 2


def test_where_the_work_ends_no_combination_costs_less_than_is_said() -> None:
    """Nor is less said than the GPUs of each workload cost at least; with no work none is done."""
    ended = 0
    for case in CASES:
        searches, every, _ = case.answer()
        options = [[c for _, group in s.groups for c in group] for s in searches]
        best = min(map(every, product(*options)), key=lambda o: o.rank)
        gpus = sum(min(case.prices[n] * g for n, g in sizes.items()) for sizes in case.sizes)
        for limit in range(8):
            fresh = Weigher(searches, Site(target="kubernetes", gpus=every.offers, fabric=None))
            start = fresh([each[-1] for each in options])
            before = fresh.looks
            found, least = searched(start, options, fresh, limit)
            assert found.rank <= start.rank
            assert min(gpus, found.cost) * (1 - 1e-9) <= least <= best.cost * (1 + 1e-9)
            assert fresh.looks <= before + (limit + len(options) if limit else 0)
            ended += least < found.cost
    assert ended > 50


def test_of_many_combinations_that_take_as_much_the_one_with_most_room_is_found() -> None:
    """Nobody prices them, and all have as many GPUs."""
    there = _offer("l4", None)
    rooms = (1.0, 3.0, 2.0)
    made = [_candidate(there, 8, merit=Merit(lambda room=room: (room, 1.0))) for room in rooms]
    weigher = Weigher(
        [Search(CHAT, ((there, tuple(made)),))],
        Site(target="kubernetes", gpus=(there,), fabric=None),
    )
    for start in made:
        found, _ = searched(weigher([start]), [made], weigher)
        assert found.candidates == (made[1],)
        assert found.candidates[0] is made[1]


def test_many_workloads_share_a_type_that_is_dearest_for_each_alone() -> None:
    """Seven on one node at $8.80, where each alone would take a node at $7.20, and all two of it;
    no single change leads there."""
    prices = {"l4": 0.9, "a10": 1.0, "l40s": 1.1}
    case = Case(prices, ({"l4": 2, "a10": 2, "l40s": 1},) * 7)
    assert len(case.combinations) > MOST_COMBINATIONS
    _, _, outcome = case.answer()
    assert _named(outcome) == ["l40s"] * 7
    assert outcome.cost == pytest.approx(8.8)


def test_an_alternative_costs_its_workload_what_the_plan_would_cost_more() -> None:
    for case in CASES:
        searches, weigher, outcome = case.answer()
        taken = tuple((n, s[n]) for n, s in zip(_named(outcome), case.sizes, strict=True))
        for place in range(len(searches)):
            others = alternatives(searches[place], weigher, outcome, place)
            assert {a.gpu for a in others} == {*NAMES} - {taken[place][0]}
            own = case.parts(taken, case.prices)[place]
            totals = []
            for item in others:
                size = case.sizes[place][item.gpu]
                swapped = (*taken[:place], (item.gpu, size), *taken[place + 1 :])
                totals.append(case.cost(swapped))
                more = totals[-1] - case.cost(taken)
                assert (item.gate, item.gpu_count) == ("cost", size)
                assert float(item.usd_per_hour or 0) == pytest.approx(own + more, abs=1e-5)
            assert totals == sorted(totals), "nearest first"


def test_a_type_is_chosen_below_the_price_that_is_named_and_not_above() -> None:
    named = 0
    for case in (*CASES, *even()):
        searches, weigher, outcome = case.answer()
        for place in range(len(searches)):
            for item in alternatives(searches[place], weigher, outcome, place):
                now, top = case.prices[item.gpu], case.prices[item.gpu]
                if item.flip is not None:
                    named += 1
                    top = item.flip.needed
                    assert (item.flip.now, item.flip.unit) == (now, "USD/h")
                    assert item.flip.quantity == "usd_per_gpu_hour"
                    uses, rest = case.least(place, item.gpu, top)
                    assert uses <= rest * (1 + 1e-9)
                    above = [top * 1.002 + (now - top * 1.002) * k / 20 for k in range(21)]
                else:
                    above = [now * k / 50 for k in range(1, 51)]
                for price in above if above[0] <= now else ():
                    uses, rest = case.least(place, item.gpu, price)
                    assert uses >= rest * (1 - 1e-9), (case, place, item)
    assert named > 50


def test_no_price_chooses_a_type_beside_one_that_costs_nothing() -> None:
    free, priced = _offer("a10", 0.0), _offer("l4", 4.0)
    groups = ((free, (_candidate(free, 8),)), (priced, (_candidate(priced, 8),)))
    answer = _chosen([Search(CHAT, groups)], (free, priced))
    assert _named(answer[2]) == ["a10"]
    (item,) = _others(answer)
    assert (item.gate, item.usd_per_hour, item.flip) == ("cost", Decimal(32), None)


@pytest.mark.parametrize("forced", [False, True])
def test_a_forced_type_says_at_what_price_it_would_cost_the_same(forced: bool) -> None:
    dear, cheap = _offer("a10", 4.0), _offer("l4", 1.0)
    overrides = replace(CHAT.overrides, gpu="a10" if forced else None)
    demand = replace(CHAT, overrides=overrides)
    search = Search(demand, ((dear, (_candidate(dear, 8),)), (cheap, (_candidate(cheap, 16),))))
    answer = _chosen([search], (dear, cheap))
    assert _named(answer[2]) == (["a10"] if forced else ["l4"])
    (item,) = _others(answer)
    needed = 2.0  # 32 USD for 8 or 16 GPUs, and the other way round
    assert item.flip is not None
    assert (item.gate, item.flip.needed) == (("override" if forced else "cost"), needed)
    assert item.flip.now == (1.0 if forced else 4.0)
    assert item.usd_per_hour == (16 if forced else 32)


def test_nodes_of_the_same_type_have_no_price_of_their_own_to_choose_them_at() -> None:
    """Four GPUs on a node of eight or of four: both are paid by the GPU."""
    eight = _offer("a10", 1.0)
    four = replace(_offer("a10", 3.0), gpus_per_node=4)
    other = _offer("l4", 9.0)
    groups = tuple((o, (_candidate(o, 4),)) for o in (eight, four, other))
    answer = _chosen([Search(CHAT, groups)], (eight, four, other))
    assert answer[2].cost == 8
    item, _ = _others(answer)
    assert (item.gate, item.gpu, item.flip) == ("cost", "a10", None)


def test_an_alternative_of_the_same_cost_saves_nothing_and_says_so_not() -> None:
    """One that costs less than what was asked for says how much."""
    for price, saves in ((1.0, None), (0.75, Decimal(2)), (1.25, None)):
        asked, other = _offer("a10", 1.0), _offer("l4", price)
        demand = replace(CHAT, overrides=replace(CHAT.overrides, gpu="a10"))
        groups = ((asked, (_candidate(asked, 8),)), (other, (_candidate(other, 8),)))
        answer = _chosen([Search(demand, groups)], (asked, other))
        assert _named(answer[2]) == ["a10"]
        (item,) = _others(answer)
        assert (item.usd_per_hour, item.saves_usd_per_hour) == (Decimal(8) * Decimal(price), saves)


# --- what has no price, and what there is too little of -------------------------------------------


def test_priced_types_come_before_unpriced_ones_and_of_those_the_one_with_fewest_gpus() -> None:
    first, second, priced = _offer("a10", None), _offer("l4", None), _offer("l40s", 9.0)
    many, few = (first, (_candidate(first, 16),)), (second, (_candidate(second, 8),))
    answer = _chosen([Search(CHAT, (many, few))], (first, second))
    assert _named(answer[2]) == ["l4"]
    (item,) = _others(answer)
    assert (item.gate, item.usd_per_hour, item.flip) == ("price unknown", None, None)
    answer = _chosen(
        [Search(CHAT, (many, few, (priced, (_candidate(priced, 16),))))], (first, second, priced)
    )
    assert _named(answer[2]) == ["l40s"]
    assert [a.gpu for a in _others(answer)] == ["l4", "a10"]


def test_what_is_weighed_is_counted_once_a_combination() -> None:
    first, second = _offer("a10", 1.0), _offer("l4", 2.0)
    groups = ((first, (_candidate(first, 8),)), (second, (_candidate(second, 8),)))
    _, weigher, _ = _chosen([Search(CHAT, groups)], (first, second))
    assert weigher.looks == 2
    assert weigher(next(iter(weigher.seen.values())).candidates)
    assert weigher.looks == 2, "it is known"
    assert not any(outcome.over_budget for outcome in weigher.seen.values()), "there is none"


def test_of_two_that_lack_nodes_the_one_that_lacks_fewer_is_taken() -> None:
    """Two workloads of two nodes each, on three nodes that are there or on two."""
    three, two = _offer("a10", 4.0, node_count=3), _offer("l4", 1.0, node_count=2)
    searches = [
        Search(
            replace(CHAT, name=f"w{n}"),
            ((three, (_candidate(three, 16),)), (two, (_candidate(two, 16),))),
        )
        for n in range(3)
    ]
    *_, pair = _chosen(searches[:2], (three, two))
    assert pair.feasible
    assert sorted(_named(pair)) == ["a10", "l4"], "two on l4 would cost less, and have no room"
    *_, outcome = _chosen(searches, (three, two))
    assert not outcome.feasible
    assert sorted(_named(outcome)) == ["a10", "a10", "l4"]
    (short,) = outcome.lacking
    assert (short.resource, short.requested, short.capacity) == ("nodes with a10", 4, 3)


def test_fewer_that_are_lacking_come_before_fewer_that_are_there() -> None:
    """Three nodes where one is there lack two; four where three are there lack one."""
    small, large = _offer("a10", 1.0, node_count=1), _offer("l4", 4.0, node_count=3)
    types = ((small, (_candidate(small, 24),)), (large, (_candidate(large, 32),)))
    *_, outcome = _chosen([Search(CHAT, types)], (small, large))
    assert _named(outcome) == ["l4"]


def test_where_not_all_is_weighed_the_first_workload_says_so_beside_its_own() -> None:
    where = site("l40s")
    searches = [s for d in (CHAT, RUN) if isinstance(s := search(d, where), Search)]
    all_weighed = joint(searches, where, None)
    exact = [answer.diagnostics for answer in finished(all_weighed) if isinstance(answer, Sized)]
    bounded = replace(all_weighed, bound=all_weighed.chosen.cost * 0.9)
    first, second = [a.diagnostics for a in finished(bounded) if isinstance(a, Sized)]
    assert second == exact[1]
    weighed = [a.workload.name for a in finished(bounded) if isinstance(a, Sized)]
    assert weighed == [CHAT.name, RUN.name]
    assert first[:-1] == exact[0]
    assert "another one would cost at most 10 % less" in first[-1].message


def test_an_alternative_without_nodes_beside_the_others_says_what_is_short() -> None:
    plenty, scarce = _offer("a10", 1.0), _offer("l4", 0.5, node_count=1)
    searches = [
        Search(
            replace(CHAT, name=f"w{n}"),
            ((plenty, (_candidate(plenty, 8),)), (scarce, (_candidate(scarce, 8),))),
        )
        for n in range(2)
    ]
    answer = _chosen(searches, (plenty, scarce))
    assert sorted(_named(answer[2])) == ["a10", "l4"]
    place = _named(answer[2]).index("a10")
    (item,) = _others(answer, place)
    assert (item.gpu, item.gate, item.usd_per_hour) == ("l4", "nodes with l4", None)
    assert [(s.requested, s.capacity) for s in item.shortfalls] == [(2, 1)]


def test_an_offer_where_nothing_fits_shows_what_got_furthest_and_comes_last() -> None:
    def stopped(on: GpuOffer, gpus: int, passed: int) -> Candidate:
        gate = Shortfall(resource=f"gate {passed}", requested=2, used=0, capacity=1, unit="1")
        return _candidate(on, gpus, shortfalls=(gate,), passed=passed)

    taken, dear = _offer("a10", 1.0), _offer("h100-sxm-80gb", 4.0)
    near, far = _offer("l40s", 1.0), _offer("l4", 1.0)
    groups = (
        (far, (stopped(far, 1, 1), stopped(far, 2, 0))),
        (near, (stopped(near, 4, 2), stopped(near, 2, 3))),
        (dear, (_candidate(dear, 8),)),
        (taken, (_candidate(taken, 8),)),
    )
    others = _others(_chosen([Search(CHAT, groups)], (far, near, dear, taken)))
    assert [(a.gpu, a.gate) for a in others] == [
        ("h100-sxm-80gb", "cost"),
        ("l40s", "gate 3"),
        ("l4", "gate 1"),
    ]
    assert [a.tensor_parallel_size for a in others] == [8, 2, 1]


def test_gpus_of_hosts_are_counted_over_all_of_their_type() -> None:
    """Three hosts of four, four and eight, and one of eight dearer ones: hosts are paid whole."""
    four, eight = _offer("a10", 1.0, node_count=2), _offer("a10", 1.0, node_count=1)
    four = replace(four, gpus_per_node=4)
    other = _offer("l4", 3.0, node_count=1)

    def search(gpus: int) -> Search:
        groups = ((four, (_candidate(four, 1, gpus),)), (other, (_candidate(other, 1, 4),)))
        return Search(CHAT, groups)

    searches, weigher, outcome = _chosen([search(16)], (four, eight, other), "libvirt")
    assert _named(outcome) == ["a10"], "16 USD and not 24, half of which nobody uses"
    (item,) = alternatives(searches[0], weigher, outcome, 0)
    assert (item.gate, item.usd_per_hour) == ("cost", Decimal(24))
    answer = _chosen([search(11)], (four, eight, other), "libvirt")
    assert (_named(answer[2]), answer[2].cost) == (["a10"], 12)
    answer = _chosen([search(17)], (four, eight, other), "libvirt")
    assert _named(answer[2]) == ["l4"]
    (item,) = _others(answer)
    assert item.gate == "a10"
    assert [(s.requested, s.used, s.capacity) for s in item.shortfalls] == [(17, 0, 16)]


# --- runs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hours", "chosen"), [(4.9, "few"), (5.1, "many")], ids=["cheaper", "dearer"]
)
def test_a_run_is_weighed_as_a_whole_on_whole_nodes(hours: float, chosen: str) -> None:
    """Sixteen GPUs for five hours, or eight; four of a node of eight pay all of it."""
    many, few = (_offer("a10", 2.0, node_count=9), _offer("l4", 4.0, node_count=9))
    groups = (
        (many, (_candidate(many, 16, hours=5.0),)),
        (few, (_candidate(few, 4, hours=hours),)),
    )
    answer = _chosen([Search(RUN, groups)], (many, few))
    assert _named(answer[2]) == ["l4" if chosen == "few" else "a10"]
    assert answer[2].usd_per_hour == pytest.approx(32.0), "while it runs"
    (item,) = _others(answer)
    assert item.usd_per_hour == answer[1].paid(answer[2], 0).usd_per_hour, "an hour costs as much"
    assert item.saves_usd_per_hour is None
    assert item.seconds == pytest.approx(3600 * (5.0 if chosen == "few" else hours))
    assert item.flip is not None
    if chosen == "few":
        assert item.flip.needed == pytest.approx(2.0 * hours / 5, rel=1e-3)
    else:
        assert item.flip.needed == pytest.approx(4.0 * 5 / hours, rel=1e-3)


def test_workloads_that_fit_nowhere_are_answered_with_what_they_lack() -> None:
    site = Site(target="kubernetes", gpus=(_offer("t4", 1.0, node_count=0),), fabric=None)
    for demands in ((CHAT,), (CHAT, replace(CHAT, name="other"))):
        answers, _ = size_all(demands, site)
        assert len(answers) == len(demands)
        assert all(isinstance(a, tuple) and a for a in answers)


def test_a_price_beside_which_others_round_to_nothing_is_weighed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "examples/gke.yaml").read_text(encoding="utf-8")
    dear = re.sub(r"h200-sxm-141gb: \$[0-9.]+/h", "h200-sxm-141gb: $999999999999/h", text)
    assert dear != text
    (tmp_path / "m.yaml").write_text(dear, encoding="utf-8")
    assert main(["compile", str(tmp_path / "m.yaml"), "-o", str(tmp_path / "out")]) == 0
    assert "the plan costs $" in capsys.readouterr().err
