"""Rules of thumb that decide between two ways to pay."""

from __future__ import annotations

from decimal import Decimal


def saved_share(cheaper: Decimal, dearer: Decimal) -> Decimal:
    """The part of `dearer` that `cheaper` saves."""
    return 1 - cheaper / dearer


def break_even_requests_per_hour(usd_per_hour: Decimal, usd_per_request: Decimal) -> Decimal:
    """Requests an hour from which on a machine costs less than paying for each request."""
    return usd_per_hour / usd_per_request


def break_even_utilisation(committed: Decimal, on_demand: Decimal) -> Decimal:
    """The part of the hours from which on a committed price, paid for all of them, costs less."""
    return committed / on_demand
