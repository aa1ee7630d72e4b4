"""`gpuplan catalog`: what gpuplan knows of hardware, prices, engines and models, and from where."""

from __future__ import annotations

import argparse
import dataclasses
import textwrap
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from gpuplan.cli.common import add_json, day, print_json, report_problems, say
from gpuplan.cli.lists.market import add_filters, list_market, unused_filters
from gpuplan.cli.lists.update import add_update

if TYPE_CHECKING:
    from gpuplan.catalog.load import Catalog
    from gpuplan.diagnostics import Diagnostic

KINDS = (
    "gpus",
    "instances",
    "prices",
    "nodes",
    "nics",
    "storage",
    "power",
    "purchase",
    "charges",
    "commitments",
    "carbon",
    "interruptions",
    "servers",
    "engines",
    "builds",
    "kernels",
    "images",
    "components",
    "cuda",
    "models",
)
_WHERE = 46  # characters of the last column of a list of kernels
EPILOG = """\
examples:
  gpuplan catalog list gpus
  gpuplan catalog list prices h100 --region us-east-1 --max-age 90d
  gpuplan catalog list instances --gpu h100 --provider aws
  gpuplan catalog show h100-sxm-80gb
  gpuplan catalog show dgx-h100 --inventory > inventory.yaml
  gpuplan catalog update vms.csv --provider nebius     what a list would change
  gpuplan catalog update --from azure --write gpuplan/catalog/data --source URL
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "show", "update"), nargs="?", default="list")
    parser.add_argument(
        "what", nargs="?", default="", help=f"{', '.join(KINDS)}, or an entry, or a price list"
    )
    parser.add_argument("only", nargs="*", help="part of a name, or further price lists")
    add_filters(parser)
    parser.add_argument(
        "--as-of", type=day, metavar="2026-02-01", help="reckon ages from this date"
    )
    parser.add_argument(
        "--inventory", action="store_true", help="print the node that is shown as an inventory"
    )
    add_update(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    from gpuplan.catalog.load import load_catalog

    if options.action == "update":
        from gpuplan.cli.lists.update import update

        return update(options)
    if len(options.only) > 1:
        unknown = f"one part of a name is looked for, not {len(options.only)}"
        return _unknown(options, unknown, (), "leave out the others")
    options.only, options.what = "".join(options.only), options.what or "gpus"
    catalog = load_catalog()
    if options.action == "show" and options.inventory:
        return _inventory(catalog, options)
    if options.action == "show":
        return _show(catalog, options)
    return _list(catalog, options)


def _list(catalog: Catalog, options: argparse.Namespace) -> int:
    if options.what not in KINDS:
        unknown = f"the catalogue has no list '{options.what}'"
        return _unknown(options, unknown, KINDS, f"lists are {', '.join(KINDS)}")
    if options.what in ("instances", "prices"):
        return list_market(catalog, options)
    if options.what in ("charges", "commitments", "carbon", "interruptions", "servers"):
        return _tariffs(options)
    if options.what == "kernels":
        return _kernels(options)
    records = _records(catalog, options.what, options.only.casefold())
    if unused_filters(options) or not records:
        return report_problems([_nothing(options)], as_json=options.json)
    if options.json:
        print_json([_plain(r) for r in records])
    else:
        say(_listed(catalog, options, records), end="")
    return 0


def _tariffs(options: argparse.Namespace) -> int:
    """What providers charge beside machines; `only` and the filters are parts of a row's words."""
    from gpuplan.catalog.tariffs import load_tariffs

    parts = (options.only, options.provider, options.region)
    rows = [
        row
        for row in load_tariffs().rows(options.what)
        if all(part.casefold() in " ".join(row[:2]).casefold() for part in parts)
    ]
    if not rows:
        return report_problems([_nothing(options)], as_json=options.json)
    return _print_rows(options, ("provider", "what", "price", "when", "source"), rows)


def _kernels(options: argparse.Namespace) -> int:
    """What engines and libraries do in which kernels; `only` is a part of a row's words."""
    from gpuplan.catalog.kernels import kernel_facts

    part = options.only.casefold()
    rows = [row for row in kernel_facts() if part in " ".join(row[:4]).casefold()]
    if unused_filters(options) or not rows:
        return report_problems([_nothing(options)], as_json=options.json)
    head = ("of", "fact", "since", "where", "source")
    if options.json:
        return _print_rows(options, head, rows)
    lines: list[Sequence[str]] = []
    for *row, where, _ in rows:
        parts = textwrap.wrap(where, _WHERE) or [""]
        lines += [(*row, parts[0]), *(("", "", "", part) for part in parts[1:])]
    _print_rows(options, head[:4], lines)
    say("\nsources:\n" + "".join(f"- {s}\n" for s in dict.fromkeys(r[4] for r in rows)), end="")
    return 0


def _print_rows(
    options: argparse.Namespace, head: Sequence[str], rows: Sequence[Sequence[str]]
) -> int:
    from gpuplan.report.facts.catalog import table

    if options.json:
        print_json([dict(zip(head, row, strict=True)) for row in rows])
    else:
        say(table(head, rows), end="")
    return 0


def _listed(catalog: Catalog, options: argparse.Namespace, records: list[Any]) -> str:
    from gpuplan.report.facts import catalog as report
    from gpuplan.report.facts import hardware

    if options.what == "gpus":
        return report.gpus(records, catalog, options.as_of or datetime.now(UTC).date())
    lists: dict[str, Callable[[list[Any]], str]] = {
        "nodes": hardware.nodes,
        "nics": hardware.nics,
        "storage": hardware.storage,
        "power": hardware.ranges,
        "purchase": hardware.ranges,
        "engines": report.engines,
        "builds": report.builds,
        "images": report.engines,
        "components": report.components,
        "cuda": report.cuda,
        "models": _models,
    }
    return lists[options.what](records)


