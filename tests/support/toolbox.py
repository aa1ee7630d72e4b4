"""Programs that tests run on what gpuplan writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def ruff(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """ruff as a user without any configuration runs it, at 100 columns."""
    verb, *rest = arguments
    command = [
        sys.executable,
        "-m",
        "ruff",
        verb,
        "--isolated",
        "--no-cache",
        "--line-length",
        "100",
    ]
    return subprocess.run([*command, *rest], cwd=cwd, capture_output=True, text=True, check=False)
