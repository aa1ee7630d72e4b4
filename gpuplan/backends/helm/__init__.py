"""Values and locks of the charts that a plan installs."""

from gpuplan.backends.helm.lower import emit

__all__ = ["emit"]
