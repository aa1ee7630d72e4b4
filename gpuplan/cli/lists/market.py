"""The lists of `gpuplan catalog` that read more than plans do: machines for rent, and prices by
region."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from gpuplan.cli.common import print_json, report_problems, say

if TYPE_CHECKING:
    from gpuplan.catalog.load import Catalog
    from gpuplan.catalog.quotes import QuoteFilter

DAY = 86400


def days(text: str) -> float:
    """`90d` → 90. Raises `ArgumentTypeError`."""
    from gpuplan.units import UnitError, parse_seconds

    try:
        return parse_seconds(text) / DAY
    except UnitError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None


def add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gpu", default="", help="part of a GPU's name, for instances and prices")
    parser.add_argument("--provider", default="", help="part of a provider's name, likewise")
    parser.add_argument("--region", default="", help="a region's name, likewise")
    parser.add_argument("--capacity", default="", choices=("on-demand", "spot"), help="likewise")
    parser.add_argument(
        "--max-age", type=days, metavar="90d", help="no older prices, and none without a date"
    )


def unused_filters(options: argparse.Namespace) -> list[str]:
    """Filters that are given, for a list that has none of them."""
    given = {
        "--gpu": options.gpu,
        "--provider": options.provider,
        "--region": options.region,
        "--capacity": options.capacity,
        "--max-age": options.max_age is not None,
    }
    return [name for name, value in given.items() if value]


def list_market(catalog: Catalog, options: argparse.Namespace) -> int:
    """`list instances` and `list prices`."""
    from gpuplan.catalog.market import load_market
    from gpuplan.catalog.quotes import QuoteFilter, offers, quotes
    from gpuplan.report.facts import market as report

    prices = options.what == "prices"
    wanted = QuoteFilter(
        as_of=options.as_of or datetime.now(UTC).date(),
        gpu=options.gpu or (options.only if prices else ""),
        instance="" if prices else options.only,
        provider=options.provider,
        region=options.region,
        capacity=options.capacity,
        max_days=options.max_age,
    )
    market = load_market()
    if prices:
        quoted = quotes(catalog, market, wanted)
        return _answer(quoted, report.prices(quoted, wanted.as_of), wanted, options)
    machines = tuple(offers(market, wanted))
    text = report.instances(machines, wanted.as_of)
    records = [{"instance": machine, "price": price} for machine, price in machines]
    return _answer(records, text, wanted, options)


def _answer(records: Any, text: str, wanted: QuoteFilter, options: argparse.Namespace) -> int:
    from gpuplan.diagnostics import error

    if not records:
        words = (wanted.gpu, wanted.instance, wanted.provider, wanted.region, wanted.capacity)
        asked = " and ".join(f"'{w}'" for w in words if w)
        age = (
            "" if wanted.max_days is None else f" of the {wanted.max_days:g} days to {wanted.as_of}"
        )
        nothing = error(
            "GP006",
            f"the catalogue has no {options.what}{asked and ' for '}{asked}{age}",
            help=f"{'leave out --max-age: ' if age else ''}"
            f"`gpuplan catalog list {options.what}` shows all",
        )
        return report_problems([nothing], as_json=options.json)
    if options.json:
        print_json([_aged(r, wanted) for r in records])
    else:
        say(text, end="")
    return 0


def _aged(record: Any, wanted: QuoteFilter) -> Any:
    """A record as JSON, its price with its age in days; None where nobody knows it."""
    from datetime import date

    from gpuplan.plan.serialize import to_json

    if isinstance(record, dict):
        price = record["price"]
        return {
            **to_json(record["instance"]),
            "price": _aged(price, wanted) if price else None,
        }
    old = (wanted.as_of - date.fromisoformat(record.date)).days if record.dated else None
    return {**to_json(record), "age_days": old}
