"""A guest that becomes a node of a cluster, whose scheduler starts its work.

Sources: kubernetes.io, "Installing kubeadm" and kubeadm's configuration v1beta4; docs.k3s.io, `k3s
agent`; slurm.schedmd.com, configless_slurm and slurmd(8).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuplan.backends.libvirt.seed import run
from gpuplan.backends.libvirt.seed.view import JoinView
from gpuplan.plan.model import ClusterJoin, VirtualMachine
from gpuplan.plan.site import JOIN_LABEL
from gpuplan.render.environments import render

UNIT = "gpuplan-join.service"
INSTALL, JOIN = "/usr/local/sbin/gpuplan-join-install", "/usr/local/sbin/gpuplan-join"
PACKAGES = "https://pkgs.k8s.io/core:/stable:"
PROGRAM = "https://github.com/k3s-io/k3s/releases/download"


def files(machine: VirtualMachine, join: ClusterJoin) -> Iterator[tuple[str, str]]:
    """Each file's path in the guest, with its text."""
    view = view_of(machine, join)
    for path, (syntax, template) in _templates(join).items():
        yield path, render(syntax, f"libvirt/guest/{template}.j2", join=view)


def _templates(join: ClusterJoin) -> dict[str, tuple[Any, str]]:
    templates: dict[str, tuple[Any, str]] = {
        INSTALL: ("shell", "join.install.sh"),
        f"/etc/systemd/system/{UNIT}": ("conf", "join.service"),
    }
    if join.kind != "k3s":
        templates[JOIN] = ("shell", "join.sh")
    if join.kind == "kubeadm":
        templates["/etc/apt/preferences.d/61-gpuplan"] = ("text", "join.preferences")
        templates["/etc/gpuplan/join.yaml"] = ("yaml", "join.kubeadm.yaml")
    if join.kind == "k3s":
        templates["/etc/gpuplan/join.yaml"] = ("yaml", "join.k3s.yaml")
    return templates


def view_of(machine: VirtualMachine, join: ClusterJoin) -> JoinView:
    version = join.version or ""
    mounts = tuple(f"{run.FOLDERS}/{d.name}" for d in machine.disks if d.name != "root")
    minor = ".".join(version.split(".")[:2])
    return JoinView(
        is_kubeadm=join.kind == "kubeadm",
        is_k3s=join.kind == "k3s",
        is_slurm=join.kind == "slurm",
        node=machine.name,
        label=f"{JOIN_LABEL}={machine.workload}",
        server=f"https://{join.server}" if join.kind == "k3s" else join.server,
        version=version,
        repository=f"{PACKAGES}/v{minor}/deb",
        program=f"{PROGRAM}/{version.replace('+', '%2B')}/k3s",
        sha256=join.sha256 or "",
        hashes=join.ca_cert_hashes,
        mounts=mounts,
        has_mounts=bool(mounts),
    )
