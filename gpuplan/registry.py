"""The backends, in order. Adding one is a line here (docs/adding-a-backend.md)."""

from __future__ import annotations

from gpuplan.backends import helm, libvirt, pulumi, stack
from gpuplan.backends.api import Backend

BACKENDS: tuple[Backend, ...] = (stack.BACKEND, pulumi.BACKEND, helm.BACKEND, libvirt.BACKEND)
