"""A libvirtd for the tests of this folder, on a host with two sockets that is not there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.hypervisor_plans import plans
from tests.support.require import require
from tests.tools import fakehost, libvirtd
from tests.tools.libvirtd import Libvirtd


@pytest.fixture(scope="session")
def daemon() -> Iterator[Libvirtd]:
    """libvirt on two sockets of 56 cores and eight GPUs."""
    if missing := libvirtd.absent():
        require("hypervisor", missing)
    with tempfile.TemporaryDirectory(prefix="gp-", dir="/tmp") as name:
        folder = Path(name)
        fakehost.write(folder / "sys", plans()["whole hosts"].hosts[0])
        running = libvirtd.start(folder)
        try:
            yield running
        finally:
            running.stop()
