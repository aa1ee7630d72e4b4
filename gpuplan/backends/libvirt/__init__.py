"""Virtual machines for libvirt, and what their hosts need."""

from __future__ import annotations

from gpuplan.backends.api import Backend, Emission
from gpuplan.plan.model import Plan


def emit(plan: Plan) -> Emission:
    from gpuplan.backends.libvirt.lower import lower

    return lower(plan)


BACKEND = Backend(
    name="libvirt",
    summary="domain XML, NCCL topology and checks for each VM; configuration of each host",
    targets=frozenset(("libvirt",)),
    emit=emit,
)
