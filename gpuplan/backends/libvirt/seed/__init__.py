"""What a guest is told at its first start: cloud-init's seed, which installs and starts its
engine."""

from gpuplan.backends.libvirt.seed.files import Scene, credentials, seed

__all__ = ["Scene", "credentials", "seed"]
