"""The environment that atheris lives in: it is no dependency of the program or of its tests."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

from bench.torture.readers import ROOT

ATHERIS = "atheris>=3,<4"


def guided_python(folder: Path) -> str:
    """A Python in `folder` that has atheris and this checkout; empty where there can be none."""
    python = folder / "bin" / "python"
    if python.exists() and _said(python, "-c", "import atheris, gpuplan.cli.main") is None:
        return str(python)
    venv.create(folder, with_pip=True, clear=True)
    pip = ("-m", "pip", "install", "-q", "--disable-pip-version-check")
    problem = _said(python, *pip, ATHERIS, "-e", str(ROOT))
    if problem is not None:
        version = ".".join(map(str, sys.version_info[:2]))
        last = problem.strip().splitlines()[-1:] or ["no reason was said"]
        print(f"no atheris for Python {version} here: {last[0]}; strategies alone", file=sys.stderr)
        return ""
    return str(python)


def _said(python: Path, *arguments: str) -> str | None:
    """What a command complains of, None where it succeeds."""
    words = [str(python), *arguments]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else None
