"""The two programs that make a cluster and its nodes, in folders of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from gpuplan.backends.pulumi import project
from gpuplan.backends.pulumi.project import Setting
from gpuplan.backends.pulumi.view import Resource
from gpuplan.diagnostics import Diagnostic
from gpuplan.emission import Emission, Section
from gpuplan.plan.model import Plan, record
from gpuplan.plan.outside.cloud import Cloud
from gpuplan.render import python
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.python import Call, Name
from gpuplan.render.tree import File, FileTree

CLUSTER, POOLS = "cluster", "pools"


@record
class CloudProgram:
    """A Pulumi project `STACK-part` in `cloud/part`. `files` are its own modules, by paths below
    that; `modules` those that its main module imports, and `exports` what it gives to others: an
    expression by the output's name."""

    part: str
    files: tuple[File, ...]
    modules: tuple[str, ...]
    exports: tuple[tuple[str, str], ...]
    settings: tuple[Setting, ...]
    requirements: tuple[str, ...]
    resources: tuple[Resource, ...]


class Cluster(Protocol):
    """A cloud's module for its cluster."""

    def files(self, plan: Plan, cloud: Cloud) -> Iterator[File]: ...
    def exports(self, cloud: Cloud) -> Iterator[tuple[str, str]]: ...
    def settings(self, plan: Plan, cloud: Cloud) -> tuple[Setting, ...]: ...
    def resources(self, cloud: Cloud) -> Iterator[Resource]: ...


def cluster(plan: Plan, cloud: Cloud, made: Cluster, requirements: tuple[str, ...]) -> CloudProgram:
    return CloudProgram(
        part=CLUSTER,
        files=tuple(made.files(plan, cloud)),
        modules=("access", cluster_module(cloud))
        if cloud.states_access
        else (cluster_module(cloud),),
        exports=tuple(made.exports(cloud)),
        settings=made.settings(plan, cloud),
        requirements=requirements,
        resources=tuple(made.resources(cloud)),
    )


def cluster_module(cloud: Cloud) -> str:
    """The module that has the cluster: one that is there, or a new one."""
    return "existing" if cloud.existing else "control"


def module(templates: str, own: str, /, **values: object) -> File:
    """A module of a program, from the template of its own name."""
    return File(f"{own}.py", render("python", f"{templates}/{own}.py.j2", **values))


def emission(
    plan: Plan,
    programs: Iterable[CloudProgram],
    problems: Iterable[Diagnostic],
    sections: Iterable[Section],
) -> Emission:
    files = (file for program in programs for file in _files(plan, program))
    return Emission(
        files=FileTree(tuple(files)), diagnostics=tuple(problems), sections=tuple(sections)
    )


def cluster_stack(plan: Plan) -> Setting:
    """How the program of the pools finds the cluster's."""
    return Setting(
        name="clusterStack",
        kind="string",
        description=f"The Pulumi stack of cloud/cluster: ORGANIZATION/{plan.name}-cluster/dev",
    )


def _files(plan: Plan, program: CloudProgram) -> Iterator[File]:
    folder = f"cloud/{program.part}/"
    exports = [
        Verbatim(python.expression(Call("pulumi.export", (output, Name(value)))))
        for output, value in program.exports
    ]
    modules = list(map(Verbatim, program.modules))
    main = render("python", "pulumi/main.py.j2", modules=modules, exports=exports)
    yield File(f"{folder}__main__.py", main)
    for file in program.files:
        yield File(f"{folder}{file.path}", file.text)
    yield from project.files(
        plan,
        program.settings,
        program.requirements,
        program.resources,
        part=f"-{program.part}",
        folder=folder,
    )
