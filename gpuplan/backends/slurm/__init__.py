"""The configuration of a Slurm cluster, its accounts, and a batch script for each workload."""

from gpuplan.backends.slurm.lower import emit

__all__ = ["emit"]
