"""docs/reliability.md, from bench/torture/results.json: `python -m bench.torture.document`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results.json")
HEAD = """\
# Reliability

Made by `make generate` from the last run of each part of `make torture`
(`bench/torture/results.json`).

What must hold of every input, whatever is in it: an exit code of 0, 1 or 2, no exception, at most
{seconds:.0f} s of the process's own time and {gib:.0f} GiB more memory.
[SECURITY.md](../SECURITY.md) says what is promised, [architecture.md](architecture.md#limits) the
limits.
"""
READERS = """
## Files that strangers wrote

Each reader is a verb that is given one changed file. **Strategies** are random changes of good
files: bytes cut, doubled and spliced, values exchanged, lines moved. **Guided** inputs are those of
libFuzzer (atheris), which follows the lines that an input reaches. Good inputs are those that a
verb accepted; a message refused the others.

| reader | strategies | of them good | guided | of them good | s | failures |
|---|---|---|---|---|---|---|
"""
DISKS = """
## Writes

A compile of one stack over another. It ends with the old stack or the new one, whole, and the next
compile makes the new one.

| what happens | trials | failures |
|---|---|---|
"""
PROPERTIES = """
## Random manifests

{manifests} manifests drawn by number, of which {compiled} compile: services, fine-tuning and
notebooks, on rented nodes and on hypervisors. A property is asked where both manifests compile.
What does not always hold is counted here, not hidden.

| property | asked | did not hold | first manifest |
|---|---|---|---|
"""
GOALS = """
## How far that is from the goal

The goal is 1,000,000 inputs and 1,000 manifests. These runs had {inputs:,} inputs and
{manifests:,} manifests. More take hours, by hand: `make torture SECONDS=36000 JOBS=2`. A short form
is part of the tests (`tests/house/test_torture.py`).
"""


def page(results: dict[str, Any]) -> str:
    """The document, in Markdown."""
    limits = results["limits"]
    text = HEAD.format(seconds=limits["seconds"], gib=limits["bytes"] / 2**30)
    readers = results.get("readers", {})
    text += READERS + "".join(_readers(readers)) + "".join(_faults(readers))
    writes = results.get("disks", {"trials": {}, "failures": {}, "absent": {}})
    text += DISKS + "".join(_disks(writes))
    properties = results.get("properties", {"asked": {}, "broken": {}, "first": {}, "parsers": []})
    asked = properties["asked"]
    manifests, compiled = asked.get("manifests", 0), asked.get("compiled", 0)
    text += PROPERTIES.format(manifests=manifests, compiled=compiled)
    text += "".join(_properties(properties))
    text += f"\nParsers: {', '.join(properties['parsers'])}.\n"
    return text + GOALS.format(
        inputs=sum(_inputs(r) for r in readers.values()), manifests=manifests
    )


def _inputs(reader: dict[str, Any]) -> int:
    return sum(reader[way]["inputs"] for way in ("strategies", "guided") if way in reader)


def _readers(readers: dict[str, Any]) -> Iterator[str]:
    for name, reader in sorted(readers.items()):
        ways = [reader.get(way) for way in ("strategies", "guided")]
        cells = [f"{way[key]:,}" if way else "–" for way in ways for key in ("inputs", "good")]
        seconds = sum(way["seconds"] for way in ways if way)
        failures = sum(reader["failures"].values())
        yield f"| {name} | {' | '.join(cells)} | {seconds:,} | {failures} |\n"
    total = sum(_inputs(reader) for reader in readers.values())
    failures = sum(sum(reader["failures"].values()) for reader in readers.values())
    yield f"\n{total:,} inputs, {failures} failures.\n"


def _faults(readers: dict[str, Any]) -> Iterator[str]:
    for name, reader in sorted(readers.items()):
        for fault, count in reader["failures"].items():
            yield f"- {name}: {fault}: {count}\n"


def _disks(tried: dict[str, Any]) -> Iterator[str]:
    for kind, count in tried["trials"].items():
        wrong = sum(n for fault, n in tried["failures"].items() if fault.startswith(f"{kind}: "))
        yield f"| {kind} | {count} | {wrong} |\n"
    for kind, reason in tried["absent"].items():
        yield f"| {kind} | not tried: {reason} | |\n"


def _properties(tried: dict[str, Any]) -> Iterator[str]:
    for name, count in tried["asked"].items():
        if name in ("manifests", "compiled"):
            continue
        wrong = {f: n for f, n in tried["broken"].items() if f == name or f.startswith(f"{name}: ")}
        first = min((tried["first"][f] for f in wrong), default="")
        yield f"| {name} | {count} | {sum(wrong.values())} | {first} |\n"


if __name__ == "__main__":
    print(page(json.loads(RESULTS.read_text(encoding="utf-8"))), end="")
