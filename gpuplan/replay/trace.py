"""Requests as they were recorded, from a CSV file."""

from __future__ import annotations

import csv

from gpuplan.diagnostics import Diagnostic, error
from gpuplan.errors import Rejected
from gpuplan.replay.requests import Request

MOST_INPUT, MOST_OUTPUT = 10_000_000, 100_000  # tokens of a request: each output is a step
COLUMNS = ("arrival_seconds", "input_tokens", "output_tokens")


def parsed(text: str, name: str) -> tuple[Request, ...]:
    """In order of arrival; the first arrives at 0. `name` is the file's. Raises `Rejected`."""
    rows = csv.DictReader(text.removeprefix("\ufeff").splitlines())
    missing = [c for c in COLUMNS if c not in (rows.fieldnames or ())]
    if missing:
        raise Rejected([_no_column(name, missing)])
    read, problems = [], []
    for number, row in enumerate(rows, 2):
        try:
            read.append((float(row[COLUMNS[0]]), int(row[COLUMNS[1]]), int(row[COLUMNS[2]])))
        except (TypeError, ValueError):
            problems.append(_no_request(name, number))
            continue
        arrival, given, wanted = read[-1]
        sound = 1 <= given <= MOST_INPUT and 1 <= wanted <= MOST_OUTPUT
        if not 0 <= arrival < float("inf") or not sound:
            problems.append(_no_request(name, number))
    if problems:
        raise Rejected(problems)
    if not read:
        raise Rejected([_empty(name)])
    read.sort()
    start = read[0][0]
    return tuple(
        Request(number=n, arrival_seconds=s - start, input_tokens=i, output_tokens=o)
        for n, (s, i, o) in enumerate(read)
    )


def _empty(name: str) -> Diagnostic:
    return error("GP003", f"{name} holds no request", help="a line for each request")


def _no_column(name: str, missing: list[str]) -> Diagnostic:
    return error(
        "GP003",
        f"{name} has no column {', '.join(missing)}",
        help=f"a trace begins with the line `{','.join(COLUMNS)}`",
    )


def _no_request(name: str, line: int) -> Diagnostic:
    return error(
        "GP003",
        f"{name}:{line}: no request",
        help="seconds from 0, and whole numbers of tokens from 1: "
        f"{MOST_INPUT:,} of input and {MOST_OUTPUT:,} of output at most",
    )
