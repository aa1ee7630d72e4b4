"""What owning costs, by published calculations that were redone by hand, one test a row."""

from __future__ import annotations

from decimal import Decimal

import pytest

from gpuplan.money.inputs import UNITS, Value
from gpuplan.money.owned import (
    Group,
    Owning,
    annuity,
    break_even_months,
    counted_twice_months,
    owning,
    power_usd_per_month,
)
from gpuplan.money.parts import Part

D = Decimal


def values(**given: str) -> dict[str, Value]:
    named = {
        name: name.replace("__", ".")
        if "__" in name
        else f"owned.{name}"
        for name in given
    }  # fmt: skip
    return {
        named[n]: Value(
            name=named[n],
            unit=UNITS[named[n]],
            low=None,
            typical=D(text),
            high=None,
            source="a test",
            given=True,
        )
        for n, text in given.items()
    }


def owned(nodes: int = 1, hours: str = "730", **given: str) -> Owning:
    found = owning([Group(name="n", nodes=nodes, values=values(**given))], D(hours))
    assert found is not None
    return found


def part(found: Owning, name: str) -> Part:
    return next(p for p in found.parts if p.name == name)


def test_the_calculator_that_prints_137_months_for_35_6() -> None:
    """Eight GPUs at 35,000 and 40 % beside them; 0.7 kW a GPU for 400 hours a month, PUE 1.4, 0.12
    a kWh; 3,000 a month for the place; 4.50 an hour for each GPU in the cloud."""
    found = owned(
        hours="400",
        purchase="280000",
        network_share="0.4",
        power="5600",
        load="1",
        pue="1.4",
        tariff="0.12",
        facility="3000",
        maintenance="0",
        staff="0",
        life_months="48",
    )
    cloud = 8 * 400 * D("4.50")
    assert found.purchase == 392000
    assert part(found, "power").usd_per_month == D("376.32")
    assert found.running_per_month == D("3376.32")
    assert found.depreciation_per_month is not None
    monthly = found.depreciation_per_month + found.running_per_month
    assert round(monthly, 2) == D("11542.99")
    saved = cloud - found.running_per_month
    months = break_even_months(found.upfront, saved, found.finance_per_month, 0)
    assert months is not None
    assert round(months, 2) == D("35.56")
    twice = counted_twice_months(found.purchase, saved, D(48))
    assert twice is not None
    assert round(twice, 1) == D("137.2")


def test_a_server_of_833806_usd_against_98_32_an_hour() -> None:
    hours = break_even_months(D(833806), D("98.32") - D("0.87"), D(0), 0)
    assert hours is not None
    assert round(hours) == 8556
    assert round(hours / 730, 1) == D("11.7")
    cloud, own = D("98.32") * 43800, D(833806) + D("0.87") * 43800
    assert (cloud, own, cloud - own) == (4306416, 871912, 3434504)


def test_the_same_server_against_the_price_that_was_cut() -> None:
    """At 55.04 an hour the break-even moves from 12 to 21 months."""
    hours = break_even_months(D(833806), D("55.04") - D("0.87"), D(0), 0)
    assert hours is not None
    assert round(hours / 730) == 21


@pytest.mark.parametrize(
    ("node", "rate", "total"), [("300000", "150", 355080), ("350000", "250", 441800)]
)
def test_colocation_of_eight_h100_for_three_years(node: str, rate: str, total: int) -> None:
    found = owned(
        purchase=node,
        power="10200",
        pue="1.5",
        tariff="0.10",
        maintenance="0",
        staff="0",
        owned__colocation__price=rate,
        owned__colocation__includes_power="1",
    )
    assert found.purchase + 36 * found.running_per_month == total
    assert "power" not in [p.name for p in found.parts]  # never counted twice


def test_colocation_without_power_pays_for_it_beside() -> None:
    found = owned(
        purchase="1",
        power="10000",
        load="0.8",
        pue="1.5",
        tariff="0.10",
        owned__colocation__price="100",
        owned__colocation__includes_power="0",
    )
    assert part(found, "colocation").usd_per_month == 1000
    assert part(found, "power").usd_per_month == 10 * D("0.8") * D("1.5") * 730 * D("0.10")


def test_what_nobody_states_is_unpriced() -> None:
    found = owned(purchase="100000")
    assert found.unpriced == ("power", "maintenance", "staff")
    assert found.depreciation_per_month is None
    assert owning([Group(name="n", nodes=1, values={})]) is None


def test_without_a_known_load_the_most_that_it_draws_is_paid() -> None:
    found = owned(purchase="1", power="1000", pue="1", tariff="1")
    assert part(found, "power").usd_per_month == 730
    assert "at most" in part(found, "power").what


def test_an_annuity_repays_with_interest() -> None:
    payment = annuity(D(100000), D("0.06"), 36)
    left = D(100000)
    for _ in range(36):
        left = left * (1 + D("0.005")) - payment
    assert abs(left) < D("0.000001")
    assert annuity(D(360), D(0), 36) == 10


def test_financing_moves_the_purchase_into_the_months() -> None:
    found = owned(
        nodes=2,
        purchase="50000",
        maintenance="0",
        staff="0",
        power="1",
        pue="1",
        tariff="0.1",
        owned__financing__rate="0",
        owned__financing__months="10",
        owned__financing__share="0.8",
    )
    assert (found.upfront, found.finance_per_month) == (20000, 8000)
    # 10,000 are saved a month: 2,000 are left while it is financed, so 20,000 take ten months
    assert break_even_months(D(20000), D(10000), D(8000), 10) == 10
    assert break_even_months(D(30000), D(10000), D(8000), 10) == 11
    assert break_even_months(D(0), D(9000), D(8000), 10) == 0
    assert break_even_months(D(1), D(-1), D(0), 0) is None


def test_staff_and_facility_are_paid_once_and_nodes_each() -> None:
    two = [
        Group(name=n, nodes=k, values=values(purchase="1200", maintenance="0.1", staff="500"))
        for n, k in (("a", 1), ("b", 3))
    ]
    found = owning(two)
    assert found is not None
    assert part(found, "staff").usd_per_month == 500
    assert part(found, "maintenance").usd_per_month == D(4 * 1200) * D("0.1") / 12


def test_power_by_hand() -> None:
    usd = power_usd_per_month(
        D(10200), load=D("0.76"), pue=D("1.2"), usd_per_kwh=D("0.08"), hours=D(730)
    )
    assert usd == D("10.2") * D("0.76") * D("1.2") * 730 * D("0.08")
