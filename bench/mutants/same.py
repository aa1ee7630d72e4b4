"""Mutants that were read and judged to be the same program: `same.toml` names each, and why.

An entry holds a file's `path`, the changed line `before` and `after` (several, where a mutant takes
several), without their indentation, and `why` nobody can observe the difference. A line that stands
twice is told by the function that it is `inside`.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.mutants.sites import Mutant, mutants, mutated

LEDGER = Path(__file__).with_name("same.toml")
Change = tuple[int, str, str]  # the first line, and the lines' texts before and after


@dataclass(frozen=True)
class Same:
    path: str
    before: str
    after: str
    why: str
    inside: str = ""

    def lines(self, code: str) -> list[int]:
        """Where `before` stands in its file's code; once, if the entry is in order."""
        rows = _rows(code)
        wanted = self.before.split("\n")
        spans = [range(1, len(rows) + 1)] if not self.inside else [*_spans(code, self.inside)]
        return [n for span in spans for n in span if rows[n - 1 : n - 1 + len(wanted)] == wanted]

    def fault(self, code: str) -> str:
        """What is wrong with the entry; "" where it names one line and a mutant of it."""
        lines = self.lines(code)
        if len(lines) != 1:
            return f"stands {len(lines)} times in {self.path}: {self.before}"
        wanted = (lines[0], self.before, self.after)
        last = lines[0] + self.before.count("\n")
        own = (m for m in mutants(code, self.path) if lines[0] <= m.line <= last)
        made = any(change(code, m) == wanted for m in own)
        return "" if made else f"no mutant of {self.path} makes it: {self.after}"


def ledger(file: Path = LEDGER) -> tuple[Same, ...]:
    return tuple(Same(**entry) for entry in tomllib.loads(file.read_text("utf-8"))["same"])


def judged(mutant: Mutant, code: str, entries: tuple[Same, ...]) -> bool:
    """Whether an entry says that the mutant of `code` is the same program."""
    line, *texts = change(code, mutant)
    return any(
        e.path == mutant.path and [e.before, e.after] == texts and line in e.lines(code)
        for e in entries
    )


def change(code: str, mutant: Mutant) -> Change:
    """What the mutant changes of its file's code."""
    old, new = _rows(code), _rows(mutated(code, mutant))
    first = next(n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
    last = next(n for n, (a, b) in enumerate(zip(old[::-1], new[::-1], strict=False)) if a != b)
    return first + 1, *("\n".join(rows[first : len(rows) - last]) for rows in (old, new))


def _rows(code: str) -> list[str]:
    return [row.strip() for row in code.splitlines()]


def _spans(code: str, name: str) -> Iterator[range]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            yield range(node.lineno, (node.end_lineno or node.lineno) + 1)
