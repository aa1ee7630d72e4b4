"""One input given to a reader: no exception, exit code 0, 1 or 2, and bounded work.

The clock counts this process's own seconds: a loaded machine finds no more than an idle one.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
import resource
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import gpuplan.fleet.solver.run as packer
from bench.torture.readers import READERS, ROOT, furnish, seeds
from bench.torture.warm import warm
from gpuplan.cli.main import main

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # no disk's time
MOST_SECONDS = 5.0
MOST_BYTES = 2**30
COLLECTED_EVERY = 100  # inputs
EFFORT = 500  # places that the packer looks at: what it finds is not at stake here


class TooLong(BaseException):
    """An input took more than `MOST_SECONDS`; no handler of the program catches it."""


class Lost(Exception):
    """An answer that could not be written, though nothing is wrong with where it goes."""


@dataclass
class Trials:
    """A reader in a folder of its own; `failures` counts what went wrong, by its place."""

    name: str
    out: Path | None = None  # where inputs that fail are kept
    count: int = 0
    read: int = 0  # inputs that were good
    failures: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="torture-", dir=MEMORY)
        self.folder = Path(self._folder.name)
        self.reader = READERS[self.name]
        furnish(self.folder)
        signal.signal(signal.SIGPROF, _too_long)
        warm()
        self._file = self.folder / self.reader.file
        self._start()

    def _start(self) -> None:
        """Imports and caches first: they are not an input's work."""
        for text in (*seeds(self.name), b""):
            self._file.write_bytes(text)
            for verb in self.reader.verbs:
                ran(verb, self.folder)
        gc.freeze()
        gc.disable()  # as the program does; between inputs it is collected

    def attempt(self, content: bytes) -> str | None:
        """The failure, or None."""
        self.count += 1
        if self.count % COLLECTED_EVERY == 0:
            gc.collect()
        self._file.write_bytes(content)
        fault = None
        codes = []
        for verb in self.reader.verbs:
            try:
                with limited():
                    codes.append(ran(verb, self.folder))
            except TooLong:
                fault = f"more than {MOST_SECONDS:.0f} s"
            except MemoryError:
                fault = "more than 1 GiB"
            except Exception as problem:  # noqa: BLE001 - whatever it is, it is looked for
                fault = _place(problem)
            if fault is None and codes[-1] not in (0, 1, 2):
                fault = f"exit code {codes[-1]}"
            if fault:
                self._keep(f"{verb[0]}: {fault}", content)
                return fault
        self.read += codes[0] == 0
        return None

    def _keep(self, fault: str, content: bytes) -> None:
        self.failures[fault] += 1
        if self.out is not None and self.failures[fault] <= 3:
            self.out.mkdir(parents=True, exist_ok=True)
            name = hashlib.sha256(content).hexdigest()[:12]
            (self.out / name).write_bytes(content)
            (self.out / f"{name}.fault").write_text(fault + "\n", encoding="utf-8")


def ran(verb: tuple[str, ...], folder: Path) -> int:
    """The exit code of a verb in `folder`, with all that it says thrown away. Raises `Lost` where
    it takes a fault of its own for one of the stream that it writes to."""
    packer.ruin_work = lambda _: EFFORT
    before = Path.cwd()
    os.chdir(folder)
    with (
        Path(os.devnull).open("w", encoding="utf-8") as answer,
        tempfile.TemporaryFile("w+", encoding="utf-8") as said,  # atheris's alarm asks its number
    ):
        try:
            with contextlib.redirect_stdout(answer), contextlib.redirect_stderr(said):
                code = main(verb)
        except SystemExit as ended:
            return ended.code if isinstance(ended.code, int) else 2
        finally:
            os.chdir(before)
        said.seek(0)
        problem = said.read().strip()
    if "cannot write the answer" in problem:
        raise Lost(problem)
    return code


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """At most `MOST_SECONDS` of work and `MOST_BYTES` more than now."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = now + MOST_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit if hard < 0 else min(limit, hard), hard))
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def _too_long(_number: int, _frame: FrameType | None) -> None:
    raise TooLong


def _place(problem: Exception) -> str:
    """The kind of an exception, and the last line of ours that it passed."""
    if isinstance(problem, Lost):
        return str(problem)
    frames = traceback.extract_tb(problem.__traceback__)
    own = [f for f in frames if "/gpuplan/" in f.filename] or list(frames)
    path = Path(own[-1].filename)
    place = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    return f"{type(problem).__name__} at {place}:{own[-1].lineno}"


if sys.platform != "linux":  # pragma: no cover
    raise SystemExit("bench.torture needs Linux: it measures memory by /proc")
