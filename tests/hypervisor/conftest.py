"""A libvirtd for the tests of this folder, on a host with two sockets that is not there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpuplan.plan.model import Host
from tests.support.hypervisor_plans import plans
from tests.support.require import require
from tests.tools import fakehost, libvirtd
from tests.tools.libvirtd import Libvirtd

SYSTEMS = {"libvirt 9": None, "libvirt 11": libvirtd.TRIXIE}


@contextmanager
def running_on(host: Host, root: Path | None = None) -> Iterator[Libvirtd]:
    """The daemon of `root`, or this system's, on `host`."""
    if missing := libvirtd.absent(root):
        require("hypervisor", missing)
    with tempfile.TemporaryDirectory(prefix="gp-", dir="/tmp") as name:
        folder = Path(name)
        fakehost.write(folder / "sys", host)
        running = libvirtd.start(folder, root)
        try:
            yield running
        finally:
            running.stop()


@pytest.fixture(scope="session")
def daemon() -> Iterator[Libvirtd]:
    """libvirt on two sockets of 56 cores and eight GPUs."""
    with running_on(plans()["whole hosts"].hosts[0]) as running:
        yield running


@pytest.fixture(scope="session", params=SYSTEMS)
def either(request: pytest.FixtureRequest) -> Iterator[Libvirtd]:
    """The libvirt of Debian 12, which has no older one in use, and that of Debian 13."""
    host = plans()["whole hosts"].hosts[0]
    with running_on(host, SYSTEMS[request.param]) as running:
        yield running
