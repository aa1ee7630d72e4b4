"""Values and locks of the charts that a plan installs."""

from __future__ import annotations

from gpuplan.backends.api import Backend, Emission
from gpuplan.plan.model import Plan


def emit(plan: Plan) -> Emission:
    from gpuplan.backends.helm.lower import lower

    return lower(plan)


BACKEND = Backend(
    name="helm",
    summary="values and lock of each chart",
    targets=frozenset(("kubernetes",)),
    emit=emit,
)
