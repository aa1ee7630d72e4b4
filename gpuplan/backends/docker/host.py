"""What prepares the machine: the script that assigns devices, and the unit that runs it at boot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.backends.docker.shares import layouts
from gpuplan.backends.docker.storage import SECRETS
from gpuplan.backends.docker.view import Part, Share
from gpuplan.plan.model import MigInstance, Plan, record
from gpuplan.render.environments import render
from gpuplan.render.tree import File
from gpuplan.units import KIB

IGNORED = f".env\n{SECRETS}/\n"  # by Git: what the machine writes, and what nobody else may read


@record
class Assigned:
    """A line of the script's table: `gpus` are numbers, `instance` is `PROFILE:START` or `-`."""

    container: str
    gpus: str
    instance: str
    cores: int
    devices: str
    cpus: str
    mems: str
    memory_kib: int


@record
class Cut:
    """A GPU's number with its instances, `PROFILE:START` each."""

    gpu: int
    instances: str


def files(plan: Plan, parts: Sequence[Part]) -> Iterator[File]:
    pool = plan.node_pools[0]
    script = render(
        "shell",
        "docker/assign.sh.j2",
        stack=plan.name,
        gpus=pool.gpus_per_node,
        product=pool.gpu_product,
        nodes=bool(pool.maker.devices),
        maker=pool.maker.pci_vendor,
        quadlet=plan.quadlet,
        shares=[_assigned(part, share) for part in parts for share in part.shares],
        cuts=[
            Cut(gpu=number, instances=",".join(map(_placed, instances)))
            for number, instances in layouts(pool)
        ],
    )
    yield File("assign.sh", script, executable=True)
    unit = render("conf", "docker/boot.service.j2", stack=plan.name, mig=not pool.maker.devices)
    yield File(unit_name(plan), unit)
    yield File(".gitignore", IGNORED, seed=True)


def unit_name(plan: Plan) -> str:
    return f"gpuplan-{plan.name}.service"


def _assigned(part: Part, share: Share) -> Assigned:
    return Assigned(
        container=share.container,
        gpus=",".join(map(str, share.gpus)),
        instance=_placed(share.instance) if share.instance else "-",
        cores=share.cores,
        devices=",".join(share.devices),
        cpus=share.cpus,
        mems=share.mems,
        memory_kib=-(-part.workload.resources.host_memory_bytes // KIB),
    )


def _placed(instance: MigInstance) -> str:
    return f"{instance.profile}:{instance.start}"
