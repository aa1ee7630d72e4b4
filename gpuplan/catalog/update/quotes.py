"""A price of a list that somebody brings, before anything is believed of it."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from gpuplan.catalog.market import CapacityKind
from gpuplan.frozen import record

Key = tuple[str, str, str, CapacityKind]  # provider, instance, region, capacity


@record
class Quote:
    """USD an hour of a machine. `date` is when it held, as the list says; None where it does not.
    `line` counts the list's rows."""

    provider: str
    instance: str
    region: str
    capacity: CapacityKind
    usd_per_hour: Decimal
    date: str | None
    line: int

    @property
    def key(self) -> Key:
        return self.provider, self.instance, self.region, self.capacity


def amount(text: object) -> Decimal | None:
    """None of an empty cell, which says that nothing is offered. Raises `ValueError`."""
    words = str(text or "").strip().removeprefix("$")
    if not words:
        return None
    try:
        price = Decimal(words)
    except InvalidOperation:
        raise ValueError(f"'{words[:40]}' is no price") from None
    if not price.is_finite() or price < 0:
        raise ValueError(f"'{words[:40]}' is no price")
    return price
