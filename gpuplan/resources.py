"""Where the files that ship with gpuplan lie: in a checkout beside the package, else in it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


@cache
def _root(name: str) -> Path:
    """The folder `name`. A wheel's own copy comes first: next to an installed package may lie
    anything. Raises FileNotFoundError where the installation is broken."""
    for candidate in (_PACKAGE / "_data" / name, _PACKAGE.parent / name):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"gpuplan is installed without its '{name}' folder")


def template_root() -> Path:
    return _root("templates")


def policy_root() -> Path:
    return _root("policies")
