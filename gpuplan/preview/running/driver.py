"""The child process of a preview: runs one Pulumi program as Pulumi's Python language host does.

Started by path with the Python that has the SDK, which need not have gpuplan: only the standard
library and `pulumi` are imported. Reads its settings as one line of JSON from stdin and leaves
`result.json` in the folder that they call `temporary`. Ends by itself when stdin closes, so that it
never outlives its parent.

The guards keep an honest program from touching what a preview must not touch. They are no sandbox.
"""

from __future__ import annotations

import sys

sys.path.pop(0)  # this file's folder: its modules must not shadow the program's

import asyncio
import gc
import json
import logging
import os
import runpy
import shutil
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = ("os.mkdir", "os.remove", "os.rmdir")
MOVES = ("os.rename", "os.link", "os.symlink")
PROCESSES = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork")
LOOKUPS = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")
SENDS = ("socket.connect", "socket.sendto", "socket.sendmsg")


class Refused(PermissionError):
    """The program did something that a preview does not do."""


class Guard:
    """Audit events that a preview refuses.

    Files are written below `temporary` only; compiled modules also beside their source, outside of
    the stack's `folder` (where Python goes on without them).
    """

    def __init__(self, folder: str, temporary: str) -> None:
        self.folder, self.temporary = folder + os.sep, temporary + os.sep
        self.checks: dict[str, Callable[[Any], None]] = {
            "open": self.on_open,
            "os.truncate": self.on_truncate,
        }
        self.checks.update(dict.fromkeys(CHANGES, self.on_change))
        self.checks.update(dict.fromkeys(MOVES, self.on_move))
        self.checks.update(dict.fromkeys(PROCESSES, self.on_process))
        self.checks.update(dict.fromkeys(LOOKUPS, self.on_lookup))
        self.checks.update(dict.fromkeys(SENDS, self.on_send))

    def __call__(self, event: str, arguments: Any) -> None:
        check = self.checks.get(event)
        if check is not None:
            check(arguments)

    def on_open(self, arguments: Any) -> None:
        path, _mode, flags = arguments
        if isinstance(flags, int) and flags & WRITING and not isinstance(path, int):
            self.refuse_outside(path)

    def on_truncate(self, arguments: Any) -> None:
        if not isinstance(arguments[0], int):  # a number is a file that was opened for writing
            self.refuse_outside(arguments[0])

    def on_change(self, arguments: Any) -> None:
        folder = arguments[-1]
        self.refuse_outside(arguments[0], None if folder == -1 else folder)

    def on_move(self, arguments: Any) -> None:
        self.refuse_outside(arguments[0])
        self.refuse_outside(arguments[1])

    def refuse_outside(self, path: Any, folder: int | None = None) -> None:
        """`folder` is the open directory that a relative `path` starts from; only Linux tells which
        one that is, elsewhere such a change passes."""
        start = Path() if folder is None else Path(f"/proc/self/fd/{folder}")
        if not start.exists():
            return
        target = os.path.realpath(start / os.fsdecode(path)) + os.sep
        compiled = "__pycache__" in target and not target.startswith(self.folder)
        allowed = target == os.devnull + os.sep or target.startswith(self.temporary)
        if not (compiled or allowed):
            raise Refused(f"a preview writes no files: {target.rstrip(os.sep)}")

    def on_process(self, arguments: Any) -> None:
        program = arguments[0] if arguments else "a copy of itself"
        raise Refused(f"a preview starts no processes: {program}")

    def on_lookup(self, arguments: Any) -> None:
        raise Refused(f"a preview uses no network: {arguments[0]!r}")

    def on_send(self, arguments: Any) -> None:
        if isinstance(arguments[1], tuple):  # a Unix socket's address is a path
            raise Refused(f"a preview uses no network: {arguments[1][0]!r}")


