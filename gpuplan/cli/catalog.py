"""`gpuplan catalog`: what gpuplan knows of hardware, prices, engines and models, and from where."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from gpuplan.cli.common import add_json, print_json, report_problems
from gpuplan.cli.market import add_filters, list_market

if TYPE_CHECKING:
    from gpuplan.catalog.load import Catalog

KINDS = (
    "gpus",
    "instances",
    "prices",
    "nodes",
    "nics",
    "storage",
    "power",
    "purchase",
    "engines",
    "components",
    "models",
)
EPILOG = """\
examples:
  gpuplan catalog list gpus
  gpuplan catalog list prices h100 --region us-east-1 --max-age 90d
  gpuplan catalog list instances --gpu h100 --provider aws
  gpuplan catalog show h100-sxm-80gb
  gpuplan catalog show dgx-h100 --inventory > inventory.yaml
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "show"), nargs="?", default="list")
    parser.add_argument("what", nargs="?", default="gpus", help=f"{', '.join(KINDS)}, or an entry")
    parser.add_argument("only", nargs="?", default="", help="part of a name")
    add_filters(parser)
    parser.add_argument("--as-of", type=date.fromisoformat, help="reckon ages from this date")
    parser.add_argument(
        "--inventory", action="store_true", help="print the node that is shown as an inventory"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    from gpuplan.catalog.load import load_catalog

    catalog = load_catalog()
    if options.action == "show" and options.inventory:
        return _inventory(catalog, options)
    if options.action == "show":
        return _show(catalog, options)
    return _list(catalog, options)


def _list(catalog: Catalog, options: argparse.Namespace) -> int:
    from gpuplan.diagnostics import did_you_mean, error
    from gpuplan.report import catalog as report
    from gpuplan.report import hardware

    if options.what not in KINDS:
        unknown = error(
            "GP006",
            f"the catalogue has no list '{options.what}'",
            help=did_you_mean(options.what, KINDS) or f"lists are {', '.join(KINDS)}",
        )
        return report_problems([unknown], as_json=options.json)
    if options.what in ("instances", "prices"):
        return list_market(catalog, options)
    if options.json:
        print_json([_plain(r) for r in _records(catalog, options.what, options.only)])
        return 0
    as_of = options.as_of or datetime.now(UTC).date()
    lists: dict[str, Callable[[], str]] = {
        "gpus": lambda: report.gpus(catalog, as_of, options.only),
        "nodes": lambda: hardware.nodes(catalog, options.only),
        "nics": lambda: hardware.nics(catalog, options.only),
        "storage": lambda: hardware.storage(catalog, options.only),
        "power": lambda: hardware.ranges(catalog, "power", options.only),
        "purchase": lambda: hardware.ranges(catalog, "purchase", options.only),
        "engines": lambda: report.engines(catalog, options.only),
        "components": lambda: report.components(catalog, options.only),
        "models": lambda: _models(options.only),
    }
    print(lists[options.what](), end="")
    return 0


def _models(only: str) -> str:
    from gpuplan.models.load import bundled, bundled_names
    from gpuplan.report.catalog import table

    found = ((n, bundled(n)) for n in bundled_names() if only.casefold() in n.casefold())
    rows = [(n, m.architecture, f"{m.parameters / 1e9:,.1f} B", m.source) for n, m in found if m]
    return table(("model", "architecture", "parameters", "source"), rows)


def _records(catalog: Catalog, kind: str, only: str) -> list[Any]:
    from gpuplan.models.load import bundled, bundled_names
    from gpuplan.report.hardware import rows_of

    if kind == "models":
        return [bundled(n) for n in bundled_names() if only.casefold() in n.casefold()]
    if kind in ("power", "purchase"):
        return list(rows_of(catalog, kind, only))  # type: ignore[arg-type]
    one = _finders(catalog)[kind]
    return [one(i) for i in catalog.ids(kind) if only in i]  # type: ignore[arg-type]


def _finders(catalog: Catalog) -> dict[str, Callable[[str], Any]]:
    """How an entry of each kind is found that `show` prints."""
    return {
        "gpus": catalog.gpu,
        "nodes": catalog.host,
        "nics": catalog.nic,
        "storage": catalog.storage_class,
        "engines": catalog.engine,
        "components": catalog.component,
    }


def _plain(record: Any) -> Any:
    from gpuplan.plan.serialize import to_json

    return to_json(record)


def _show(catalog: Catalog, options: argparse.Namespace) -> int:
    from gpuplan.catalog.market import load_market
    from gpuplan.models.load import bundled
    from gpuplan.report import catalog as report

    name = options.what
    for kind, find in _finders(catalog).items():
        record = find(name)
        if record is not None:
            _print_one(record, options.json, _text(catalog, kind, record))
            return 0
    machine = load_market().instance(name)
    if machine is not None:
        _, record, sources = machine
        _print_one(record, options.json, report.show(record, sources))
        return 0
    model = bundled(name)
    if model is not None:
        _print_one(model, options.json, report.show(model, ()))
        return 0
    return _show_range(catalog, options)


def _text(catalog: Catalog, kind: str, record: Any) -> str:
    from gpuplan.report import catalog as report
    from gpuplan.report import hardware

    name = getattr(record, "identifier", None) or record.name
    sources = catalog.sources(kind, name)  # type: ignore[arg-type]
    notes = catalog.notes(kind, name)  # type: ignore[arg-type]
    if kind == "nodes":
        notes = (*notes, *hardware.short_memory(record, catalog))
    show = hardware.show if kind in ("nodes", "nics", "storage") else report.show
    return show(record, sources, notes)


def _show_range(catalog: Catalog, options: argparse.Namespace) -> int:
    """An input of cost calculations; the last place where a name is looked up."""
    from gpuplan.report import hardware

    name = options.what
    row = catalog.range_of("power", name) or catalog.range_of("purchase", name)
    if row is None:
        return _unknown(catalog, options)
    _print_one(row, options.json, hardware.cost(row))
    return 0


def _unknown(catalog: Catalog, options: argparse.Namespace) -> int:
    from gpuplan.catalog.market import load_market
    from gpuplan.diagnostics import did_you_mean, error
    from gpuplan.models.load import bundled_names

    known = [i for kind in _finders(catalog) for i in catalog.ids(kind)]  # type: ignore[arg-type]
    known += [r.item for r in (*catalog.ranges("power"), *catalog.ranges("purchase"))]
    known += [r.item for r in catalog.rentals()]
    known += load_market().names()
    unknown = error(
        "GP006",
        f"the catalogue has no entry '{options.what}'",
        help=did_you_mean(options.what, [*known, *bundled_names()])
        or "`gpuplan catalog list` shows what there is",
    )
    return report_problems([unknown], as_json=options.json)


def _inventory(catalog: Catalog, options: argparse.Namespace) -> int:
    from gpuplan.diagnostics import did_you_mean, error
    from gpuplan.report.template import inventory

    host = catalog.host(options.what)
    if host is not None:
        print(inventory(host), end="")
        return 0
    unknown = error(
        "GP006",
        f"the catalogue has no node '{options.what}'",
        help=did_you_mean(options.what, catalog.ids("nodes"))
        or "`gpuplan catalog list nodes` shows the nodes there are",
    )
    return report_problems([unknown], as_json=options.json)


def _print_one(record: Any, as_json: bool, text: str) -> None:
    assert dataclasses.is_dataclass(record)
    print_json(_plain(record)) if as_json else print(text, end="")
