"""`gpuplan catalog`: what gpuplan knows of hardware, prices, engines and models, and from where."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from gpuplan.cli.common import add_json, print_json, report_problems

if TYPE_CHECKING:
    from gpuplan.catalog.load import Catalog
    from gpuplan.catalog.model import NodeTemplate

KINDS = ("gpus", "prices", "nodes", "engines", "components", "models")
EPILOG = """\
examples:
  gpuplan catalog list gpus
  gpuplan catalog list prices h100
  gpuplan catalog show h100-sxm-80gb
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "show"), nargs="?", default="list")
    parser.add_argument("what", nargs="?", default="gpus", help=f"{', '.join(KINDS)}, or an entry")
    parser.add_argument("only", nargs="?", default="", help="part of a name")
    parser.add_argument("--as-of", type=date.fromisoformat, help="reckon ages from this date")
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    from gpuplan.catalog.load import load_catalog

    catalog = load_catalog()
    if options.action == "show":
        return _show(catalog, options)
    return _list(catalog, options)


def _list(catalog: Catalog, options: argparse.Namespace) -> int:
    from gpuplan.diagnostics import did_you_mean, error
    from gpuplan.report import catalog as report

    if options.what not in KINDS:
        unknown = error(
            "GP006",
            f"the catalogue has no list '{options.what}'",
            help=did_you_mean(options.what, KINDS) or f"lists are {', '.join(KINDS)}",
        )
        return report_problems([unknown], as_json=options.json)
    if options.json:
        print_json([_plain(r) for r in _records(catalog, options.what, options.only)])
        return 0
    as_of = options.as_of or datetime.now(UTC).date()
    lists: dict[str, Callable[[], str]] = {
        "gpus": lambda: report.gpus(catalog, as_of, options.only),
        "prices": lambda: report.prices(catalog, as_of, options.only),
        "nodes": lambda: report.nodes(catalog, options.only),
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

    if kind == "models":
        return [bundled(n) for n in bundled_names() if only.casefold() in n.casefold()]
    if kind == "prices":
        return [p for g in catalog.gpu_ids if only in g for p in catalog.prices(g)]
    if kind == "nodes":
        return [n for n in _nodes(catalog) if only in n.identifier]
    one = {"gpus": catalog.gpu, "engines": catalog.engine, "components": catalog.component}[kind]
    return [one(i) for i in catalog.ids(kind) if only in i]  # type: ignore[arg-type]


def _nodes(catalog: Catalog) -> list[NodeTemplate]:
    return [n for n in map(catalog.node, catalog.gpu_ids) if n]


def _plain(record: Any) -> Any:
    from gpuplan.plan.serialize import to_json

    return to_json(record)


def _show(catalog: Catalog, options: argparse.Namespace) -> int:
    from gpuplan.diagnostics import did_you_mean, error
    from gpuplan.models.load import bundled, bundled_names
    from gpuplan.report import catalog as report

    name = options.what
    finders: dict[str, Callable[[str], Any]] = {
        "gpus": catalog.gpu,
        "engines": catalog.engine,
        "components": catalog.component,
        "nodes": {n.identifier: n for n in _nodes(catalog)}.get,
    }
    for kind, find in finders.items():
        record = find(name)
        if record is not None:
            sources = catalog.sources(kind, name)  # type: ignore[arg-type]
            notes = catalog.notes(kind, name)  # type: ignore[arg-type]
            _print_one(record, options.json, report.show(record, sources, notes))
            return 0
    model = bundled(name)
    if model is not None:
        _print_one(model, options.json, report.show(model, ()))
        return 0
    known = [
        *catalog.gpu_ids,
        *catalog.ids("engines"),
        *catalog.ids("components"),
        *(n.identifier for n in _nodes(catalog)),
        *bundled_names(),
    ]
    unknown = error(
        "GP006",
        f"the catalogue has no entry '{name}'",
        help=did_you_mean(name, known) or "`gpuplan catalog list` shows what there is",
    )
    return report_problems([unknown], as_json=options.json)


def _print_one(record: Any, as_json: bool, text: str) -> None:
    assert dataclasses.is_dataclass(record)
    print_json(_plain(record)) if as_json else print(text, end="")