class QuietEngine:
    """The engine without debug messages: the SDK sends eight for each resource, one call each."""

    def __init__(self, engine: Any, debug: int, empty: Any) -> None:
        self._engine, self._debug, self._empty = engine, debug, empty

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def Log(self, request: Any, *more: Any) -> Any:  # noqa: N802
        return self._empty if request.severity == self._debug else self._engine.Log(request, *more)


def end_with_parent(temporary: str, guard: Guard) -> None:
    """Wait until stdin closes, which it does when the parent is gone; then clean up and end."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        guard.checks.clear()
        shutil.rmtree(temporary, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def run(settings: dict[str, Any], pulumi: Any, guard: Guard) -> None:
    """Run the program in a stack; returns when all its resources are registered."""
    from google.protobuf.empty_pb2 import Empty
    from pulumi.runtime.proto import engine_pb2

    runtime = pulumi.runtime
    runtime.set_all_config(settings["config"], settings["secret_keys"])
    connection = runtime.Settings(
        monitor=settings["monitor"],
        engine=settings["monitor"],
        project=settings["project"],
        stack=settings["stack"],
        parallel=1,
        dry_run=True,
        organization="organization",
        root_directory=settings["folder"],
    )
    connection.engine = QuietEngine(connection.engine, engine_pb2.DEBUG, Empty())
    runtime.configure(connection)
    os.chdir(settings["working_folder"])
    sys.argv = [settings["program"]]
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # as the language host does
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.set_default_executor(ThreadPoolExecutor(max_workers=4))
    sys.addaudithook(guard)

    def program() -> None:
        runpy.run_path(settings["program"], run_name="__main__")

    loop.run_until_complete(runtime.run_in_stack(program))


def failure(problem: BaseException, folder: str) -> dict[str, Any]:
    """What went wrong, and the frames of it that lie in `folder`, outermost first."""
    frames: list[tuple[str, int]] = []
    cause: BaseException | None = problem
    while cause is not None:
        frames = own_frames(cause, folder) or frames
        cause = cause.__cause__ or cause.__context__
    return {
        "kind": type(problem).__name__,
        "message": problem.msg if isinstance(problem, SyntaxError) else str(problem),
        "module": getattr(problem, "name", None) if isinstance(problem, ImportError) else None,
        "refused": isinstance(problem, Refused),
        "frames": frames,
    }


def own_frames(problem: BaseException, folder: str) -> list[tuple[str, int]]:
    frames = [(f.filename, f.lineno or 0) for f in traceback.extract_tb(problem.__traceback__)]
    if isinstance(problem, SyntaxError) and problem.filename:
        frames.append((problem.filename, problem.lineno or 0))
    inside = [(os.path.realpath(path), line) for path, line in frames]
    return [
        (os.path.relpath(path, folder), line)
        for path, line in inside
        if path.startswith(folder + os.sep) and "site-packages" not in path
    ]


def main() -> None:
    gc.set_threshold(100_000, 50, 50)  # most of the time goes into imports, which leave no garbage
    result: dict[str, Any] = {"kind": ""}
    try:
        import pulumi
        import pulumi.runtime
    except ImportError as problem:
        pulumi, result = None, {"kind": "SdkMissing", "module": problem.name or "pulumi"}
    line = sys.stdin.buffer.readline()
    if not line:
        os._exit(1)
    settings = json.loads(line)
    guard = Guard(settings["folder"], settings["temporary"])
    end_with_parent(settings["temporary"], guard)
    if pulumi is not None:
        try:
            run(settings, pulumi, guard)
        except BaseException as problem:  # noqa: BLE001 - every end of the program is an answer
            if not (isinstance(problem, SystemExit) and problem.code in (None, 0)):
                result = failure(problem, settings["folder"])
    sys.stdout.flush()
    sys.stderr.flush()
    Path(settings["temporary"], "result.json").write_text(json.dumps(result), encoding="utf-8")
    os._exit(0)


if __name__ == "__main__":
    main()
