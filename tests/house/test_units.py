"""Quantities as people write them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from gpuplan import units


@pytest.mark.parametrize(
    ("text", "value"),
    [("80 GiB", 80 * 2**30), ("2 TB", 2 * 10**12), ("1.5GiB", 3 * 2**29), ("1,024 MiB", 2**30)],
)
def test_sizes(text: str, value: int) -> None:
    assert units.parse_bytes(text) == value


def test_bits_and_bytes_are_told_apart() -> None:
    assert units.parse_rate("400 Gb/s") == 50e9
    assert units.parse_rate("400 GB/s") == 400e9


@pytest.mark.parametrize("text", ["80", "80 gib", "GiB", "8O GiB", "-1 GiB", "80 GiB GiB", "nan s"])
def test_a_quantity_without_a_clear_unit_is_refused(text: str) -> None:
    with pytest.raises(units.UnitError):
        units.parse_bytes(text)


def test_money_is_exact_and_a_month_has_730_hours() -> None:
    assert units.parse_usd_per_hour("$7,300/month") == Decimal(10)
    assert units.parse_usd_per_hour("USD 0.1/hour") == Decimal("0.1")
    with pytest.raises(units.UnitError, match="month"):
        units.parse_usd_per_hour("$5")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (85899345920, "B", "80 GiB"),
        (50e9, "B/s", "50 GB/s"),
        (0.04, "s", "40 ms"),
        (1.0, "s", "1 s"),
        (90, "s", "90 s"),
        (172800, "s", "2 d"),
        (17.7, "USD/h", "$17.70/h"),
        (10200, "W", "10.2 kW"),
        (989e12, "FLOP/s", "989 TFLOP/s"),
        (0.000163, "s", "163 µs"),
        (128, "1", "128"),
    ],
)
def test_values_read_as_people_say_them(value: float, unit: str, text: str) -> None:
    assert units.format_quantity(value, unit) == text
