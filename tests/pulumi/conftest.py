"""All of these run the real Pulumi."""

from __future__ import annotations

import pytest

from tests.tools.updates import need_pulumi


@pytest.fixture(autouse=True)
def _pulumi() -> None:
    need_pulumi()
