"""The backends, in order. Adding one is a line here (docs/adding-a-backend.md)."""

from __future__ import annotations

from gpuplan.backends import helm, libvirt, pulumi, stack
from gpuplan.backends.api import Backend

BACKENDS: tuple[Backend, ...] = (stack.BACKEND, pulumi.BACKEND, helm.BACKEND, libvirt.BACKEND)


def targets() -> tuple[str, ...]:
    """The targets that a program is emitted for."""
    return tuple(sorted(pulumi.BACKEND.targets))
