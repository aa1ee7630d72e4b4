"""Which tests meet a line that no test executes, since it runs when its module is imported: those
that execute a line which names what the statement binds, directly or over other statements.

A name is looked for as a word in all files of the package: too many tests rather than too few.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench.mutants.trial import Known

_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class _Statement:
    """One at a module's top; `words` are those of its code that runs at import."""

    path: str
    first: int
    last: int
    names: frozenset[str]
    words: frozenset[str]


class Users:
    """The tests of lines of `files`, which are code by path."""

    def __init__(self, files: Mapping[str, str], known: Known) -> None:
        self.known = known
        self.statements = [s for path, code in files.items() for s in _statements(path, code)]
        self.mentions: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for path, code in files.items():
            for number, row in enumerate(code.splitlines(), 1):
                for word in {*_WORD.findall(row)}:
                    self.mentions[word].append((path, number))

    def tests(self, path: str, line: int) -> set[str]:
        """Those that execute the line, where it is run by tests; else those of its users. Empty
        where nothing is known of it."""
        made = [s for s in self.statements if s.path == path and s.first <= line <= s.last]
        names: set[str] = set()
        while more := {name for s in made for name in s.names} - names:
            names |= more
            made += [s for s in self.statements if s.words & more]
        rows = {(s.path, n) for s in made for n in range(s.first, s.last + 1)}
        rows |= {row for name in names for row in self.mentions[name]}
        return {test for row in rows for test in self.known.covering(*row)}


def _statements(path: str, code: str) -> Iterator[_Statement]:
    for node in ast.parse(code).body:
        place = (path, node.lineno, node.end_lineno or node.lineno)
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                bound = frozenset((alias.asname or alias.name,))
                yield _Statement(*place, bound, frozenset((alias.name,)))
        else:
            yield _Statement(*place, frozenset(_bound(node)), frozenset(_words(node)))


def _bound(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
        return
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id


def _words(node: ast.AST) -> Iterator[str]:
    """Names that the node reads when its module is imported: those of no function's body."""
    if isinstance(node, ast.FunctionDef):
        parts: list[ast.AST] = [node.args, *node.decorator_list]
    elif isinstance(node, ast.Lambda):
        parts = []
    else:
        parts = [*ast.iter_child_nodes(node)]
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node.id
    if isinstance(node, ast.Attribute):
        yield node.attr
    for part in parts:
        yield from _words(part)
