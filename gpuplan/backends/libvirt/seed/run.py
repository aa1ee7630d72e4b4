"""The script that runs a workload's container in a guest."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator

from gpuplan.engines import container
from gpuplan.engines.container import CONFIG, SCRATCH, variables
from gpuplan.engines.launch import Launch, written
from gpuplan.plan.model import VirtualMachine, Workload
from gpuplan.plan.outside.network import registry_of
from gpuplan.render.commented import Because

FOLDERS = "/srv"  # where volumes and scratch space are mounted in the guest
NCCL = f"{CONFIG}/nccl-topo.xml"


def words(workload: Workload, machine: VirtualMachine, launch: Launch) -> tuple[str, ...]:
    """`podman run` with everything that the plan sized, in the order of its manual."""
    return tuple(_words(workload, machine, launch, launch.command, _arguments(machine, launch)))


def before(workload: Workload, machine: VirtualMachine, launch: Launch) -> tuple[str, ...]:
    """The container that has to end before, or nothing."""
    return tuple(_words(workload, machine, launch, launch.before, ())) if launch.before else ()


def _words(
    workload: Workload,
    machine: VirtualMachine,
    launch: Launch,
    command: tuple[str, ...],
    arguments: tuple[str, ...],
) -> Iterator[str]:
    yield from ("podman", "run", "--rm", "--replace", "--name", workload.name)
    yield from ("--device", "nvidia.com/gpu=all", "--network", "host")
    yield from ("--shm-size", f"{workload.resources.shared_memory_bytes}b")
    if any(d.kind == "nic" for d in machine.devices):
        yield from ("--device", "/dev/infiniband", "--ulimit", "memlock=-1:-1")
    for name, path in mounts(workload, machine):
        yield from ("--volume", f"{FOLDERS}/{name}:{path}")
    yield from ("--volume", f"{CONFIG}:{CONFIG}:ro")
    for name, value in sorted(environment(workload, machine, launch).items()):
        yield from ("--env", f"{name}={value}")
    for secret in workload.secrets:
        yield from ("--env", secret.environment)
    if command:
        yield from ("--entrypoint", json.dumps(list(command)))
    yield image(workload)
    yield from arguments


def image(workload: Workload) -> str:
    """The pinned image with its registry, which podman guesses no name of."""
    return "/".join(registry_of(container.image(workload.engine)))


def environment(workload: Workload, machine: VirtualMachine, launch: Launch) -> dict[str, str]:
    own = variables(workload, launch)
    gpus = sum(d.kind in ("gpu", "vgpu") for d in machine.devices)
    return {"NCCL_TOPO_FILE": NCCL} | own if gpus > 1 else own


def mounts(workload: Workload, machine: VirtualMachine) -> Iterator[tuple[str, str]]:
    """Each folder of the guest with its place in the container: volumes that are disks of the
    guest, and scratch space."""
    disks = {d.name for d in machine.disks}
    yield "scratch", SCRATCH
    for volume in workload.volumes:
        if volume.name in disks:
            yield volume.name, volume.mount_path


def index(machine: VirtualMachine) -> int:
    """The guest's number among those of its workload."""
    match = re.search(r"([0-9]+)$", machine.name)
    return int(match[1]) if match else 0


def _arguments(machine: VirtualMachine, launch: Launch) -> tuple[str, ...]:
    number = str(index(machine))
    texts = (written(argument, number) for argument in launch.arguments)
    return tuple(str(t.value) if isinstance(t, Because) else t for t in texts)


def line(words: tuple[str, ...]) -> str:
    """As a shell reads it, an option a line."""
    return " \\\n    ".join(shlex.quote(w) for w in words)
