"""Virtual machines for libvirt, and what their hosts need."""

from gpuplan.backends.libvirt.lower import emit

__all__ = ["emit"]
