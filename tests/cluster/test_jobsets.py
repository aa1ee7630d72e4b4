"""A run over nodes as a JobSet: a real API server with JobSet's own definition, and the scheduler's
pods of the Job that its controller makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuplan.simulate import groups
from gpuplan.simulate.nodes import nodes
from tests.support.plans import read_plan
from tests.tools import crds
from tests.tools.kube import Kube, Refused, changed
from tests.tools.program import ROOT, gpuplan
from tests.tools.stacks import objects_of

pytestmark = [pytest.mark.cluster, pytest.mark.sdk]
EXAMPLE = ROOT / "examples" / "tune-70b.yaml"


@pytest.fixture
def stack(tmp_path: Path) -> Path:
    text = EXAMPLE.read_text(encoding="utf-8")
    path = tmp_path / "m.yaml"
    path.write_text(text.replace("kubernetes\n", "kubernetes\n  jobs: jobset\n", 1), "utf-8")
    gpuplan("compile", path, "-o", tmp_path)
    return tmp_path / "tune-70b"


def test_a_jobset_comes_stays_and_goes_and_its_run_cannot_change(
    cluster: Kube, stack: Path
) -> None:
    plan, objects = read_plan(stack), objects_of(stack)
    made = nodes(plan)
    crds.install(cluster, objects, [c.version for c in plan.components])
    cluster.apply(made)
    before = cluster.inventory()
    cluster.apply(objects)
    first = cluster.state(objects)
    cluster.apply(objects)
    assert changed(first, cluster.state(objects)) == set()
    (one,) = (o for o in objects if o.tree["kind"] == "JobSet")
    spec = one.tree["spec"]
    for field, other in (
        ("failurePolicy", {**spec["failurePolicy"], "maxRestarts": 9}),
        ("network", {**spec["network"], "subdomain": "elsewhere"}),
    ):
        with pytest.raises(Refused, match="immutable"):
            cluster.apply([type(one)({**one.tree, "spec": {**spec, field: other}})])
    jobs = groups.started(objects)
    cluster.apply(jobs)  # as its controller makes it: the server takes it
    name = f"{one.tree['metadata']['name']}-nodes-0"
    assert [j.tree["metadata"]["name"] for j in jobs] == [name]
    cluster.delete(jobs)
    cluster.delete(objects)
    assert cluster.inventory() == before
    cluster.sweep(made)
