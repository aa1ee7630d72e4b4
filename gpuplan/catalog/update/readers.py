"""Price lists as providers and others publish them: CSV files with a header, and answers of APIs.

| list | how it is known |
|---|---|
| gpuplan's own CSV | columns provider, instance, region, usd_per_hour; perhaps capacity, date |
| SkyPilot's catalogue | columns InstanceType, Region, Price, SpotPrice; of one provider |
| `aws pricing get-products` | JSON with PriceList |
| `aws ec2 describe-spot-price-history` | JSON with SpotPriceHistory |
| Azure's retail prices | JSON with Items |
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from gpuplan.catalog.update.quotes import Quote, amount

ListRow = Mapping[str, Any]
OWN = ("provider", "instance", "region", "usd_per_hour")
SKYPILOT = ("InstanceType", "Region", "Price", "SpotPrice")
LONGEST = 2_000_000  # rows of a list


class Unreadable(ValueError):
    """The list is none that is known; the message says why."""


def read(text: str, provider: str | None) -> list[Quote]:
    """All prices of a list. `provider` is whose it is, where the list does not say. Raises
    `Unreadable` with the row that is wrong."""
    start = text.lstrip()
    try:
        if start.startswith(("{", "[")):
            return list(_json(_parsed(text), provider))
        return list(_csv(text, provider))
    except (json.JSONDecodeError, csv.Error) as problem:
        raise Unreadable(f"it is neither JSON nor CSV: {problem}") from problem
    except RecursionError as problem:
        raise Unreadable("it is nested too deeply to be a list of prices") from problem
    except (AttributeError, KeyError, TypeError) as problem:
        raise Unreadable(f"a row lacks {problem}") from problem


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError as problem:  # more digits than Python reads, 4300
        raise Unreadable("a number of it has too many digits") from problem


def _csv(text: str, provider: str | None) -> Iterator[Quote]:
    table = csv.DictReader(io.StringIO(text))
    columns = table.fieldnames or ()
    if all(name in columns for name in OWN):
        yield from _each(table, _own)
    elif all(name in columns for name in SKYPILOT):
        if provider is None:
            raise Unreadable("SkyPilot's list does not say whose it is: --provider NAME")
        yield from _each(table, lambda row, line: _skypilot(row, line, provider))
    else:
        wanted = f"{', '.join(OWN)} or {', '.join(SKYPILOT)}"
        raise Unreadable(f"it has the columns {', '.join(columns)[:120]} and not {wanted}")


def _each(
    rows: Iterable[ListRow], quotes: Callable[[ListRow, int], Iterator[Quote]]
) -> Iterator[Quote]:
    for line, row in enumerate(rows, 2):
        if line > LONGEST:
            raise Unreadable(f"it has more than {LONGEST:,} rows")
        try:
            for quote in quotes(row, line):
                if not all(isinstance(name, str) for name in quote.key):
                    raise ValueError("a provider, an instance or a region is no text")
                yield quote
        except Unreadable:
            raise
        except ValueError as problem:
            raise Unreadable(f"row {line}: {problem}") from problem


def _own(row: ListRow, line: int) -> Iterator[Quote]:
    usd = amount(row["usd_per_hour"])
    capacity = row.get("capacity") or "on-demand"
    if capacity not in ("on-demand", "spot"):
        raise ValueError(f"'{capacity}' is neither on-demand nor spot")
    if usd is not None:
        yield Quote(
            provider=row["provider"],
            instance=row["instance"],
            region=row["region"],
            capacity=capacity,  # type: ignore[arg-type]
            usd_per_hour=usd,
            date=row.get("date") or None,
            line=line,
        )


def _skypilot(row: ListRow, line: int, provider: str) -> Iterator[Quote]:
    """An empty cell: not offered. Zones of a region are rows of their own."""
    for column, capacity in (("Price", "on-demand"), ("SpotPrice", "spot")):
        usd = amount(row[column])
        if usd is not None:
            yield Quote(
                provider=provider,
                instance=row["InstanceType"],
                region=row["Region"],
                capacity=capacity,  # type: ignore[arg-type]
                usd_per_hour=usd,
                date=None,
                line=line,
            )


def _json(tree: Any, provider: str | None) -> Iterator[Quote]:
    if isinstance(tree, dict) and "PriceList" in tree:
        yield from _each(map(_product, tree["PriceList"]), _aws)
    elif isinstance(tree, dict) and "SpotPriceHistory" in tree:
        yield from _each(tree["SpotPriceHistory"], _aws_spot)
    elif isinstance(tree, dict) and "Items" in tree:
        yield from _each(tree["Items"], _azure)
    elif isinstance(tree, list):
        own = [row if "provider" in row else {**row, "provider": provider or ""} for row in tree]
        yield from _each(own, _own)
    else:
        raise Unreadable("its JSON has none of PriceList, SpotPriceHistory, Items")


def _product(item: Any) -> ListRow:
    """AWS answers with JSON in texts."""
    product: ListRow = _parsed(item) if isinstance(item, str) else item
    return product


def _aws(row: ListRow, line: int) -> Iterator[Quote]:
    """Linux on shared machines without licences, on demand: what a node of a cluster is."""
    facts = row["product"]["attributes"]
    plain = (
        facts.get("operatingSystem") == "Linux"
        and facts.get("tenancy") == "Shared"
        and facts.get("preInstalledSw") == "NA"
        and facts.get("capacitystatus") == "Used"
    )
    if not plain:
        return
    for term in row.get("terms", {}).get("OnDemand", {}).values():
        for price in term["priceDimensions"].values():
            usd = amount(price["pricePerUnit"].get("USD"))
            if price.get("unit") == "Hrs" and usd:
                yield Quote(
                    provider="aws",
                    instance=facts["instanceType"],
                    region=facts["regionCode"],
                    capacity="on-demand",
                    usd_per_hour=usd,
                    date=str(row.get("publicationDate", ""))[:10] or None,
                    line=line,
                )


def _aws_spot(row: ListRow, line: int) -> Iterator[Quote]:
    usd = amount(row["SpotPrice"])
    if row.get("ProductDescription") == "Linux/UNIX" and usd is not None:
        yield Quote(
            provider="aws",
            instance=row["InstanceType"],
            region=row["AvailabilityZone"].rstrip("abcdefghijklmnopqrstuvwxyz"),
            capacity="spot",
            usd_per_hour=usd,
            date=str(row["Timestamp"])[:10],
            line=line,
        )


def _azure(row: ListRow, line: int) -> Iterator[Quote]:
    """Virtual machines with Linux by the hour: no reservations, no low priority, no Windows."""
    name = f"{row.get('skuName', '')} {row.get('meterName', '')}"
    wrong = "Windows" in row.get("productName", "") or "Low Priority" in name
    if row.get("type") != "Consumption" or row.get("unitOfMeasure") != "1 Hour" or wrong:
        return
    if row.get("currencyCode") != "USD":
        raise ValueError(f"its currency is {row.get('currencyCode')}, not USD")
    usd = amount(row["retailPrice"])
    if usd is not None and row.get("armSkuName"):
        yield Quote(
            provider="azure",
            instance=row["armSkuName"],
            region=row["armRegionName"],
            capacity="spot" if "Spot" in name else "on-demand",
            usd_per_hour=usd,
            date=str(row.get("effectiveStartDate", ""))[:10] or None,
            line=line,
        )
