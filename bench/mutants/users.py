"""Which tests meet a line: those that execute it; and of one that runs when its module is imported,
be it of a function that is called then alone, or of a function whose results are remembered, or
that such a function names, which one test alone may have executed, those that execute a line which
names what it makes, directly or over other such, and those of files that name it.

A name is looked for as a word in all files of the package: too many tests rather than too few.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bench.mutants.trial import Known, digest

_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class _Statement:
    """One at a module's top; `words` are those of its code that runs at import."""

    path: str
    first: int
    last: int
    names: frozenset[str]
    words: frozenset[str]
    plain: frozenset[int] = frozenset()  # lines of functions that run at each call
    cached: bool = False
    function: bool = False


class Users:
    """The tests of lines of `files`; these and `tests`, which have the tests, are code by path."""

    def __init__(self, files: Mapping[str, str], tests: Mapping[str, str], known: Known) -> None:
        self.known = known
        self.changed = {p for p, code in files.items() if known.digests.get(p) != digest(code)}
        self.words = {path: {*_WORD.findall(code)} for path, code in tests.items()}
        self.statements = [s for path, code in files.items() for s in _statements(path, code)]
        self.mentions: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for path, code in files.items():
            for number, row in enumerate(code.splitlines(), 1):
                for word in {*_WORD.findall(row)}:
                    self.mentions[word].append((path, number))

    def tests(self, path: str, line: int, *, at_import: bool = False) -> set[str]:
        """All, where nothing is known of what is made at import, or the file has changed since.
        `at_import`: the line is executed then alone, whatever it is of."""
        if path in self.changed:
            return {*self.known.seconds}
        made = [s for s in self.statements if s.path == path and s.first <= line <= s.last]
        plain = any(line in s.plain for s in made) and not at_import
        if plain and not self._asked_once(made):
            return self.known.covering(path, line)
        names: set[str] = set()
        while more := {name for s in made for name in s.names} - names:
            names |= more
            rows = {row for name in more for row in self.mentions[name]}
            made += [s for s in self.statements if s.words & more or _remembers(s, rows)]
        rows = {(s.path, n) for s in made for n in range(s.first, s.last + 1)}
        rows |= {row for name in names for row in self.mentions[name]}
        met = {test for row in rows for test in self.known.covering(*row)}
        naming = {path for path, words in self.words.items() if words & names}
        met |= {test for test in self.known.seconds if test.partition("::")[0] in naming}
        return met or {*self.known.seconds}

    def _asked_once(self, made: list[_Statement]) -> bool:
        """Whether they are functions that one which remembers names."""
        rows = {row for s in made if s.function for name in s.names for row in self.mentions[name]}
        return any(_remembers(s, rows) for s in self.statements)


def _remembers(statement: _Statement, rows: set[tuple[str, int]]) -> bool:
    """Whether it is a function that remembers, and has one of the rows."""
    return statement.cached and any(
        path == statement.path and statement.first <= line <= statement.last for path, line in rows
    )


def _statements(path: str, code: str) -> Iterator[_Statement]:
    for node in ast.parse(code).body:
        place = (path, node.lineno, node.end_lineno or node.lineno)
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                bound = frozenset((alias.asname or alias.name,))
                yield _Statement(*place, bound, frozenset((alias.name,)))
        else:
            words, cached = frozenset(_words(node)), _is_cached(node)
            plain = frozenset(() if cached else _plain(node))
            function = isinstance(node, ast.FunctionDef)
            yield _Statement(*place, frozenset(_bound(node)), words, plain, cached, function)


def _is_cached(node: ast.stmt) -> bool:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return any("cache" in ast.unparse(each) for each in decorators)


def _plain(node: ast.stmt) -> Iterator[int]:
    """Lines of the bodies of its functions."""
    for part in ast.walk(node):
        if isinstance(part, ast.FunctionDef):
            yield from range(part.body[0].lineno, (part.end_lineno or part.lineno) + 1)


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
