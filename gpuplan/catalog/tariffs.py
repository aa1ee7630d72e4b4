"""What providers charge beside machines, what commitments cost, and the carbon of their regions.

`tariffs.json` is compiled beside `compiled.json`; no plan reads it, only what reckons with money.
"""

from __future__ import annotations

import json
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from gpuplan.catalog.citations import Citations
from gpuplan.catalog.model import Citation
from gpuplan.frozen import record

TARIFFS = Path(__file__).with_name("tariffs.json")


@record
class Charge:
    """USD of `unit` (`USD/hour` or `USD/GB`); of traffic, of a month's volume from `from_gb` on.
    `when` is the time that the price is of."""

    item: str
    about: str
    unit: str
    price: Decimal
    from_gb: int
    when: str
    source: Citation


@record
class Commitment:
    """USD per hour of a machine for who commits to it for the `term`, used or not."""

    instance: str
    term: str
    usd_per_hour: Decimal
    when: str
    source: Citation


@record
class Carbon:
    """Grams of CO2 equivalent of a kilowatt-hour of a region's grid."""

    grams_per_kwh: Decimal
    when: str
    source: Citation


class Tariffs:
    """Prices by provider. None and () are unknown, never free."""

    def __init__(self, tree: dict[str, Any]) -> None:
        self._tree = tree

    def charges(self, provider: str, item: str) -> tuple[Charge, ...]:
        """The tiers of one item, from the smallest volume."""
        found = [
            Charge(
                item=item,
                about=row["about"],
                unit=row["unit"],
                price=Decimal(row["price"]),
                from_gb=row["from_gb"],
                when=row["when"],
                source=Citations("charges", name, entry).of(row["source"], item),
            )
            for name, entry in self._tree["charges"].items()
            if entry["provider"] == provider
            for row in entry["charges"]
            if row["item"] == item
        ]
        return tuple(sorted(found, key=lambda charge: charge.from_gb))

    def commitments(self, provider: str, instance: str, region: str) -> tuple[Commitment, ...]:
        """Those whose rate a source states for the type in the region, the shortest term first."""
        found = [
            Commitment(
                instance=instance,
                term=row["term"],
                usd_per_hour=Decimal(row["usd_per_hour"][region]),
                when=row["when"],
                source=Citations("commitments", name, entry).of(row["source"], instance),
            )
            for name, entry in self._tree["commitments"].items()
            if entry["provider"] == provider
            for row in entry["commitments"]
            if row["instance"] == instance and region in row["usd_per_hour"]
        ]
        return tuple(sorted(found, key=lambda commitment: commitment.term))

    def carbon(self, provider: str, region: str) -> Carbon | None:
        for name, entry in self._tree["carbon"].items():
            if entry["provider"] == provider and region in entry["regions"]:
                source = Citations("carbon", name, entry).of(entry["source"], region)
                grams = Decimal(entry["regions"][region])
                return Carbon(grams_per_kwh=grams, when=entry["when"], source=source)
        return None


@cache
def load_tariffs() -> Tariffs:
    return Tariffs(json.loads(TARIFFS.read_bytes()))
