"""A Pulumi program that sets up libvirt's hosts over SSH and defines their guests."""

from __future__ import annotations

from gpuplan.backends.pulumi import project
from gpuplan.backends.pulumi.libvirt.program import SETTINGS, files, resources
from gpuplan.backends.pulumi.libvirt.readme import sections
from gpuplan.emission import Emission
from gpuplan.plan.model import Plan
from gpuplan.render.tree import FileTree


def emit(plan: Plan) -> Emission:
    requirements = (project.PULUMI, project.COMMAND)
    around = project.files(plan, SETTINGS, requirements, resources(plan))
    return Emission(files=FileTree((*files(plan), *around)), sections=tuple(sections(plan)))
