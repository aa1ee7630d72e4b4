"""One address for each service: HAProxy before the jobs of its replicas, wherever they run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.backends.slurm.job import Job
from gpuplan.plan.model import record
from gpuplan.render.environments import render
from gpuplan.render.tree import File

PATH = "serve.sh"


@record
class Service:
    """`port` is that of its first replica, on the machine with the address; `health` may be
    empty."""

    name: str
    port: int
    health: str


def services(jobs: Sequence[Job]) -> Iterator[Service]:
    """Those whose replicas are alike: a notebook is one user's."""
    for job in jobs:
        if job.port is not None and job.workload.task == "inference":
            yield Service(name=job.name, port=job.port, health=job.launch.health or "")


def files(jobs: Sequence[Job], root: str) -> Iterator[File]:
    if served := list(services(jobs)):
        text = render("shell", f"slurm/{PATH}.j2", endpoints=f"{root}/endpoints", services=served)
        yield File(PATH, text, executable=True)
