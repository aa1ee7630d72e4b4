"""`gpuplan catalog update`: price lists beside the catalogue, reviewed; written only when asked."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.cli.common import print_json, report_problems, say, today

if TYPE_CHECKING:
    from gpuplan.catalog.update.changes import Review
    from gpuplan.catalog.update.quotes import Quote
    from gpuplan.catalog.update.write import ListSource
    from gpuplan.diagnostics import Diagnostic

PLACES = ("aws", "azure", "gcp", "skypilot")


def add_update(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("update")
    group.add_argument(
        "--from", dest="place", choices=PLACES, help="ask there instead of reading files"
    )
    group.add_argument("--source", metavar="URL", default="", help="where the list stands")
    group.add_argument(
        "--write", type=Path, metavar="DIR", help="write into this folder of catalogue files"
    )
    group.add_argument("--accept-outliers", action="store_true", help="also write what looks wrong")


def update(options: argparse.Namespace) -> int:
    """`catalog update FILE…`; the words after it are files."""
    from gpuplan.catalog.market import load_market
    from gpuplan.catalog.update.changes import review
    from gpuplan.errors import Rejected
    from gpuplan.report.facts import update as report

    try:
        quotes = _asked(options) if options.place else _files(options)
    except Rejected as rejected:
        return report_problems(rejected.diagnostics, as_json=options.json)
    reviewed = review(quotes, load_market(), options.as_of or today())
    day = (options.as_of or today()).isoformat()
    if options.json:
        print_json(report.tree(reviewed))
    else:
        say(report.text(reviewed, day), end="")
    return _write(options, reviewed) if options.write else 0


def _files(options: argparse.Namespace) -> list[Quote]:
    """Raises `Rejected` with what is wrong with each file."""
    from gpuplan.catalog.update.readers import Unreadable, read
    from gpuplan.diagnostics import Diagnostic
    from gpuplan.errors import Rejected
    from gpuplan.manifest.load import read_text

    quotes: list[Quote] = []
    problems: list[Diagnostic] = []
    names = [n for n in (options.what, *options.only) if n]
    if not names:
        problems.append(_unusable("nothing", "name price lists, or --from aws|azure|skypilot"))
    for name in names:
        text = read_text(Path(name))
        if isinstance(text, Diagnostic):
            problems.append(text)
            continue
        try:
            quotes += read(text, options.provider or None)
        except Unreadable as problem:
            problems.append(_unusable(name, str(problem)))
    if problems:
        raise Rejected(problems)
    return quotes


def _unusable(name: str, reason: str) -> Diagnostic:
    from gpuplan.diagnostics import error

    return error(
        "GP086",
        f"{name} is no price list that is known: {reason}",
        help="docs/cost.md lists the forms that are read",
    )


def _asked(options: argparse.Namespace) -> list[Quote]:
    """Raises `Rejected`."""
    from gpuplan.catalog.market import load_market
    from gpuplan.errors import Rejected
    from gpuplan.online import prices

    place = options.place
    names = [m.name for m in load_market().instances() if m.provider == place]
    if place == "gcp":
        raise Rejected([prices.no_machine_prices()])
    if place == "skypilot":
        if not options.provider:
            raise Rejected([_unusable("SkyPilot's catalogue", "name whose: --provider nebius")])
        return list(prices.skypilot(options.provider))
    return list(prices.aws(names) if place == "aws" else prices.azure(names))


def _write(options: argparse.Namespace, review: Review) -> int:
    from gpuplan.catalog.update.write import written
    from gpuplan.cli.common import replace_text, write_text

    source = _source(options)
    if source is None:
        problem = _unusable("a list without --source URL", "prices need one to be written")
        return report_problems([problem], as_json=options.json)
    taken = (*review.taken, *(review.outliers if options.accept_outliers else ()))
    for path, text in written(options.write, taken, source).items():
        failed = replace_text(text, path) if path.exists() else write_text(text, str(path))
        if failed is not None:
            return report_problems([failed], as_json=options.json)
        if not options.json:
            print(f"wrote {path}")
    if taken and not options.json:
        print("next: python -m gpuplan.catalog.compile")
    return 0


def _source(options: argparse.Namespace) -> ListSource | None:
    """The list's date is that of `--as-of`; without it the list was read today."""
    from gpuplan.catalog.update.write import ListSource

    if not options.source.startswith("https://"):
        return None
    day = (options.as_of or today()).isoformat()
    return ListSource(
        key=f"list-{day}",
        title=f"Price list of {day}",
        url=options.source,
        date=day if options.as_of else None,
        read=day,
    )
