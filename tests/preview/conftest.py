"""Previews run programs in processes of their own; their engine listens on a Unix socket."""

from __future__ import annotations

import pytest

from tests.preview.programs import need_sdk


@pytest.fixture(autouse=True)
def _sdk(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("sdk"):
        need_sdk()
