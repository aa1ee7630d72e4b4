"""The stack itself: its README, its plan, its lock."""

from __future__ import annotations

from gpuplan.backends.api import Backend, Emission
from gpuplan.plan.model import Plan


def emit(plan: Plan) -> Emission:
    from gpuplan.backends.stack.lower import lower

    return lower(plan)


BACKEND = Backend(
    name="stack",
    summary="README, plan.yaml and gpuplan.lock",
    targets=frozenset(("kubernetes", "libvirt")),
    emit=emit,
)
