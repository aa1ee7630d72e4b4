"""Plan → Pulumi program, by target. Only the target's own modules are imported."""

from __future__ import annotations

from gpuplan.backends.api import Emission
from gpuplan.backends.pulumi import project
from gpuplan.plan.model import Plan
from gpuplan.render.tree import FileTree


def lower(plan: Plan) -> Emission:
    return _libvirt(plan) if plan.target == "libvirt" else _kubernetes(plan)


def _kubernetes(plan: Plan) -> Emission:
    from gpuplan.backends.pulumi import kubernetes

    made = kubernetes.program(plan)
    requirements = (project.PULUMI, project.KUBERNETES)
    around = project.files(plan, made.settings, requirements, made.resources)
    return Emission(FileTree((*made.files, *around)), made.diagnostics)


def _libvirt(plan: Plan) -> Emission:
    from gpuplan.backends.pulumi import libvirt

    requirements = (project.PULUMI, project.COMMAND)
    around = project.files(plan, libvirt.SETTINGS, requirements, libvirt.resources(plan))
    return Emission(FileTree((*libvirt.files(plan), *around)))
