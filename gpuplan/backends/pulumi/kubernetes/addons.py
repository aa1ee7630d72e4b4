"""`addons.py` of a program: the charts that GPUs need, each behind a setting."""

from __future__ import annotations

from gpuplan.backends.pulumi import view
from gpuplan.kubernetes import charts
from gpuplan.kubernetes.charts import Chart
from gpuplan.plan.model import record
from gpuplan.render import python
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.python import Call, Commented, Expression, Name, identifier
from gpuplan.render.tree import File

BLOCK_INDENT = 4


@record
class Section:
    setting: str
    variable: Verbatim
    namespace: Verbatim
    release: Verbatim


def file(installed: tuple[Chart, ...]) -> File:
    sections = list(map(_section, installed))
    return File("addons.py", render("python", "pulumi/addons.py.j2", charts=sections))


def _section(chart: Chart) -> Section:
    variable = identifier(chart.component.name)
    space = f"{variable}_namespace"
    named = {f"Namespace/{chart.key}": f"addons.{space}"}
    namespace = view.statement(charts.namespace(chart), named, "addons", indent=BLOCK_INDENT)
    release = Call("k8s.helm.v3.Release", (chart.key,), _arguments(chart, space))
    return Section(
        setting=chart.setting,
        variable=Verbatim(variable),
        namespace=namespace,
        release=Verbatim(python.expression(release, indent=BLOCK_INDENT, lead=f"{variable} = ")),
    )


def _arguments(chart: Chart, space: str) -> tuple[tuple[str, Expression], ...]:
    component = chart.component
    repository = Call("k8s.helm.v3.RepositoryOptsArgs", (), (("repo", component.repository),))
    own_hook = "the chart's hook that upgrades its definitions needs it"
    options = (("provider", Name("cluster.provider")), ("depends_on", [Name(space)]))
    return (
        ("name", component.name),
        ("namespace", component.namespace),
        ("chart", component.chart),
        ("version", component.version),
        ("repository_opts", repository),
        ("value_yaml_files", [Call("pulumi.FileAsset", (f"{chart.folder}/values.yaml",))]),
        ("disable_openapi_validation", Commented(comment=own_hook, value=True)),
        ("timeout", Commented(chart.timeout_reason, chart.timeout_seconds)),
        ("opts", Call("pulumi.ResourceOptions", (), options)),
    )
