"""The program of the cluster's operators, where they have a Pulumi stack of their own."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.pulumi import project, view
from gpuplan.backends.pulumi.kubernetes import addons
from gpuplan.backends.pulumi.project import Setting
from gpuplan.kubernetes.addons import charts
from gpuplan.kubernetes.addons.charts import Chart
from gpuplan.plan.model import Plan
from gpuplan.render import python
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.python import Call, Name
from gpuplan.render.tree import File

PART = "operators"
FOLDER = f"{PART}/"
# How the workloads' program finds this one.
STACK = "operatorsStack"


def needed(plan: Plan) -> bool:
    """Whether the workloads' program asks another Pulumi stack for the operators."""
    return plan.operators is not None and any(charts.charts(plan))


def asked(plan: Plan) -> dict[str, object]:
    """What the template of the cluster prints of them."""
    names = [c.component.name for c in charts.charts(plan)] if needed(plan) else []
    lead = Verbatim(python.expression(names, lead="NEEDED = "))
    return {"own": False, "served": bool(names), "needed": lead}


def asks_stack(plan: Plan) -> bool:
    """Whether the stack that made the cluster says where it is. Operators of another stack are
    told from another cluster's by the UID alone."""
    cloud = plan.cloud
    return cloud is not None and cloud.states_access and not needed(plan)


def stack(plan: Plan) -> Setting:
    where = PART if plan.operators == "separate" else "the one that installs the operators"
    return Setting(
        name=STACK,
        kind="string",
        description=f"The Pulumi stack of {where}: ORGANIZATION/{plan.name}-{PART}/dev"
        if plan.operators == "separate"
        else f"The Pulumi stack of {where}, whose outputs are clusterUid and charts",
    )


def files(
    plan: Plan,
    installed: tuple[Chart, ...],
    settings: tuple[Setting, ...],
    resources: tuple[view.Resource, ...],
) -> Iterator[File]:
    """A Pulumi project `STACK-operators` in `operators`; `helm` stays where it is."""
    versions = {c.component.name: c.component.version for c in installed}
    exports = [
        Call("pulumi.export", ("clusterUid", Name("cluster.cluster_uid"))),
        Call("pulumi.export", ("charts", versions)),
    ]
    main = render(
        "python",
        "pulumi/main.py.j2",
        modules=[Verbatim("addons"), Verbatim("cluster")],
        exports=[Verbatim(python.expression(e)) for e in exports],
    )
    yield File(f"{FOLDER}__main__.py", main)
    cluster = render(
        "python", "pulumi/cluster.py.j2", statements=[], served=False, own=True, stacked=False
    )
    yield File(f"{FOLDER}cluster.py", cluster)
    own = addons.file(plan, installed, above="../")
    yield File(f"{FOLDER}{own.path}", own.text)
    requirements = (project.PULUMI, project.KUBERNETES)
    part = f"-{PART}"
    yield from project.files(plan, settings, requirements, resources, part=part, folder=FOLDER)
