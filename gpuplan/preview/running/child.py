"""The process that runs a program: started early, told what to run, never left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from gpuplan.preview import messages
from gpuplan.preview.messages import PreviewFailed

DRIVER = Path(__file__).with_name("driver.py")
KEPT = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
SOCKET_LIMIT = 100  # a Unix socket's path has at most 104 bytes on macOS, 108 on Linux


class TimedOut(Exception):
    """The program did not end in time."""


class Child:
    """A Python process with an empty home and no credentials, importing the SDK while its parent
    gets ready. Use as a context manager: leaving it ends the process and removes its folder."""

    def __init__(self, python: str) -> None:
        self.python = python
        # A relative path starts from here, not from the child's folder; a link is no detour: it is
        # how a virtual environment is found.
        executable = str(Path(python).absolute()) if os.sep in python else python
        base = None if len(tempfile.gettempdir()) < SOCKET_LIMIT - 40 else "/tmp"  # noqa: S108
        self.folder = Path(tempfile.mkdtemp(prefix="gpuplan-preview-", dir=base)).resolve()
        self._output = (self.folder / "output.txt").open("wb")
        try:
            self._process = subprocess.Popen(
                [executable, str(DRIVER)],
                stdin=subprocess.PIPE,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                env=environment(self.folder),
                cwd=self.folder,
                start_new_session=True,
            )
        except OSError as problem:
            self._output.close()
            shutil.rmtree(self.folder, ignore_errors=True)
            reason = (problem.strerror or "it cannot run").lower()
            raise PreviewFailed([messages.no_python(python, reason)]) from None

    @property
    def address(self) -> str:
        """Where the engine listens: a socket in a folder that only this user can enter."""
        return f"unix:{self.folder}/engine"

    def start(self, settings: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        line = json.dumps({**settings, "temporary": str(self.folder), "monitor": self.address})
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return  # it died already: `wait` says how

    def wait(self, timeout_s: float) -> dict[str, Any]:
        """The driver's `result.json`. Raises `TimedOut`, or `PreviewFailed` when it left none."""
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise TimedOut from None
        try:
            answer: dict[str, Any] = json.loads((self.folder / "result.json").read_bytes())
        except (OSError, ValueError):
            raise PreviewFailed([self._ended(code)]) from None
        return answer

    def _ended(self, code: int) -> Any:
        if code < 0:
            return messages.died(signal.Signals(-code).name)
        last = self.output().strip().rpartition("\n")[2]
        return messages.no_python(self.python, last or f"it ended with code {code}")

    def output(self) -> str:
        """What the program printed so far."""
        return (self.folder / "output.txt").read_text(encoding="utf-8", errors="replace")

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _problem: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):  # it may have left without reading its settings
                self._process.stdin.close()
        self._output.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def environment(home: Path) -> dict[str, str]:
    """Enough to start Python, and the same on every machine otherwise: no credentials, proxies or
    kubeconfig, an empty home, one locale, time zone and hash seed."""
    kept = {k: os.environ[k] for k in KEPT if k in os.environ}
    folders = ("HOME", "USERPROFILE", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "PULUMI_HOME")
    return {
        **kept,
        **dict.fromkeys(folders, str(home)),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "PYTHONUTF8": "1",
        "GRPC_VERBOSITY": "NONE",
    }
