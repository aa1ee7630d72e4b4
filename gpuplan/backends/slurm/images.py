"""Images as files of the shared storage, which somebody fetches once for all nodes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from gpuplan.backends.slurm.job import Job
from gpuplan.plan.model import Engine
from gpuplan.plan.outside.cluster import Cluster
from gpuplan.plan.outside.network import Network, mirrored
from gpuplan.render.environments import render
from gpuplan.render.tree import File

ENDINGS = {"pyxis": "sqsh", "apptainer": "sif"}
_DIGITS = 12


def file(job: Job, containers: str) -> str:
    """`vllm-0123456789ab.sqsh`: another version is another file, so that what runs keeps its."""
    engine = job.workload.engine
    digest = hashlib.sha256(_reference(engine, job.plan.network).encode()).hexdigest()
    name = engine.image.rpartition("/")[2].partition(":")[0].partition("@")[0]
    kept = "".join(c for c in name.casefold() if c.isascii() and (c.isalnum() or c == "-"))
    return f"{kept}-{digest[:_DIGITS]}.{ENDINGS[containers]}"


def _reference(engine: Engine, network: Network | None) -> str:
    """By digest where one is known: neither program takes a tag beside it."""
    name = mirrored(engine.image, network)
    if not engine.digest:
        return name
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}@{engine.digest}"


def script(cluster: Cluster, jobs: Sequence[Job]) -> File:
    """Fetches those that are not there. Enroot separates a registry with a `#`."""
    wanted = {file(j, cluster.containers): _source(j, cluster.containers) for j in jobs}
    text = render(
        "shell",
        "slurm/images.sh.j2",
        folder=f"{cluster.storage}/images",
        images=sorted(wanted.items()),
        pyxis=cluster.containers == "pyxis",
    )
    return File("images.sh", text, executable=True)


def _source(job: Job, containers: str) -> str:
    reference = _reference(job.workload.engine, job.plan.network)
    first, slash, rest = reference.partition("/")
    if containers == "pyxis" and slash and ("." in first or ":" in first):
        reference = f"{first}#{rest}"
    return f"docker://{reference}"
