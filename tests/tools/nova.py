"""OpenStack nova in an environment of its own, whose placement code the `nova` tests ask.

    python tests/tools/nova.py        two minutes; the packages are those of nova-packages.txt

The environment lands in `~/.cache/gpuplan-engines/nova-VERSION` ($ENGINES replaces the folder
before the last). `$GPUPLAN_NOVA_PYTHON` names the Python of another environment that has nova.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import venv
from pathlib import Path
from typing import Any

from tests.tools.engines import CACHE

HERE = Path(__file__).parent
PACKAGES = HERE / "nova-packages.txt"
PROGRAM = HERE / "nova_fit.py"
VARIABLE = "GPUPLAN_NOVA_PYTHON"


def version() -> str:
    lines = PACKAGES.read_text().splitlines()
    return next(line.removeprefix("nova==") for line in lines if line.startswith("nova=="))


def folder() -> Path:
    return CACHE / f"nova-{version()}"


def python() -> Path | None:
    """The Python that has nova, or None."""
    stated = os.environ.get(VARIABLE)
    if stated:
        return Path(stated)
    return folder() / "bin" / "python" if (folder() / "complete").exists() else None


def absent() -> str:
    """Why nova cannot be asked; empty where it can."""
    found = python()
    if found is None:
        return "nova is not installed: `make nova` (two minutes, once)"
    return "" if found.exists() else f"{VARIABLE} names {found}, which is not there"


def ask(questions: list[dict[str, Any]]) -> list[list[Any] | None]:
    """nova's answer to each question; `nova_fit.py` says what both look like. (`-P`: the folder of
    the program has a `nova.py`, this one.)"""
    found = python()
    assert found is not None
    done = subprocess.run(
        [found, "-P", PROGRAM],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"nova failed:\n{done.stderr[-2000:]}")
    answers: list[list[Any] | None] = json.loads(done.stdout)
    return answers


def install() -> int:
    if (folder() / "complete").exists():
        print(f"nova {version()}: present")
        return 0
    started = time.monotonic()
    venv.create(folder(), with_pip=True, clear=True)
    pip = (
        folder() / "bin" / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--requirement",
        PACKAGES,
    )
    if subprocess.run(pip, check=False).returncode:
        return 1
    (folder() / "complete").touch()
    print(f"nova {version()}: {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(install())
