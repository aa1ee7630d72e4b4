"""Who installs the GPU driver."""

from gpuplan.manifest.v1 import Platform
from gpuplan.targets import TARGETS


def driver_on_nodes(platform: Platform) -> bool:
    """Whether nodes come with the GPU driver and the container toolkit: as the manifest chooses,
    else as the target has it."""
    chosen = platform.cluster.driver if platform.cluster else None
    return TARGETS[platform.target].driver_on_nodes if chosen is None else chosen == "provider"
