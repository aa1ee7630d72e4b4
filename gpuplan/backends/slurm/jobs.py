"""A batch script for each workload: what it asks of Slurm, and what its container has."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from dataclasses import replace

from gpuplan.backends.slurm import images
from gpuplan.backends.slurm.commands import INDEX, SECRETS, command
from gpuplan.backends.slurm.job import Job
from gpuplan.backends.slurm.names import UNLIMITED, minutes, reservation
from gpuplan.backends.slurm.topology import near
from gpuplan.backends.slurm.view import SPARE, account, qos
from gpuplan.engines.container import CONFIG, SCRATCH
from gpuplan.plan.model import by_name
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.tree import File
from gpuplan.units import MIB

SIGNAL_SECONDS = 120  # before its time is over a job is told to stop; Slurm's own grain is a minute


def file(job: Job, containers: str, storage: str) -> File:
    """The script of one job."""
    root = f"{storage}/{job.plan.name}"
    secret = bool(job.workload.secrets)
    text = render(
        "shell",
        "slurm/job.sbatch.j2",
        title=Verbatim(" ".join(f"{job.name}: {_about(job)}".split())),
        options=[
            Verbatim(f"--{name}={value}" if value != "" else f"--{name}")
            for name, value in options(job, root)
        ],
        several=job.workload.nodes_per_replica > 1,
        has_port=job.port is not None,
        port=job.port if job.moves_port else job.launch.port or 0,
        moves_port=job.moves_port,
        image=f"{storage}/images/{images.file(job, containers)}",
        config=f"workloads/{job.name}" if job.launch.files else "",
        config_target=CONFIG,
        secrets=f"{root}/secrets/{job.name}.env" if secret else "",
        secret_names=[s.environment for s in job.workload.secrets],
        secrets_target=SECRETS,
        folders=[Verbatim(f'"{own}"') for own, _ in _folders(job, root)],
        mounts=[Verbatim(f'"{own}":{shlex.quote(target)}') for own, target in _folders(job, root)],
        endpoints=f"{root}/endpoints/{job.name}" if job.port is not None else "",
        scratch=SCRATCH,
        tasks=job.workload.nodes_per_replica,
        pyxis=containers == "pyxis",
        before=Verbatim(shlex.quote(command(job, before=True))) if job.launch.before else "",
        command=Verbatim(shlex.quote(command(job))),
        requeues=job.ends,
    )
    return File(job.path, text, executable=True)


def _about(job: Job) -> str:
    workload = job.workload
    text = workload.description or workload.task
    return f"{text} ({workload.model.identifier})" if workload.model else text


def options(job: Job, root: str) -> Iterator[tuple[str, object]]:
    """What the job asks, as long options of sbatch. Its log is below `root`."""
    work = job.workload
    gpus, need = work.gpus_per_node, work.resources
    shared = work.preemptible
    yield "job-name", work.name
    yield "partition", f"{work.node_pool},{SPARE}" if shared else work.node_pool
    yield "account", account(work)
    yield "qos", qos(work)
    yield "nodes", work.nodes_per_replica
    yield "ntasks-per-node", 1
    cluster, pool = job.plan.cluster, by_name(job.plan.node_pools, work.node_pool)
    together = near(cluster, pool.node_names, work) if cluster else None
    if together is not None:
        yield together
    # Slurm looks for GPUs that are linked where their number is the job's, and not a node's.
    chosen = work.nodes_per_replica == 1 and gpus > 1 and job.nodes.machine.gpu_links
    yield "gpus" if chosen else "gpus-per-node", f"{job.kind}:{gpus}"
    yield "cpus-per-gpu", math.ceil(need.cpu_cores / gpus) * job.nodes.machine.threads_per_core
    yield "mem-per-gpu", f"{math.ceil(need.host_memory_bytes / gpus / MIB)}M"
    yield "time", UNLIMITED if job.seconds is None else minutes(job.seconds)
    if work.replicas > 1:
        yield "array", f"0-{work.replicas - 1}"
    if cluster and any(r.workload == work.name for r in cluster.reservations):
        yield "reservation", reservation(work.name)
    yield "signal", f"B:TERM@{max(SIGNAL_SECONDS, job.drain_seconds)}"
    yield "requeue", ""
    yield "open-mode", "append"
    yield "output", f"{root}/%x-%A-%a.log" if work.replicas > 1 else f"{root}/%x-%j.log"


def _folders(job: Job, root: str) -> Iterator[tuple[str, str]]:
    """Folders of the shared storage, each with where the container has it."""
    for volume in job.workload.volumes:
        own = job.folder(root, volume.name)
        yield own + (f"-${INDEX}" if volume.per_replica else ""), volume.mount_path


def at_ports(jobs: list[Job], first: int) -> Iterator[Job]:
    """Ports that follow one another, so that no two tasks on a node have one."""
    for job in jobs:
        if job.launch.port is None or job.ends:
            yield job
        else:
            yield replace(job, port=first)
            first += job.count
