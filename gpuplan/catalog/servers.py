"""Whole servers by the month, as `tariffs.json` has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from gpuplan.catalog.citations import Citations
from gpuplan.catalog.model import Citation
from gpuplan.frozen import record

CENT = Decimal("0.01")


@record
class Server:
    """A server that a provider rents for at least `months`: USD of one of them, and what its
    set-up costs once. `place` is None where nobody says where it stands."""

    provider: str
    gpu: str
    gpus: int
    usd_per_month: Decimal
    months: int
    setup: Decimal | None
    place: str | None
    about: str
    when: str
    source: Citation


def read_servers(entries: Mapping[str, Any]) -> Iterator[Server]:
    """Of the files by name, as they have them."""
    for name, entry in entries.items():
        for row in entry["servers"]:
            yield Server(
                provider=entry["provider"],
                gpu=row["gpu"],
                gpus=row["gpus"],
                usd_per_month=Decimal(row["usd"]) / row["months"],
                months=row["months"],
                setup=Decimal(row["setup"]) if "setup" in row else None,
                place=row.get("place"),
                about=row["about"],
                when=row["when"],
                source=Citations("servers", name, entry).of(row["source"], row["gpu"]),
            )


def row_of(server: Server) -> tuple[str, ...]:
    """As words: provider, what, price, when, source."""
    where = f" in {server.place}" if server.place else ""
    what = f"{server.gpus} × {server.gpu}{where}, {server.months} months at least, {server.about}"
    price = f"{server.usd_per_month.quantize(CENT):f} USD/month"
    return server.provider, what, price, server.when, server.source.place
