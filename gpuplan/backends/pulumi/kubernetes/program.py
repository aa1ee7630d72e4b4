"""Plan → the Pulumi program of a Kubernetes stack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from gpuplan.backends.pulumi import project, view
from gpuplan.backends.pulumi.kubernetes import addons, operators, pools
from gpuplan.backends.pulumi.kubernetes.shared import of_workload, rules
from gpuplan.backends.pulumi.project import Setting
from gpuplan.diagnostics import Diagnostic
from gpuplan.engines.container import listening_port
from gpuplan.kubernetes import batches, naming, nodes, problems
from gpuplan.kubernetes.addons import charts
from gpuplan.kubernetes.addons.charts import Chart
from gpuplan.kubernetes.objects import Group, KubernetesObject
from gpuplan.kubernetes.scene import scene_of
from gpuplan.plan.model import Plan, Workload, record
from gpuplan.render import python
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.python import Call, Name
from gpuplan.render.tree import File
from gpuplan.units import format_usd

TEMPLATES = "pulumi/kubernetes"
CUSTOM = "custom.py"  # docs/decisions/0016-own-additions.md
FIRST = "custom  # noqa: F401 - first: it changes what the others register"
# Required: a default would be whatever cluster kubectl points at.
CONTEXT = Setting(name="context", kind="string", description="The cluster, by its kubectl context")
# A context's name may stand for another cluster in another kubeconfig.
CLUSTER_UID = Setting(
    name="clusterUid",
    kind="string",
    description="The UID of its namespace kube-system, which is proven before anything is touched",
)
# Where a stack of ours made the cluster; then the two above are for those who have them instead.
CLUSTER_STACK = "clusterStack"


@record
class Program:
    """`diagnostics` say what of the plan the program does not express."""

    files: tuple[File, ...]
    resources: tuple[view.Resource, ...]
    settings: tuple[Setting, ...]
    diagnostics: tuple[Diagnostic, ...]


@record
class WorkloadSection:
    """The statements of one workload, and what they share."""

    heading: Verbatim
    constants: tuple[view.Constant, ...]
    statements: tuple[Verbatim, ...]


def program(plan: Plan, items: tuple[KubernetesObject, ...]) -> Program:
    """`items` are the objects that the plan is lowered into."""
    installed = tuple(charts.charts(plan))
    variables = view.variables(items)
    here = installed if plan.operators is None else ()
    if here:
        variables |= {"addons": "*addons.installed"}
    asked = {**operators.asked(plan), "stacked": operators.asks_stack(plan)}
    files = [_statements(items, variables, "cluster", values=asked)]
    files += [_statements(items, variables, "network", rules(plan, items))]
    files += [_workloads(plan, items, variables)]
    files += [pools.file(plan)] if pools.named(plan) else []
    files += [addons.file(plan, here)] if here else []
    files += [
        _main(plan, items),
        File(CUSTOM, render("python", f"{TEMPLATES}/custom.py.j2"), seed=True),
    ]
    settings, secrets = tuple(_settings(plan, here)), tuple(project.secrets(plan))
    beside = tuple(o for c in installed for o in (*charts.beside(plan, c), *charts.behind(plan, c)))
    if plan.operators == "separate" and installed:
        own = (CONTEXT, CLUSTER_UID, *_installs(installed))
        files += operators.files(plan, installed, own, tuple(_resources(beside, installed)))
    idle = () if installed or plan.operators is None else (problems.no_operators(plan),)
    read = beside if plan.operators != "elsewhere" else ()
    return Program(
        files=(*files, *_texts((*items, *read)), *batches.files(plan)),
        resources=tuple(_resources((*items, *(beside if here else ())), here)),
        settings=(*settings, *secrets),
        diagnostics=(*project.clashes(settings, secrets), *idle),
    )


def _statements(
    items: tuple[KubernetesObject, ...],
    variables: Mapping[str, str],
    group: Group,
    constants: tuple[view.Constant, ...] = (),
    values: Mapping[str, object] = MappingProxyType({}),
) -> File:
    own = [
        view.statement(i, variables, group, constants=constants) for i in items if i.group == group
    ]
    template = f"pulumi/{group}.py.j2"
    text = render("python", template, constants=constants, statements=own, **values)
    return File(f"{group}.py", text)


def _workloads(
    plan: Plan, items: tuple[KubernetesObject, ...], variables: Mapping[str, str]
) -> File:
    own = [i for i in items if i.group == "workload"]
    sections = [_section(plan, workload, own, variables) for workload in plan.workloads]
    text = render(
        "python",
        "pulumi/workload.py.j2",
        workloads=sections,
        addons="addons" in variables,
        reads_files=any(list(i.files()) for i in own),
        configured=any(list(i.settings()) for i in own),
        addresses=Verbatim(python.expression(_addresses(plan), lead="addresses = ")),
    )
    return File("workload.py", text)


def _section(
    plan: Plan, workload: Workload, items: list[KubernetesObject], variables: Mapping[str, str]
) -> WorkloadSection:
    own = [item for item in items if _belongs(item, plan, workload)]
    constants = tuple(of_workload(plan, workload, own))
    statements = (view.statement(i, variables, "workload", constants=constants) for i in own)
    return WorkloadSection(
        heading=Verbatim(python.comment(_heading(workload))),
        constants=constants,
        statements=tuple(statements),
    )


def _belongs(item: KubernetesObject, plan: Plan, workload: Workload) -> bool:
    labels: dict[str, str] = item.tree["metadata"]["labels"]
    return naming.selector(plan, workload).items() <= labels.items()


def _heading(workload: Workload) -> str:
    """What the workload is, in a line: everything here is the plan's own text but the model."""
    model = f" of {workload.model.identifier}" if workload.model else ""
    devices = f"{workload.gpu_count} × {workload.partition or workload.gpu}"
    price = f", {format_usd(workload.usd_per_hour)}/h" if workload.usd_per_hour is not None else ""
    return f"{workload.name}: {workload.task}{model} on {devices}{price}"


