"""Values of charts: only keys that exist, differ, and change what the chart makes."""

from __future__ import annotations

import copy
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from gpuplan.backends.helm import emit, gpu_operator
from gpuplan.catalog.load import load_catalog
from gpuplan.kubernetes.addons import charts
from gpuplan.kubernetes.lower import lower
from gpuplan.plan.model import Component, Plan
from gpuplan.plan.outside.network import Network
from gpuplan.render.commented import strip
from tests.support.require import require
from tests.support.samples import OPERATOR, serving_plan, training_plan
from tests.support.stack_plans import KUBERNETES, SEVENTHS, notebook_plan

DATA = Path(__file__).parents[3] / "shared" / "data"
CHART = "gpu-operator-26.3.3"
FOLDER = "helm/10-gpu-operator"
# The chart's values.yaml shows this block as a comment only; its templates read it.
COMMENTED = ("dcgmExporter", "config")

Path_ = tuple[str, ...]

every_plan = pytest.mark.parametrize("plan", [f() for f in KUBERNETES.values()], ids=KUBERNETES)


def read(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def document(plan: Plan, name: str) -> Any:
    return read(next(f.text for f in emit(plan).files if f.path == f"{FOLDER}/{name}"))


def values(plan: Plan) -> Any:
    return document(plan, "values.yaml")


def leaves(node: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    if isinstance(node, dict) and node:
        for name, value in node.items():
            yield from leaves(value, (*path, name))
    else:
        yield path, node


def metrics(plan: Plan) -> list[str]:
    rows = values(plan)["dcgmExporter"]["config"]["data"].splitlines()
    return [row.partition(",")[0] for row in rows]


# --- against the chart's own defaults ----------------------------------------------------------


@cache
def defaults() -> Any:
    path = DATA / "charts" / CHART / "values.yaml"
    if not path.is_file():
        require("data", f"the defaults of {CHART} are not at hand")
    return read(path.read_text(encoding="utf-8"))


@every_plan
def test_every_value_differs_from_a_default_that_exists(plan: Plan) -> None:
    for path, value in leaves(values(plan)):
        if path[:2] == COMMENTED:
            continue
        node = defaults()
        for step in path:
            if node == {}:  # an open map: its keys are the user's
                break
            assert step in node, ".".join(path)
            node = node[step]
        assert value != node, ".".join(path)


@every_plan
def test_every_metric_is_a_field_of_dcgm(plan: Plan) -> None:
    path = DATA / "dcgm-fields.txt"
    if not path.is_file():
        require("data", "the list of DCGM fields is not at hand")
    fields = set(path.read_text(encoding="utf-8").split())
    assert set(metrics(plan)) <= fields


NETWORK = Network(
    images=(("nvcr.io", "mirror.example.org/ngc"), ("registry.k8s.io", "mirror.example.org/k8s")),
    pull_secrets=("registry",),
)


def test_all_images_that_the_chart_switches_on_come_from_the_mirror() -> None:
    """Each part of the chart that names a registry is given the mirror's, or is off by default."""
    tree = values(replace(serving_plan(), network=NETWORK))
    given = {path[:-1]: value for path, value in leaves(tree) if path[-1] == "repository"}
    off = {("dcgm",), ("nodeStatusExporter",), ("gds",), ("gdrcopy",), ("vgpuManager",)}
    off |= {("vgpuManager", "driverManager"), ("vgpuDeviceManager",), ("vfioManager",)}
    off |= {("vfioManager", "driverManager"), ("sandboxDevicePlugin",), ("ccManager",)}
    off |= {("kataSandboxDevicePlugin",), ("kataManager",)}
    for path, value in leaves(defaults()):
        if path[-1] == "repository" and path[:-1] not in off:
            assert given[path[:-1]] == value.replace("nvcr.io", "mirror.example.org/ngc")
    discovery = tree["node-feature-discovery"]
    assert discovery["image"]["repository"] == ("mirror.example.org/k8s/nfd/node-feature-discovery")
    assert discovery["imagePullSecrets"] == [{"name": "registry"}]
    assert tree["operator"]["imagePullSecrets"] == ["registry"]


def test_the_chart_makes_no_image_of_another_registry(tmp_path: Path) -> None:
    chart()
    made = rendered(values(replace(serving_plan(), network=NETWORK)), tmp_path)
    images = set(re.findall(r"^ *-? ?image: \"?([a-z0-9.-]+)/", made, re.MULTILINE))
    assert images == {"mirror.example.org"}


def test_the_driver_is_the_charts_own() -> None:
    """It is a fact of the catalogue, so no value says it again."""
    component = load_catalog().component("gpu-operator")
    assert component is not None
    assert component.driver == defaults()["driver"]["version"]
    assert component.version == f"v{CHART.rpartition('-')[2]}"


# --- against the chart itself ------------------------------------------------------------------


def chart() -> Path:
    folder = os.environ.get("GPUPLAN_CHARTS")
    found = Path(folder) / CHART if folder else None
    if found is None or not (found / "Chart.yaml").is_file():
        require("charts", f"GPUPLAN_CHARTS names no folder that holds {CHART}")
    if not shutil.which("helm"):
        require("charts", "helm is not on PATH")
    return found


def rendered(tree: Any, folder: Path) -> str:
    path = folder / "values.yaml"
    with path.open("w", encoding="utf-8") as file:
        YAML(typ="safe", pure=True).dump(tree, file)
    command = ["helm", "template", "release", chart(), "-f", path, "--kube-version", "1.34.2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def without(tree: Any, path: Path_) -> Any:
    changed = copy.deepcopy(tree)
    node = changed
    for step in path[:-1]:
        node = node[step]
    del node[path[-1]]
    return changed


@pytest.mark.parametrize("plan", [training_plan(), notebook_plan()], ids=["training", "notebook"])
def test_every_value_changes_what_the_chart_makes(plan: Plan, tmp_path: Path) -> None:
    tree = values(plan)
    whole = rendered(tree, tmp_path)
    for path, _ in leaves(tree):
        assert rendered(without(tree, path), tmp_path) != whole, ".".join(path)


# --- what the values say -----------------------------------------------------------------------


def test_layouts_are_those_that_the_nodes_ask_for() -> None:
    plan = notebook_plan()
    tree = values(plan)
    assert tree["mig"] == {"strategy": "mixed"}
    (chart,) = charts.charts(plan)
    (profiles,) = charts.beside(plan, chart)
    assert tree["migManager"] == {"config": {"name": profiles.name}}
    (text,) = profiles.files()
    layouts = read(text.text)["mig-configs"]
    asked = {
        o.tree["metadata"]["labels"]["nvidia.com/mig.config"]
        for o in lower(plan).objects
        if o.key.startswith("node-")
    }
    assert asked
    assert asked <= set(layouts)
    assert "migManager" not in values(serving_plan())


def test_a_changed_layout_is_a_new_map() -> None:
    plan = notebook_plan()
    (pool,) = plan.node_pools
    fewer = replace(SEVENTHS, instances=SEVENTHS.instances[:2])
    layouts = (replace(pool.layouts[0], gpus=(fewer,)),)
    changed = replace(plan, node_pools=(replace(pool, layouts=layouts),))
    names = [values(p)["migManager"]["config"]["name"] for p in (plan, changed)]
    assert names[0] != names[1]


def test_partitioned_gpus_are_not_asked_for_what_they_do_not_report() -> None:
    assert "DCGM_FI_DEV_GPU_UTIL" in metrics(serving_plan())
    partitioned = metrics(notebook_plan())
    assert not [m for m in partitioned if m.endswith("_UTIL")]
    assert "DCGM_FI_PROF_GR_ENGINE_ACTIVE" in partitioned


def test_rdma_needs_the_open_modules() -> None:
    assert values(training_plan())["driver"]["kernelModuleType"] == "open"
    assert "driver" not in values(serving_plan())


def test_a_driver_upgrade_waits_for_runs() -> None:
    wait = values(training_plan())["driver"]["upgradePolicy"]["waitForCompletion"]
    labels = next(o for o in lower(training_plan()).objects if o.kind == "Job")
    pod = labels.tree["spec"]["template"]["metadata"]["labels"]
    key = "app.kubernetes.io/component"
    assert f"{key} in (" in wait["podSelector"]
    assert pod[key] in wait["podSelector"]


def with_operator(**changes: Any) -> Plan:
    return serving_plan(components=(replace(OPERATOR, **changes),))


def test_the_lock_says_what_it_does_not_know() -> None:
    lock = document(serving_plan(), "chart.lock.yaml")
    assert lock["version"] == "v26.3.3"
    assert lock["digest"] == "unknown"
    digest = "sha256:" + "b" * 64
    assert document(with_operator(digest=digest), "chart.lock.yaml")["digest"] == digest


def test_a_component_without_values_is_said() -> None:
    other: Component = replace(OPERATOR, name="kueue")
    emission = emit(serving_plan(components=(OPERATOR, other)))
    assert [d.message for d in emission.diagnostics] == [
        "component kueue: what its chart should be given is not known"
    ]


@every_plan
def test_every_value_has_its_reason(plan: Plan) -> None:
    """A comment at the value, or beside it where several values are one setting."""
    _, comments = strip(gpu_operator.values(plan))
    explained = {path[:2] for path, _ in comments}
    assert {path[:2] for path, _ in leaves(values(plan))} <= explained
