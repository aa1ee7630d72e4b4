"""What guests install, by exact version, and from where."""

from __future__ import annotations

from gpuplan.plan.model import record
from gpuplan.plan.site import GuestSystem


@record
class PackagePin:
    """`packages` of `version`; `source` says where that stands."""

    packages: tuple[str, ...]
    version: str
    source: str


VALUES = (
    "NVIDIA/gpu-operator, deployments/gpu-operator/values.yaml at v26.3.3 "
    "(b0a49c0e7b2e061dcd83f2bb2fe4fe960c5d0338, 2026-06-23)"
)
DRIVER = PackagePin(packages=("nvidia-open",), version="580.126.20", source=VALUES)
TOOLKIT = PackagePin(packages=("nvidia-container-toolkit",), version="1.19.1", source=VALUES)
DCGM = PackagePin(
    packages=("nvcr.io/nvidia/k8s/dcgm-exporter",), version="4.5.3-4.8.2-distroless", source=VALUES
)

# NVIDIA's repositories: docs.nvidia.com/datacenter/cloud-native/container-toolkit (installation
# with apt) and docs.nvidia.com/cuda/cuda-installation-guide-linux (network repository).
TOOLKIT_REPOSITORY = "https://nvidia.github.io/libnvidia-container"
CUDA_REPOSITORY = "https://developer.download.nvidia.com/compute/cuda/repos"
CUDA_FOLDER: dict[GuestSystem, str] = {
    "debian-12": "debian12/x86_64",
    "debian-13": "debian13/x86_64",
    "ubuntu-24.04": "ubuntu2404/x86_64",
}
HEADERS: dict[GuestSystem, str] = {
    "debian-12": "linux-headers-amd64",
    "debian-13": "linux-headers-amd64",
    "ubuntu-24.04": "linux-headers-generic",
}
