"""gpuplan: from a workload manifest to sized, reviewable GPU infrastructure."""

__version__ = "0.1.0"