def _addresses(plan: Plan) -> dict[str, str]:
    return {w.name: _address(plan, w) for w in plan.workloads}


def _address(plan: Plan, workload: Workload) -> str:
    name, namespace = workload.oldest_name, naming.namespace_name(plan, workload.tenant)
    port = listening_port(workload)
    if port is None:
        if workload.schedule:
            return f"cronjob {namespace}/{name}"
        kind = "jobset" if scene_of(plan, workload).restarts_whole else "job"
        return f"{kind} {namespace}/{naming.job_name(workload)}"
    host = f"{name}-0.{name}" if workload.notebook else name
    return f"http://{host}.{namespace}.svc:{port}"


def _outputs(plan: Plan, items: tuple[KubernetesObject, ...]) -> dict[str, python.Expression]:
    """What other stacks ask for by StackReference, of each workload."""
    outputs: dict[str, python.Expression] = {}
    for workload in plan.workloads:
        own = [i for i in items if i.group == "workload" and _belongs(i, plan, workload)]
        outputs[workload.name] = {
            "namespace": naming.namespace_name(plan, workload.tenant),
            "account": next(i.name for i in own if i.kind == "ServiceAccount"),
            "claims": [i.name for i in own if i.kind == "PersistentVolumeClaim"],
        }
    return outputs


def _main(plan: Plan, items: tuple[KubernetesObject, ...]) -> File:
    modules = [FIRST, "workload"]
    exports = [
        Call("pulumi.export", ("addresses", Name("workload.addresses"))),
        Call("pulumi.export", ("workloads", _outputs(plan, items))),
    ]
    if named := pools.named(plan):
        modules = [FIRST, "pools", "workload"]
        lists = {
            p.name: Name(f"pools.{v}") for p, v in zip(named, pools.variables(named), strict=True)
        }
        exports.append(Call("pulumi.export", ("pools", lists)))
    text = render(
        "python",
        "pulumi/main.py.j2",
        modules=list(map(Verbatim, modules)),
        exports=[Verbatim(python.expression(e)) for e in exports],
    )
    return File("__main__.py", text)


def _texts(items: tuple[KubernetesObject, ...]) -> Iterator[File]:
    for item in items:
        yield from (File(leaf.path, leaf.text) for leaf in item.files())


def _resources(
    items: tuple[KubernetesObject, ...], installed: tuple[Chart, ...]
) -> Iterator[view.Resource]:
    for name in ("cluster", "reader"):
        yield view.Resource(type="pulumi:providers:kubernetes", name=name)
    yield from map(view.resource, items)
    for chart in installed:
        yield view.resource(charts.namespace(chart))
        yield view.Resource(
            type="kubernetes:helm.sh/v3:Release", name=chart.key, marks=(f"if={chart.setting}",)
        )


def _settings(plan: Plan, installed: tuple[Chart, ...]) -> Iterator[Setting]:
    if operators.asks_stack(plan):
        where = f"ORGANIZATION/{plan.name}-cluster/dev"
        text = f"The Pulumi stack of cloud/cluster: {where}; or else the two below"
        yield Setting(name=CLUSTER_STACK, kind="string", default="", description=text)
    for setting in (CONTEXT, CLUSTER_UID):
        yield replace(setting, default="") if operators.asks_stack(plan) else setting
    for workload in (w for w in plan.workloads if w.task == "batch"):
        text = f"Keep {workload.name} from starting; false once its requests are there"
        key = batches.hold_setting(workload)
        yield Setting(name=key, kind="boolean", default=True, description=text)
    yield from _installs(installed)
    if operators.needed(plan):
        yield operators.stack(plan)
    if pools.named(plan):
        text = "Keep other pods off the GPU nodes; fails on nodes with other taints"
        yield Setting(name=nodes.TAINT_SETTING, kind="boolean", default=False, description=text)


def _installs(installed: tuple[Chart, ...]) -> Iterator[Setting]:
    for chart in installed:
        text = f"Install {chart.component.name}; false where the cluster has its own"
        yield Setting(name=chart.setting, kind="boolean", default=True, description=text)
