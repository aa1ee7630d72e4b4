"""Operators that get a Pulumi stack of their own, moved by the documents' commands, under the real
Pulumi; and what is left of a chart when that stack goes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuplan.simulate.nodes import nodes, volumes
from tests.backends.test_operators import compiled
from tests.support.plans import read_plan
from tests.tools.cluster import CONTEXT
from tests.tools.kube import Kube, Object
from tests.tools.program import ROOT
from tests.tools.stacks import objects_of, switches
from tests.tools.updates import STACK, Workspace, cluster_uid

pytestmark = [pytest.mark.pulumi, pytest.mark.sdk]

OPERATOR = "kubernetes:helm.sh/v3:Release::addon-gpu-operator"
KIND, NAME = "policies.example.com", "somebodys"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": KIND},
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"kind": "Policy", "plural": "policies", "singular": "policy"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }
        ],
    },
}
INSTANCE = {"apiVersion": "example.com/v1", "kind": "Policy", "metadata": {"name": NAME}}
MADE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of-the-chart"}}


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """A chart of the operator's name from a folder: the real one is on the network."""
    folder = tmp_path / "chart"
    for name, tree in (("crds/kind.yaml", DEFINITION), ("templates/made.yaml", MADE)):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(json.dumps(tree))
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: gpu-operator\nversion: 26.3.3\n")
    return folder


def local(stack: Path, chart: Path) -> None:
    """The stack with that chart in place of the network's."""
    program = next(stack.rglob("addons.py"))
    text = re.sub(r"\n +(version|repository_opts)=[^\n]*", "", program.read_text("utf-8"))
    assert text.count('chart="gpu-operator"') == 1
    program.write_text(text.replace('chart="gpu-operator"', f"chart={str(chart)!r}"), "utf-8")


def shell(work: Workspace) -> Iterator[str]:
    """The documents' commands, for a state in a folder, run where the program is."""
    text = (ROOT / "docs/clusters.md").read_text("utf-8")
    (block,) = (b for b in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) if "state move" in b)
    for line in block.replace("\\\n", "").splitlines():
        command = line.replace("ORGANIZATION", "organization").replace("NAME", "lab")
        work.shell(command.replace("state move", "state move --yes"))
        yield command


def test_operators_move_by_their_state_and_leave_definitions(
    full_cluster: Kube, chart: Path, tmp_path: Path
) -> None:
    (tmp_path / "before").mkdir()
    (tmp_path / "after").mkdir()
    here, apart = compiled(tmp_path / "before", ""), compiled(tmp_path / "after", "separate")
    for stack in (here, apart):
        local(stack, chart)
    objects = objects_of(apart)
    full_cluster.apply([*nodes(read_plan(apart)), *volumes(objects)])
    work = Workspace(tmp_path / "program", tmp_path / "home", full_cluster)
    work.create(here, switches(here))
    work.up()
    everything = set(work.resources())
    assert OPERATOR in everything
    full_cluster.apply([Object(INSTANCE)])

    work.replace(apart)
    operators = Workspace(work.program / "operators", work.home, full_cluster)
    commands = [*shell(work)]
    assert len(commands) == 3
    for name, value in (("context", CONTEXT), ("clusterUid", cluster_uid(full_cluster))):
        operators.pulumi("config", "set", name, value)
    own = "pulumi:providers:kubernetes::reader"  # what proves the cluster, to each program its own
    assert operators.preview() == {"create": [own]}
    operators.up()  # its outputs are what the workloads' program asks for
    assert work.preview("--expect-no-changes") == {}
    moved = {r for r in everything if "::addon-" in r}
    assert everything - moved <= set(work.resources())
    assert not moved & set(work.resources())
    assert moved <= set(operators.resources())

    work.destroy()
    assert full_cluster.kubectl("get", "configmap", "of-the-chart", "-n", "gpu-operator")
    operators.pulumi("destroy", "--run-program", "--yes", "--skip-preview", f"--stack={STACK}")
    assert operators.resources() == []
    left = full_cluster.kubectl("get", KIND, "-o", "name").split()
    assert left == [f"policy.example.com/{NAME}"], "Helm leaves definitions and their objects"
    full_cluster.kubectl("delete", "customresourcedefinition", KIND)
