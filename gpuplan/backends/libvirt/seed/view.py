"""Views of the templates of a guest's own files."""

from __future__ import annotations

from gpuplan.backends.libvirt.view import Credential
from gpuplan.plan.model import record
from gpuplan.render.environments import Verbatim


@record
class JoinView:
    """What a guest needs to become a node: `repository` and `program` are where it comes from,
    `label` is what selects it there."""

    is_kubeadm: bool
    is_k3s: bool
    is_slurm: bool
    node: str
    label: str
    server: str
    version: str
    repository: str
    program: str
    sha256: str
    hashes: tuple[str, ...]
    mounts: tuple[str, ...]
    has_mounts: bool


@record
class SeedView:
    """`limits` are watts by the GPU's address in the guest; `secrets` are variables with the names
    of their credentials; `ends`: what runs ends by itself. `before` and `command` are lines of a
    shell."""

    workload: str
    dcgm: str
    driver: str
    driver_packages: str
    toolkit: str
    cuda_repository: str
    toolkit_repository: str
    has_vgpus: bool
    gpus: int
    limits: tuple[str, ...]
    scratch: tuple[str, ...]
    has_scratch: bool
    secrets: tuple[Credential, ...]
    has_before: bool
    before: Verbatim
    command: Verbatim
    ends: bool
    mounts: tuple[str, ...]
    has_mounts: bool
    has_port: bool
    port: int
    has_health: bool
    health: str
