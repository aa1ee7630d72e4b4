"""What providers charge beside machines, what commitments cost, how often spare machines are taken
back, the carbon of regions, and whole servers by the month.

`tariffs.json` is compiled beside `compiled.json`; plans read the price of vGPUs'
licence, all else is for what reckons with money.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from gpuplan.catalog.citations import Citations
from gpuplan.catalog.model import Citation
from gpuplan.catalog.servers import Server, read_servers, row_of
from gpuplan.frozen import record

ChargeItem = Literal[
    "control-plane",
    "control-plane-extended",
    "load-balancer",
    "nat-gateway",
    "nat-traffic",
    "internet-traffic",
    "cross-zone-traffic",
    "block-storage",
    "vgpu-subscription",
]
TARIFFS = Path(__file__).with_name("tariffs.json")


@record
class Charge:
    """USD of `unit` (`USD/hour`, `USD/machine/hour`, `USD/year`, `USD/GB/month` or `USD/GB`); of
    traffic, of a month's volume from `from_gb` on; by machine, `most` for all of them. `when` is
    the time that the price is of."""

    item: str
    about: str
    unit: str
    price: Decimal
    from_gb: int
    most: Decimal | None
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


@record
class Interruptions:
    """The part of a region's spare machines that was taken back in a month, as a range of its
    provider (`5-10%`)."""

    share: str
    when: str
    source: Citation


class Tariffs:
    """Prices by provider. None and () are unknown, never free."""

    def __init__(self, tree: dict[str, Any]) -> None:
        self._tree = tree

    def rows(self, kind: str) -> tuple[tuple[str, ...], ...]:
        """All of `charges`, `commitments`, `carbon`, `interruptions` or `servers`, as words:
        provider, what, price or amount, when and source."""
        kinds = {
            "charges": self._charge_rows,
            "commitments": self._commitment_rows,
            "interruptions": self._interruption_rows,
            "servers": self._server_rows,
        }
        return tuple(kinds.get(kind, self._carbon_rows)())

    def _charge_rows(self) -> Iterator[tuple[str, ...]]:
        for provider in sorted({e["provider"] for e in self._tree["charges"].values()}):
            for item in get_args(ChargeItem):
                for c in self.charges(provider, item):
                    tier = f" from {c.from_gb:,} GB" if c.from_gb else ""
                    tier += f", {c.most:f} at most" if c.most else ""
                    price = f"{c.price:f} {c.unit}{tier}"
                    yield provider, item, price, c.when, c.source.place

    def _commitment_rows(self) -> Iterator[tuple[str, ...]]:
        for name, entry in self._tree["commitments"].items():
            for row in entry["commitments"]:
                source = Citations("commitments", name, entry).of(row["source"], row["instance"])
                for region, usd in row["usd_per_hour"].items():
                    what = f"{row['instance']} {row['term']} {region}"
                    yield entry["provider"], what, f"{usd} USD/hour", row["when"], source.place

    def _carbon_rows(self) -> Iterator[tuple[str, ...]]:
        for name, entry in self._tree["carbon"].items():
            source = Citations("carbon", name, entry).of(entry["source"], "")
            for region, grams in entry["regions"].items():
                yield entry["provider"], region, f"{grams} g/kWh", entry["when"], source.place

    def _interruption_rows(self) -> Iterator[tuple[str, ...]]:
        for name, entry in self._tree["interruptions"].items():
            source = Citations("interruptions", name, entry).of(entry["source"], "")
            cited = source.place
            for machine, ranges in entry["machines"].items():
                for share, regions in ranges.items():
                    for region in regions:
                        what = f"{machine} {region}"
                        yield entry["provider"], what, f"{share} a month", entry["when"], cited

    def _server_rows(self) -> Iterator[tuple[str, ...]]:
        return (row_of(server) for server in read_servers(self._tree["servers"]))

    def servers(self, gpu: str, gpus: int) -> tuple[Server, ...]:
        """Those with as many GPUs of the type, the cheapest month first."""
        listed = (s for s in read_servers(self._tree["servers"]) if (s.gpu, s.gpus) == (gpu, gpus))
        return tuple(sorted(listed, key=lambda s: (s.usd_per_month, s.provider, s.months)))

    def charges(self, provider: str, item: str) -> tuple[Charge, ...]:
        """The tiers of one item, from the smallest volume."""
        tiers = [
            Charge(
                item=item,
                about=row["about"],
                unit=row["unit"],
                price=Decimal(row["price"]),
                from_gb=row["from_gb"],
                most=Decimal(row["most"]) if row.get("most") else None,
                when=row["when"],
                source=Citations("charges", name, entry).of(row["source"], item),
            )
            for name, entry in self._tree["charges"].items()
            if entry["provider"] == provider
            for row in entry["charges"]
            if row["item"] == item
        ]
        return tuple(sorted(tiers, key=lambda charge: charge.from_gb))

    def commitments(self, provider: str, instance: str, region: str) -> tuple[Commitment, ...]:
        """Those whose rate a source states for the type in the region, the shortest term first."""
        offered = [
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
        return tuple(sorted(offered, key=lambda commitment: commitment.term))

    def carbon(self, provider: str, region: str) -> Carbon | None:
        for name, entry in self._tree["carbon"].items():
            if entry["provider"] == provider and region in entry["regions"]:
                source = Citations("carbon", name, entry).of(entry["source"], region)
                grams = Decimal(entry["regions"][region])
                return Carbon(grams_per_kwh=grams, when=entry["when"], source=source)
        return None

    def interruptions(self, provider: str, instance: str, region: str) -> Interruptions | None:
        for name, entry in self._tree["interruptions"].items():
            ranges = entry["machines"].get(instance, {}) if entry["provider"] == provider else {}
            for share, regions in ranges.items():
                if region in regions:
                    source = Citations("interruptions", name, entry).of(entry["source"], instance)
                    return Interruptions(share=share, when=entry["when"], source=source)
        return None


@cache
def load_tariffs() -> Tariffs:
    return Tariffs(json.loads(TARIFFS.read_bytes()))
