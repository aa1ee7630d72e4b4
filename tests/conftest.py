"""Fixtures and rules of every test: no sockets, but for loopback where a marker says so."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.require import require
from tests.tools.cluster import running
from tests.tools.engines import FULL, absent
from tests.tools.kube import Kube

# Programs written in Go, each kubectl and what it asks, collect garbage less often than by default:
# a fifth less of the processors' time.
os.environ.setdefault("GOGC", "400")
LOOPBACK = ("cluster", "pulumi")

# No test asserts a time: a machine that others use, too, is slow for reasons that are not ours.
settings.register_profile(
    "gpuplan", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("gpuplan")


# Files on clusters that take minutes: workers take whole files, in this order, but of the longest,
# whose tests need nothing of each other, a third each.
LONGEST = tuple(
    f"cluster/test_{name}"
    for name in ("schedule", "day_two", "apply", "updates", "sharing", "manifests")
)


def _turn(item: pytest.Item) -> int:
    file = f"{item.path.parent.name}/{item.path.stem}"
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_turn)
    for number, item in enumerate(items):
        if any(item.get_closest_marker(name) for name in LOOPBACK):
            item.add_marker(pytest.mark.allow_hosts(["127.0.0.1"]))
            part = number % 3 if item.path.stem == "test_apply" else 0
            item.add_marker(pytest.mark.xdist_group(f"{item.path.stem}-{part}"))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    """A Kubernetes control plane of its own on loopback, empty but for what Kubernetes makes."""
    if missing := absent():
        require("cluster", f"{', '.join(missing)} not built: `make engines` (12 minutes, once)")
    with running(tmp_path_factory.mktemp("cluster")) as plane:
        yield Kube(plane)


@pytest.fixture(scope="session")
def full_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kube]:
    """Another one, where pods are scheduled and seem to run."""
    if missing := absent(FULL):
        require("scheduler", f"{', '.join(missing)} not built: `make engines-full`")
    with running(tmp_path_factory.mktemp("full"), full=True) as plane:
        yield Kube(plane)
