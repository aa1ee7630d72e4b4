"""A Compose project for one machine, and the script that gives its containers GPUs and CPUs."""

from gpuplan.backends.docker.lower import emit

__all__ = ["emit"]
