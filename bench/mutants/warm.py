"""Quick trials: a mutant's functions put into a program whose tests are collected already.

One process a worker imports the tests and forks for each mutant, so that a trial costs no more than
the tests that execute the mutated line. What cannot be replaced in a program that runs (constants,
defaults, classes) has to be tried from the start. Values that were computed while tests were
collected, and are remembered elsewhere than in the package's cached functions, are not mutated: a
mutant may be called alive here that a fresh start would kill, and none the other way round.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import types
from collections import defaultdict
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import _pytest.main
import pytest

from bench.mutants.trial import Known, Outcome, forget, fork, limited, options, outcome

_NOT_REPLACED = 71


class Warm:
    """A process in `folder` that has collected `tests`."""

    def __init__(self, folder: Path, tests: tuple[str, ...], known: Known) -> None:
        self.pipe, its_end = multiprocessing.Pipe()
        if os.fork():
            its_end.close()
            return
        self.pipe.close()
        plugin = _Trials(its_end, folder, known)

        def run() -> int:
            return int(pytest.main(options(folder, tests), plugins=[plugin]))

        try:
            limited(folder, run)
        finally:
            os._exit(0)

    def attempt(self, path: str, code: str, wanted: set[str]) -> Outcome | None:
        """What the tests that are wanted say; None where no function differs."""
        self.pipe.send((path, code, wanted))
        status = int(self.pipe.recv())
        return None if status == _NOT_REPLACED else outcome(status)


class _Trials:
    def __init__(self, pipe: Connection, folder: Path, known: Known) -> None:
        self.pipe, self.folder, self.known = pipe, folder, known

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = session.items
        gc.freeze()
        while True:
            try:
                path, code, wanted = self.pipe.recv()
            except EOFError:
                return True
            session.items = self.known.chosen(items, wanted)
            file = str(self.folder / path)
            limit = self.known.limit_of(item.nodeid for item in session.items)
            files = {str(self.folder / known) for known in self.known.executed}
            status = fork(lambda: _trial(session, file, code, files), limit)  # noqa: B023 - runs at once
            self.pipe.send(status)


def _trial(session: pytest.Session, file: str, code: str, files: set[str]) -> int:
    if not replaced(file, code):
        return _NOT_REPLACED
    forget(files)
    try:
        _pytest.main.pytest_runtestloop(session)
    except session.Failed:
        return 1
    return 1 if session.testsfailed else 0


def replaced(file: str, code: str) -> bool:
    """Put the functions of `code` in place of those of `file` that differ; whether any does."""
    gc.unfreeze()
    new: dict[tuple[str, int], list[types.CodeType]] = defaultdict(list)
    for function in _functions(compile(code, file, "exec")):
        new[function.co_qualname, function.co_firstlineno].append(function)
    count = 0
    for known in gc.get_objects():
        if isinstance(known, types.FunctionType) and known.__code__.co_filename == file:
            candidates = new[known.__code__.co_qualname, known.__code__.co_firstlineno]
            if len(candidates) == 1 and candidates[0] != known.__code__:
                known.__code__ = candidates[0]
                count += 1
    return count > 0


def _functions(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _functions(constant)
