"""`addons.py` of a program: the charts that GPUs need, each behind a setting."""

from __future__ import annotations

from gpuplan.backends.pulumi import view
from gpuplan.kubernetes.addons import charts
from gpuplan.kubernetes.addons.charts import Chart
from gpuplan.plan.model import Component, Plan, record
from gpuplan.render import python
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.python import Call, Commented, Expression, Name, identifier
from gpuplan.render.tree import File

BLOCK_INDENT = 4


@record
class ChartSection:
    setting: str
    variable: Verbatim
    namespace: Verbatim
    objects: tuple[Verbatim, ...]
    release: Verbatim
    behind: tuple[Verbatim, ...]
    last: Verbatim


def file(plan: Plan, installed: tuple[Chart, ...], *, above: str = "") -> File:
    """`above` is the way from the program's folder to the stack's."""
    sections = [_section(plan, chart, above) for chart in installed]
    reads_files = any(list(o.files()) for c in installed for o in charts.beside(plan, c))
    values = {"charts": sections, "reads_files": reads_files}
    return File("addons.py", render("python", "pulumi/addons.py.j2", **values))


def _section(plan: Plan, chart: Chart, above: str) -> ChartSection:
    variable = identifier(chart.component.name)
    around = (charts.namespace(chart), *charts.beside(plan, chart, above))
    names = [f"{variable}_{view.SHORT.get(o.kind, o.kind).lower()}" for o in around]
    named = {o.identity: f"addons.{n}" for o, n in zip(around, names, strict=True)}
    namespace, *objects = (view.statement(o, named, "addons", indent=BLOCK_INDENT) for o in around)
    behind = charts.behind(plan, chart)
    named[f"Release/{chart.key}"] = f"addons.{variable}"
    last = [f"{variable}_{view.SHORT.get(o.kind, o.kind).lower()}" for o in behind]
    named |= {o.identity: f"addons.{n}" for o, n in zip(behind, last, strict=True)}
    release = Call("k8s.helm.v3.Release", (chart.key,), _arguments(chart, names, above))
    return ChartSection(
        setting=chart.setting,
        variable=Verbatim(variable),
        namespace=namespace,
        objects=tuple(objects),
        release=Verbatim(python.expression(release, indent=BLOCK_INDENT, lead=f"{variable} = ")),
        behind=tuple(view.statement(o, named, "addons", indent=BLOCK_INDENT) for o in behind),
        last=Verbatim([variable, *last][-1]),
    )


def _arguments(chart: Chart, needs: list[str], above: str) -> tuple[tuple[str, Expression], ...]:
    component = chart.component
    own_hook = "the chart's hook that upgrades its definitions needs it"
    hook = ("disable_openapi_validation", Commented(comment=own_hook, value=True))
    options = (("provider", Name("cluster.provider")), ("depends_on", list(map(Name, needs))))
    return (
        ("name", component.name),
        ("namespace", component.namespace),
        *_where(component),
        ("value_yaml_files", [Call("pulumi.FileAsset", (f"{above}{chart.folder}/values.yaml",))]),
        *([hook] if component.name in charts.HOOKED else []),
        ("timeout", Commented(chart.timeout_reason, chart.timeout_seconds)),
        ("opts", Call("pulumi.ResourceOptions", (), options)),
    )


def _where(component: Component) -> tuple[tuple[str, Expression], ...]:
    """A registry's chart has its whole name, another one its repository."""
    chart, version = ("chart", component.chart), ("version", component.version)
    if component.repository.startswith(charts.OCI):
        return (("chart", f"{component.repository}/{component.chart}"), version)
    repository = Call("k8s.helm.v3.RepositoryOptsArgs", (), (("repo", component.repository),))
    return (chart, version, ("repository_opts", repository))
