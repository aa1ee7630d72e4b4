"""Plan → Pulumi program, by target."""

from __future__ import annotations

from gpuplan.backends.api import Emission
from gpuplan.backends.pulumi import kubernetes, libvirt, project
from gpuplan.plan.model import Plan
from gpuplan.render.tree import FileTree


def lower(plan: Plan) -> Emission:
    if plan.target == "libvirt":
        return _libvirt(plan)
    made = kubernetes.program(plan)
    requirements = (project.PULUMI, project.KUBERNETES)
    around = project.files(plan, made.settings, requirements, made.resources)
    return Emission(FileTree((*made.files, *around)), made.lowered.diagnostics)


def _libvirt(plan: Plan) -> Emission:
    requirements = (project.PULUMI, project.COMMAND)
    around = project.files(plan, libvirt.SETTINGS, requirements, libvirt.resources(plan))
    return Emission(FileTree((*libvirt.files(plan), *around)))
