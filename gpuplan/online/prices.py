"""Price lists from those who publish them: Azure's retail prices and SkyPilot's tables without
credentials, AWS by its SDK with those that are set up on the machine."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, urlsplit

from gpuplan.catalog.update.quotes import Quote
from gpuplan.catalog.update.readers import Unreadable, read
from gpuplan.diagnostics import Diagnostic, error
from gpuplan.errors import Rejected
from gpuplan.online import messages
from gpuplan.online.http import OK, get, refuse

AZURE = "https://prices.azure.com"
SKYPILOT = "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs/v8"
PER_QUESTION = 10  # instance types that Azure is asked for at once
MOST_PAGES = 1000


def no_machine_prices() -> Diagnostic:
    return error(
        "GP086",
        "Google's API prices cores, memory and GPUs apart, and no machines",
        help="export a list with the columns provider, instance, region, usd_per_hour and read it",
    )


def no_sdk(reason: str) -> Diagnostic:
    return error(
        "GP086",
        f"AWS cannot be asked: {reason}",
        help="install boto3 and set up credentials that may call pricing:GetProducts, or save the "
        "answer of `aws pricing get-products` and read that file",
    )


def azure(names: Iterable[str], base: str = AZURE) -> Iterator[Quote]:
    """Prices of virtual machine sizes in all regions. Raises `Rejected`."""
    every = sorted(names)
    for start in range(0, len(every), PER_QUESTION):
        some = " or ".join(f"armSkuName eq '{n}'" for n in every[start : start + PER_QUESTION])
        wanted = f"serviceName eq 'Virtual Machines' and ({some})"
        yield from _pages(f"{base}/api/retail/prices?$filter={quote(wanted)}")


def _pages(url: str | None) -> Iterator[Quote]:
    host = urlsplit(url or "").netloc
    for _ in range(MOST_PAGES):
        if not url:
            return
        if urlsplit(url).netloc != host:
            raise Rejected([messages.sent_elsewhere(host, urlsplit(url).netloc)])
        answer = get(url)
        if answer.status != OK:
            refuse(answer, host, "retail prices")
        yield from _read(answer.body, None, host)
        tree = answer.json(host, "retail prices")
        url = tree.get("NextPageLink")


def skypilot(provider: str, base: str = SKYPILOT) -> Iterator[Quote]:
    """SkyPilot's table of a provider. Raises `Rejected`."""
    url = f"{base}/{quote(provider, safe='')}/vms.csv"
    host, answer = urlsplit(url).netloc, get(url)
    if answer.status != OK:
        refuse(answer, host, f"a table of {provider}")
    yield from _read(answer.body, provider, host)


def aws(names: Iterable[str]) -> Iterator[Quote]:
    """On-demand prices of instance types in all regions. Raises `Rejected`."""
    try:
        sdk: Any = importlib.import_module("boto3")
        pages = sdk.client("pricing", region_name="us-east-1").get_paginator("get_products")
        for name in sorted(names):
            field = {"Type": "TERM_MATCH", "Field": "instanceType", "Value": name}
            for page in pages.paginate(ServiceCode="AmazonEC2", Filters=[field]):
                yield from _answer(page)
    except ImportError:
        raise Rejected([no_sdk("boto3 is not installed")]) from None
    except Rejected:
        raise
    except Exception as problem:  # the SDK makes its classes of errors when it runs
        raise Rejected([no_sdk(" ".join(str(problem).split())[:200])]) from problem


def _answer(page: Any) -> Iterator[Quote]:
    import json

    yield from _read(json.dumps({"PriceList": page["PriceList"]}).encode(), None, "pricing")


def _read(body: bytes, provider: str | None, host: str) -> list[Quote]:
    try:
        return read(body.decode("utf-8", "replace"), provider)
    except Unreadable as problem:
        raise Rejected([messages.unusable(host, "prices", str(problem))]) from problem
