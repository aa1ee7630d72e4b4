"""Ansible's own programs, beside the interpreter or on PATH (the group `ansible`)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.require import require


def program(name: str) -> str:
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        require("ansible", f"{name} is not installed (the group `ansible`)")
    return found or ""


def remarks(stack: Path) -> str:
    """What ansible-lint has to say of the role of `stack`, by its strictest profile; or nothing."""
    lint = program("ansible-lint")
    path = os.pathsep.join((str(Path(lint).parent), os.environ["PATH"]))
    done = subprocess.run(
        [lint, "--offline", "--profile", "production", "ansible"],
        cwd=stack, capture_output=True, text=True, check=False, env=os.environ | {"PATH": path},
    )  # fmt: skip
    return "" if done.returncode == 0 and "Passed" in done.stderr else done.stdout + done.stderr
