"""Pulumi programs in explicit, typed Python."""

from __future__ import annotations

from gpuplan.backends.api import Backend, Emission
from gpuplan.plan.model import Plan


def emit(plan: Plan) -> Emission:
    from gpuplan.backends.pulumi.lower import lower

    return lower(plan)


BACKEND = Backend(
    name="pulumi",
    summary="a Pulumi program in Python, its project and its list of resources",
    targets=frozenset(("kubernetes", "libvirt")),
    emit=emit,
)
