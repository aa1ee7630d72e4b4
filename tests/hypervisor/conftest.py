"""A libvirtd for the tests of this folder, on a host with two sockets that is not there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.hypervisor_plans import plans
from tests.support.require import require
from tests.tools import fakehost, libvirtd
from tests.tools.libvirtd import Libvirtd

SYSTEMS = {"libvirt 9": None, "libvirt 11": libvirtd.TRIXIE}


@contextmanager
def _running(root: Path | None) -> Iterator[Libvirtd]:
    if missing := libvirtd.absent(root):
        require("hypervisor", missing)
    with tempfile.TemporaryDirectory(prefix="gp-", dir="/tmp") as name:
        folder = Path(name)
        fakehost.write(folder / "sys", plans()["whole hosts"].hosts[0])
        running = libvirtd.start(folder, root)
        try:
            yield running
        finally:
            running.stop()


@pytest.fixture(scope="session")
def daemon() -> Iterator[Libvirtd]:
    """libvirt on two sockets of 56 cores and eight GPUs."""
    with _running(None) as running:
        yield running


@pytest.fixture(scope="session", params=SYSTEMS)
def either(request: pytest.FixtureRequest) -> Iterator[Libvirtd]:
    """The libvirt of Debian 12, which has no older one in use, and that of Debian 13."""
    with _running(SYSTEMS[request.param]) as running:
        yield running