def _nothing(options: argparse.Namespace) -> Diagnostic:
    """A list with a filter that it has not, or without an entry that is asked for."""
    from gpuplan.diagnostics import error

    unused = ", ".join(unused_filters(options))
    if unused:
        message = f"the list of {options.what} has no {unused}: instances and prices have"
        remedy = f"name a part: `gpuplan catalog list {options.what} PART`"
        return error("GP006", message, help=remedy)
    message = f"the catalogue has no {options.what} with '{options.only}' in their names"
    return error("GP006", message, help=f"`gpuplan catalog list {options.what}` shows all")


def _parameters(count: float) -> str:
    """`8.0 B`; those of a small model in millions."""
    return f"{count / 1e9:,.1f} B" if count >= 1e9 else f"{count / 1e6:,.0f} M"


def _models(models: list[Any]) -> str:
    from gpuplan.report.facts.catalog import table

    rows = [(m.identifier, m.architecture, _parameters(m.parameters), m.source) for m in models]
    return table(("model", "architecture", "parameters", "source"), rows)


def _records(catalog: Catalog, kind: str, part: str) -> list[Any]:
    """Those with `part` in their names; what a machine costs to buy or to rent belongs together."""
    from gpuplan.models.load import known, known_names

    if kind == "models":
        return [known(n) for n in known_names() if part in n.casefold()]
    if kind in ("power", "purchase"):
        rented = catalog.rentals() if kind == "purchase" else ()
        return [r for r in (*catalog.ranges(kind), *rented) if part in r.item]  # type: ignore[arg-type]
    if kind == "components":
        named = (n for n in catalog.ids("components") if part in n)
        return [catalog.component(n, v) for n in named for v in catalog.releases(n)]
    find = _finders(catalog)[kind]
    return [find(i) for i in catalog.ids(kind) if part in i]  # type: ignore[arg-type]


def _finders(catalog: Catalog) -> dict[str, Callable[[str], Any]]:
    """How an entry of each kind is found that `show` prints."""
    return {
        "gpus": catalog.gpu,
        "nodes": catalog.host,
        "nics": catalog.nic,
        "storage": catalog.storage_class,
        "engines": catalog.engine,
        "builds": catalog.build,
        "images": catalog.image,
        "components": catalog.component,
        "cuda": catalog.cuda,
    }


def _plain(record: Any) -> Any:
    from gpuplan.plan.serialize import to_json

    return to_json(record)


def _show(catalog: Catalog, options: argparse.Namespace) -> int:
    from gpuplan.catalog.market import load_market
    from gpuplan.models.load import bundled
    from gpuplan.report.facts import catalog as report

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
    from gpuplan.report.facts import catalog as report
    from gpuplan.report.facts import hardware

    name = getattr(record, "identifier", None) or record.name
    sources = catalog.sources(kind, name)  # type: ignore[arg-type]
    notes = catalog.notes(kind, name)  # type: ignore[arg-type]
    if kind == "nodes":
        notes = (*notes, *hardware.short_memory(record, catalog))
    show = hardware.show if kind in ("nodes", "nics", "storage") else report.show
    return show(record, sources, notes)


def _show_range(catalog: Catalog, options: argparse.Namespace) -> int:
    """An input of cost calculations; the last place where a name is looked up."""
    from gpuplan.report.facts import hardware

    name = options.what
    row = catalog.range_of("power", name) or catalog.range_of("purchase", name)
    if row is not None:
        _print_one(row, options.json, hardware.cost(row))
        return 0
    alike = ", ".join(gpu for gpu in catalog.gpu_ids if name and name.casefold() in gpu)
    unknown = f"the catalogue has no entry '{name}'"
    if alike:
        return _unknown(options, unknown, (), f"GPUs of this name are {alike}")
    return _unknown(options, unknown, _known(catalog), "`gpuplan catalog list` shows what there is")


def _known(catalog: Catalog) -> list[str]:
    """Every name that `show` knows."""
    from gpuplan.catalog.market import load_market
    from gpuplan.models.load import known_names

    ranges = (*catalog.ranges("power"), *catalog.ranges("purchase"), *catalog.rentals())
    return [
        *(i for kind in _finders(catalog) for i in catalog.ids(kind)),  # type: ignore[arg-type]
        *(r.item for r in ranges),
        *load_market().names(),
        *known_names(),
    ]


def _inventory(catalog: Catalog, options: argparse.Namespace) -> int:
    from gpuplan.report.facts.template import inventory

    host = catalog.host(options.what)
    if host is None:
        unknown = f"the catalogue has no node '{options.what}'"
        remedy = "`gpuplan catalog list nodes` shows the nodes there are"
        return _unknown(options, unknown, catalog.ids("nodes"), remedy)
    print(inventory(host), end="")
    return 0


def _unknown(
    options: argparse.Namespace, message: str, known: Iterable[str], otherwise: str
) -> int:
    from gpuplan.diagnostics import did_you_mean, error

    remedy = did_you_mean(options.what, known) or otherwise
    return report_problems([error("GP006", message, help=remedy)], as_json=options.json)


def _print_one(record: Any, as_json: bool, text: str) -> None:
    assert dataclasses.is_dataclass(record)
    print_json(_plain(record)) if as_json else say(text, end="")
