"""Plan → a folder for each chart: the values that differ from its defaults, and its lock."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from gpuplan.diagnostics import Diagnostic, error
from gpuplan.emission import Emission
from gpuplan.kubernetes.addons.charts import (
    AMD_OPERATOR,
    DOMAINS,
    EFA_PLUGIN,
    GPU_OPERATOR,
    GROUPS,
    NETWORK_OPERATOR,
    RUNS,
    Chart,
    charts,
    unknown,
)
from gpuplan.plan.model import Component, Plan
from gpuplan.render import commented
from gpuplan.render.commented import strip
from gpuplan.render.tree import File, FileTree

VALUES = {  # the module of each component; only those of a plan's are imported
    GPU_OPERATOR: "gpu_operator",
    AMD_OPERATOR: "amd_operator",
    EFA_PLUGIN: "efa_plugin",
    NETWORK_OPERATOR: "network_operator",
    DOMAINS: "dra_driver",
    GROUPS: "groups",
    RUNS: "jobset",
}
HEADER = (
    "Written by gpuplan; `gpuplan check` finds edits. Only what differs from the chart's defaults."
)


def not_emitted(component: Component) -> Diagnostic:
    return error(
        "GP016",
        f"component {component.name}: what its chart should be given is not known",
        help=f"components with values: {', '.join(sorted(VALUES))}",
    )


def emit(plan: Plan) -> Emission:
    installed = charts(plan) if plan.operators != "elsewhere" else ()
    files = tuple(file for chart in installed for file in _files(plan, chart))
    return Emission(FileTree(files), tuple(map(not_emitted, unknown(plan))))


def chart_values(component: str, plan: Plan) -> commented.Tree:
    """What the component's chart is given, with reasons."""
    module = import_module(f"gpuplan.backends.helm.{VALUES[component]}")
    tree: commented.Tree = module.values(plan)
    return tree


def _files(plan: Plan, chart: Chart) -> Iterator[File]:
    tree, comments = strip(chart_values(chart.component.name, plan))
    yield File(f"{chart.folder}/values.yaml", commented.dumps(tree, dict(comments), HEADER))
    yield File(f"{chart.folder}/chart.lock.yaml", commented.dumps(_lock(chart.component), {}))


def _lock(component: Component) -> dict[str, str]:
    """What is installed. `unknown` where no source states it."""
    return {
        "repository": component.repository,
        "chart": component.chart,
        "version": component.version,
        "appVersion": component.app_version or "unknown",
        "digest": component.digest or "unknown",
        "namespace": component.namespace,
        "source": component.source,
    }
