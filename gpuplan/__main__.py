"""The program: `main` in a process of its own, which starts and ends as fast as it can."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
from types import ModuleType
from typing import Any, NoReturn

from gpuplan.cli.main import main

METADATA = "importlib.metadata"


class _Metadata(ModuleType):
    """Itself when it is used: pydantic takes `entry_points` from it to look for its plugins, which
    are off, and what it imports is a part of every call's time."""

    def entry_points(self, **which: Any) -> Any:
        return self.__getattr__("entry_points")(**which)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules[METADATA] is self:
            del sys.modules[METADATA]
        return getattr(importlib.import_module(METADATA), name)


def run() -> NoReturn:
    """Collecting garbage, asking pydantic's plugins and tidying memory up take a fifth of a
    `compile`, and give a process that ends at once nothing."""
    gc.disable()
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    sys.modules.setdefault(METADATA, _Metadata(METADATA))
    for number, mode in ((0, "r"), (1, "w"), (2, "w")):  # a stream that the caller closed
        name = ("stdin", "stdout", "stderr")[number]
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
    code = 3
    try:
        code = main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 2
    except Exception as bug:  # noqa: BLE001 - the one place: whatever arrives here is our mistake
        _report(bug)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _report(bug: Exception) -> None:
    """An exception that nobody expected, with what a report of it needs and nothing of the input's
    own text."""
    import platform
    import traceback

    from gpuplan import __version__

    frames = traceback.extract_tb(bug.__traceback__)
    own = [f for f in frames if "gpuplan" in f.filename] or list(frames)
    places = " < ".join(f"{os.path.basename(f.filename)}:{f.lineno}" for f in own[:-6:-1])  # noqa: PTH119
    verb = next((a for a in sys.argv[1:] if not a.startswith("-")), "")
    fault = f"gpuplan {__version__} {verb}: {type(bug).__name__} at {places}"
    lines = (
        "error: this is a mistake in gpuplan, not in your input",
        f"  = report: {fault} (Python {platform.python_version()}, {platform.system()})",
        "  = help: send this line with the files that bring it about, as SECURITY.md says",
    )
    with contextlib.suppress(OSError, ValueError):
        print("\n".join(lines), file=sys.stderr)


if __name__ == "__main__":
    run()
