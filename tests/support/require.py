"""What a test needs beside Python: where that is absent the test skips, or fails in CI."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

VARIABLE = "GPUPLAN_REQUIRE"


def require(name: str, reason: str) -> NoReturn:
    """End the running test: as failed where `GPUPLAN_REQUIRE` lists `name`, else as skipped."""
    if name in os.environ.get(VARIABLE, "").split():
        pytest.fail(f"{VARIABLE} asks for '{name}': {reason}", pytrace=False)
    pytest.skip(reason)
