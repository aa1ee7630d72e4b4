"""The program as people run it: a process of its own, and the folders that it writes."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = tuple(sorted((ROOT / "examples").glob("*.yaml")))

Files = dict[str, tuple[int, bytes]]


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "gpuplan", *map(str, arguments)]


def run(
    *arguments: str | Path,
    cwd: Path = ROOT,
    environment: dict[str, str] | None = None,
    umask: int = 0o022,
) -> str:
    """What a command prints. Any exit code but 0 fails the test with what it said."""
    done = subprocess.run(
        [str(a) for a in arguments],
        cwd=cwd,
        env=os.environ | (environment or {}),
        umask=umask,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise AssertionError(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def gpuplan(
    *arguments: str | Path,
    cwd: Path = ROOT,
    environment: dict[str, str] | None = None,
    umask: int = 0o022,
) -> str:
    """What this checkout's program prints."""
    here = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""} | (environment or {})
    return run(*command(*arguments), cwd=cwd, environment=here, umask=umask)


def files(folder: Path) -> Files:
    """path → (mode, content) of every file and folder below `folder`, hidden ones too."""
    found: Files = {}
    for path in sorted(folder.rglob("*")):
        mode = stat.S_IMODE(path.lstat().st_mode)
        content = b"" if path.is_dir() else path.read_bytes()
        found[path.relative_to(folder).as_posix()] = (mode, content)
    return found


def difference(one: Files, other: Files) -> list[str]:
    """Paths that only one has, or that differ in content or mode."""
    return sorted(p for p in one.keys() | other.keys() if one.get(p) != other.get(p))
