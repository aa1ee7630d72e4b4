"""Every checked-in Kubernetes stack, whole, on a real API server."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuplan.simulate.nodes import nodes
from tests.support.plans import commands, read_plan
from tests.tools import crds
from tests.tools.kube import Kube, Refused, changed
from tests.tools.program import ROOT, gpuplan
from tests.tools.stacks import clusters, objects_of

pytestmark = [pytest.mark.cluster, pytest.mark.sdk]

STACKS = clusters()
CHANGED = "assistant-70b"


class Site:
    """A cluster with the nodes and the definitions that a plan expects, and the plan's objects."""

    def __init__(self, cluster: Kube, stack: Path) -> None:
        plan, self.stack = read_plan(stack), stack
        self.cluster, self.objects, self.nodes = cluster, objects_of(stack), nodes(plan)
        crds.install(cluster, self.objects, [c.version for c in plan.components])
        cluster.apply(self.nodes)
        self.before = cluster.inventory()

    def clear(self) -> None:
        self.cluster.sweep([*self.nodes, *(o for o in self.objects if not o.is_patch)])


@pytest.fixture
def site(cluster: Kube, request: pytest.FixtureRequest) -> Iterator[Site]:
    found = Site(cluster, request.param)
    yield found
    found.clear()


def test_the_stacks_are_there() -> None:
    assert CHANGED in [s.name for s in STACKS]


@pytest.mark.parametrize("site", STACKS, ids=lambda s: s.name, indirect=True)
def test_a_stack_comes_stays_and_goes(site: Site) -> None:
    cluster, objects = site.cluster, site.objects
    cluster.apply(objects)
    first = cluster.state(objects)
    cluster.apply(objects)
    second = cluster.state(objects)
    assert changed(first, second) == set()
    cluster.apply(objects)
    assert cluster.state(objects) == second
    (adopt,) = commands(site.stack, "Adopt", 0)
    take_over(site, force="ENABLE_PATCH_FORCE=true" in adopt)
    assert changed(second, cluster.state(objects)) == set()
    cluster.delete(objects)
    assert cluster.inventory() == site.before


def take_over(site: Site, *, force: bool) -> None:
    """As "Adopt" of the stack's README says."""
    own = "\n---\n".join(json.dumps(o.tree) for o in site.objects if not o.is_patch)
    how = ["apply", "--server-side", "--field-manager=another-state", "-f", "-"]
    if force:
        with pytest.raises(Refused, match="conflict"):
            site.cluster.kubectl(*how, stdin=own)
        how.append("--force-conflicts")
    site.cluster.kubectl(*how, stdin=own)


CHANGES = {
    "  environment: {LOG_LEVEL: debug}": {"apps/v1 Deployment {tenant}/assistant"},
    "  overrides: {shared_memory: 40 GiB}": {"apps/v1 Deployment {tenant}/assistant"},
    "  overrides: {cpu_cores_per_gpu: 10}": {
        "apps/v1 Deployment {tenant}/assistant",
        "v1 ResourceQuota {tenant}/gpuplan",
    },
    "  description: Answers staff": {"apps/v1 Deployment {tenant}/assistant"},
    "# a remark": set[str](),
}


@pytest.mark.parametrize("site", [ROOT / "stacks" / CHANGED], ids=[CHANGED], indirect=True)
def test_a_change_reaches_what_it_concerns(site: Site, tmp_path: Path) -> None:
    cluster, objects = site.cluster, site.objects
    cluster.apply(objects)
    before = cluster.state(objects)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    manifest = tmp_path / "examples" / f"{CHANGED}.yaml"
    text = manifest.read_text("utf-8").rstrip("\n")
    for line, concerned in CHANGES.items():
        manifest.write_text(f"{text}\n{line}\n", "utf-8")
        gpuplan("compile", manifest, "-o", tmp_path)
        edited = objects_of(tmp_path / CHANGED)
        assert [o.reference for o in edited] == [o.reference for o in objects]
        cluster.apply(edited)
        after = cluster.state(edited)
        names = {c.format(tenant=f"{CHANGED}-platform") for c in concerned}
        assert changed(before, after) == names, line
        cluster.apply(objects)
        before = cluster.state(objects)
