"""A stack whose operators have a Pulumi stack of their own goes without them: a real API server."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuplan.simulate.nodes import nodes
from tests.backends.test_operators import compiled
from tests.support.plans import read_plan
from tests.tools.kube import Kube, contents
from tests.tools.stacks import objects_of

pytestmark = [pytest.mark.cluster, pytest.mark.sdk]


def test_operators_outlive_a_tenant(cluster: Kube, tmp_path: Path) -> None:
    stack = compiled(tmp_path, "separate")
    lasting, tenant = objects_of(stack / "operators"), objects_of(stack)
    assert {o.tree["kind"] for o in lasting} == {"Namespace", "ConfigMap"}  # beside the chart
    made = nodes(read_plan(stack))
    cluster.apply(made)
    before = cluster.inventory()
    cluster.apply(lasting)
    alone = cluster.inventory()
    there = contents(cluster.state(lasting))
    cluster.apply(tenant)
    assert cluster.inventory() > alone
    cluster.delete(tenant)
    assert cluster.inventory() == alone
    assert contents(cluster.state(lasting)) == there
    cluster.delete(lasting)
    assert cluster.inventory() == before
    cluster.sweep(made)
