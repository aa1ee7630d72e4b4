from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all fields, so that the manifest in which each is set is answered once."""
    return tmp_path_factory.mktemp("fields")
