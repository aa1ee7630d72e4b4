"""A Pulumi program for a Kubernetes cluster: the plan's objects, charts and labels of nodes."""

from __future__ import annotations

from gpuplan.backends.pulumi import project
from gpuplan.backends.pulumi.kubernetes.program import program
from gpuplan.backends.pulumi.kubernetes.readme import sections
from gpuplan.emission import Emission
from gpuplan.kubernetes.lower import lower
from gpuplan.plan.model import Plan
from gpuplan.render.tree import FileTree


def emit(plan: Plan) -> Emission:
    lowered = lower(plan)
    parts = program(plan, lowered.objects)
    requirements = (project.PULUMI, project.KUBERNETES)
    around = project.files(plan, parts.settings, requirements, parts.resources)
    return Emission(
        files=FileTree((*parts.files, *around)),
        diagnostics=(*lowered.diagnostics, *parts.diagnostics),
        sections=tuple(sections(plan, lowered.objects)),
    )
