"""Which place a stack's nodes are bought at, where the cheapest of all are in several."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.catalog.load import load_catalog
from gpuplan.catalog.shapes import Wanted, shapes
from gpuplan.placement.pools.places import Offered, in_one_place
from gpuplan.sizing.decide.searched import Search
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from tests.placement.test_joint import CHAT, RUN, _candidate, _named, _offer

TRIED = [_offer(g, 1.0, shape=shapes(load_catalog(), g, Wanted())[0]) for g in ("a10", "l4")]


def search(*gpus: int, name: str = "w", **changes: object) -> Search:
    """So many GPUs of each type that was tried; of none for 0."""
    groups = [(o, (_candidate(o, n, **changes),)) for o, n in zip(TRIED, gpus, strict=True) if n]
    return Search(replace(CHAT, name=name), tuple(groups))


def place(name: str, asked: list[str], **prices: float) -> Offered:
    """One with nodes of eight of each type at a price; `asked` notes that its nodes were wanted."""

    def site() -> Site:
        asked.append(name)
        offers: list[GpuOffer] = [_offer(gpu, usd) for gpu, usd in prices.items()]
        return Site(target="kubernetes", gpus=tuple(offers), fabric=None)

    return Offered(place=("p", name), rates=prices, site=site)


def test_the_place_is_taken_where_all_workloads_together_cost_least() -> None:
    """Eight of each type: one is cheap for one of them, the other for both."""
    asked: list[str] = []
    both = [search(8, 0, name="a"), search(0, 8, name="b")]
    places = [place("dear", asked, a10=1.0, l4=9.0), place("even", asked, a10=3.0, l4=3.0)]
    for order in (places, places[::-1]):
        found = in_one_place(both, order, None)
        assert found is not None
        assert found.chosen.cost == 8 * 3.0 + 8 * 3.0
        assert _named(found.chosen) == ["a10", "l4"]


def test_a_place_that_cannot_cost_less_is_not_looked_at() -> None:
    """Nodes are paid whole: a workload on one GPU fills an eighth of one at the dear place, which
    is less than the whole cheap node, and more at the dearest."""
    asked: list[str] = []
    whole, part = search(8, 0), search(1, 0)
    places = [place("cheap", asked, a10=1.0), place("dear", asked, a10=7.9)]
    places.append(place("dearest", asked, a10=8.1))
    assert in_one_place([whole], places, None) is not None
    assert asked == ["cheap"], "eight GPUs fill the node"
    asked.clear()
    found = in_one_place([part], places, None)
    assert found is not None
    assert found.chosen.cost == 8.0
    assert asked == ["cheap", "dear"], "7.90 could be less than 8, and 8.10 not"


def test_a_place_without_a_type_that_is_needed_is_none() -> None:
    asked: list[str] = []
    both = [search(8, 0, name="a"), search(0, 8, name="b")]
    assert in_one_place(both, [place("half", asked, a10=1.0)], None) is None
    assert in_one_place(both, [], None) is None
    assert asked == []
    either = search(8, 16)
    found = in_one_place([either], [place("half", asked, l4=1.0)], None)
    assert found is not None
    assert (_named(found.chosen), found.chosen.cost) == (["l4"], 16.0)


@pytest.mark.parametrize(("price", "looked"), [(1.9, 2), (2.1, 1)])
def test_a_run_fills_the_part_of_a_month_that_it_takes(price: float, looked: int) -> None:
    """Four GPUs for a tenth of a month cost 0.4 of one's price at least; where a node of eight is
    paid whole, 0.8 of a lower one."""
    asked: list[str] = []
    run = replace(search(4, 0, hours=73.0), demand=RUN)
    places = [place("cheap", asked, a10=1.0), place("dear", asked, a10=price)]
    found = in_one_place([run], places, None)
    assert found is not None
    assert found.chosen.cost == pytest.approx(0.8)
    assert len(asked) == looked
