"""Tests run on a mutant from the start, in a fork and on a copy of the repository.

The tests that execute the mutated line run until one fails, the quick ones first, or those of its
users (users.py). Which these are comes from one run with coverage. The copy has no `stacks/` but
where tests read stacks as input: files that `make generate` writes anew are no witness. A fork has
imported what the tests need but gpuplan and the tests.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

import coverage
import hypothesis
import jinja2  # noqa: F401 - imported once, for all forks
import numpy as np  # noqa: F401 - as above
import pydantic  # noqa: F401 - as above
import pytest
import ruamel.yaml  # noqa: F401 - as above

Outcome = Literal["killed", "survived", "same", "timed out"]
_REWRITE = "ignore::pytest.PytestAssertRewriteWarning"  # hypothesis is imported already
_OPTIONS = ("-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--tb=no", "-W", _REWRITE)
_KINDS = "not cluster and not hypervisor and not nova and not pulumi and not hwloc"
_CACHED = type(functools.cache(lambda: None))
_MOST_MEMORY_BYTES = 12 * 2**30


@dataclass
class Known:
    """What a run without a mutant showed. `executed` has the numbers of tests in `seconds` that
    execute a line, by file and line; `digests` say of which text of a file."""

    seconds: dict[str, float] = field(default_factory=dict)
    failing: list[str] = field(default_factory=list)
    executed: dict[str, dict[int, list[int]]] = field(default_factory=dict)
    digests: dict[str, str] = field(default_factory=dict)
    cpu_seconds: float = 0.0
    most_seconds: float = math.inf  # of the tests that one mutant meets
    telling: tuple[str, ...] = ()  # files of tests that `most_seconds` leaves in

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(vars(self)), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Known:
        known = cls(**json.loads(path.read_text(encoding="utf-8")))
        known.executed = {
            name: {int(line): tests for line, tests in lines.items()}
            for name, lines in known.executed.items()
        }
        return known

    @property
    def limit_seconds(self) -> int:
        """Processor time after which a mutant is taken to run for ever, of all tests."""
        return round(2 * self.cpu_seconds) + 20

    def limit_of(self, tests: Iterable[str]) -> int:
        """The same of some tests, by the time that they took with coverage."""
        taken = 2 * sum(self.seconds.get(test, 0.0) for test in tests)
        return min(round(taken) + 20, self.limit_seconds)

    def files(self, root: Path) -> set[Path]:
        """Those of the tests below `root`."""
        return {root / test.partition("::")[0] for test in self.seconds}

    def covering(self, path: str, line: int) -> set[str]:
        """The tests that execute the line."""
        tests = [*self.seconds]
        return {tests[n] for n in self.executed.get(path, {}).get(line, ())}

    def chosen(self, items: Iterable[pytest.Item], wanted: set[str]) -> list[pytest.Item]:
        """Of tests those that are wanted and new ones, the quick ones first; none that fails
        without a mutant. `most_seconds` in all, and the telling ones beside these."""
        tried = sorted(
            (
                (self.seconds.get(item.nodeid, 0.0), item)
                for item in items
                if item.nodeid in wanted or item.nodeid not in self.seconds
                if item.nodeid not in self.failing
            ),
            key=itemgetter(0),
        )
        spent, chosen = 0.0, []
        for seconds, item in tried:
            telling = item.nodeid.partition("::")[0] in self.telling
            spent += 0.0 if telling else seconds
            if telling or spent <= self.most_seconds:
                chosen.append(item)
        return chosen


class _Chosen:
    """Runs the tests that are wanted, in order."""

    def __init__(self, known: Known, wanted: set[str]) -> None:
        self.known, self.wanted = known, wanted

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = self.known.chosen(items, self.wanted)


class _Watching:
    """Notes each test's time, outcome and lines."""

    def __init__(self, known: Known, tracer: coverage.Coverage) -> None:
        self.known, self.tracer = known, tracer

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self.tracer.switch_context(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        taken = self.known.seconds.get(report.nodeid, 0.0) + report.duration
        self.known.seconds[report.nodeid] = taken
        if report.failed:
            self.known.failing.append(report.nodeid)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def forget(files: set[str]) -> None:
    """Empty what the functions of these files remember of their calls."""
    for module in [*sys.modules.values()]:
        if getattr(module, "__file__", None) in files:
            for value in [*vars(module).values()]:
                if isinstance(value, _CACHED):
                    value.cache_clear()


def copy(root: Path, target: Path, *, stacks: bool) -> None:
    """The files of the working tree that git does not ignore, with or without `stacks/`."""
    left_out = (".github/",) if stacks else (".github/", "stacks/")
    listing = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    names = subprocess.run(listing, cwd=root, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if not name.startswith(left_out) and (root / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target / name)


def watch(folder: Path, tests: tuple[str, ...], paths: list[str], file: Path) -> Known:
    """Run `tests` in `folder` without a mutant, noting who executes the lines of `paths`."""

    def run() -> int:
        known = Known()
        tracer = coverage.Coverage(data_file=None, include=paths)
        tracer.start()
        code = pytest.main([*_OPTIONS, "-m", _KINDS, *tests], plugins=[_Watching(known, tracer)])
        tracer.stop()
        numbers = {test: n for n, test in enumerate(known.seconds)}
        data = tracer.get_data()
        for path in data.measured_files():
            known.executed[os.path.relpath(path)] = {
                line: [numbers[test] for test in contexts if test in numbers]
                for line, contexts in data.contexts_by_lineno(path).items()
            }
            text = Path(path).read_text(encoding="utf-8")
            known.digests[os.path.relpath(path)] = digest(text)
        known.save(file)
        return 0 if code in (0, 1) else int(code)

    before = _spent()
    code = _fork(folder, run, cpu_seconds=3600, output=file.with_suffix(".log"))
    if code:
        raise SystemExit(f"the tests do not run without a mutant: {file.with_suffix('.log')}")
    known = Known.load(file)
    known.cpu_seconds = _spent() - before
    known.save(file)
    return known


def attempt(
    folder: Path, tests: tuple[str, ...], known: Known, wanted: set[str], *, path: str, code: str
) -> Outcome:
    """What those of `tests` that are wanted say in `folder`, with `code` in place of the file at
    `path`."""
    arguments = options(folder, tests)
    original = (folder / path).read_text(encoding="utf-8")
    (folder / path).write_text(code, encoding="utf-8")
    try:
        status = _fork(
            folder,
            lambda: int(pytest.main(arguments, plugins=[_Chosen(known, wanted)])),
            cpu_seconds=known.limit_of(wanted),
        )
    finally:
        (folder / path).write_text(original, encoding="utf-8")
    return outcome(status)


def outcome(status: int) -> Outcome:
    """What the exit code of pytest, or the signal that ended it, says of a mutant."""
    if status in (-signal.SIGXCPU, -signal.SIGALRM, -signal.SIGKILL):
        return "timed out"
    return "killed" if status else "survived"


def options(folder: Path, tests: tuple[str, ...]) -> list[str]:
    return [*_OPTIONS, "-x", "-m", _KINDS, f"--basetemp={folder}-temporary", *tests]


def _spent() -> float:
    """Processor seconds of all forks so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _fork(
    folder: Path, run: Callable[[], int], *, cpu_seconds: int, output: Path | None = None
) -> int:
    return fork(lambda: limited(folder, run, output), cpu_seconds)


def fork(run: Callable[[], int], cpu_seconds: int) -> int:
    """The exit code of `run` in a fork; negative for a signal, as after `cpu_seconds`."""
    child = os.fork()
    if not child:
        code = 70
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, resource.RLIM_INFINITY))
            signal.alarm(10 * cpu_seconds)
            code = run()
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def limited(folder: Path, run: Callable[[], int], output: Path | None = None) -> int:
    """`run` in `folder`, silent or into `output`."""
    sink = os.open(output or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(sink, stream)
    os.chdir(folder)
    os.environ["PWD"] = str(folder)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # two mutants of a second look alike to a .pyc
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(folder))
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY_BYTES, _MOST_MEMORY_BYTES))
    profile: dict[str, Any] = {"derandomize": True, "database": None}
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("mutants", phases=phases, **profile)
    hypothesis.settings.load_profile("mutants")
    return run()
