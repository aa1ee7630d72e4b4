"""slurm.conf and the files beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from gpuplan.backends.slurm import topology
from gpuplan.backends.slurm.job import Job
from gpuplan.backends.slurm.view import REST, Nodes, Partition
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.cluster import Cluster, Machine
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.hostlist import hostlist
from gpuplan.render.tree import File

FOLDER = "etc"
SLURM_ARRAY = 1001  # Slurm's default of MaxArraySize
DAY_MINUTES = 24 * 60
WHOLE_GPU = 100  # of which instances are whole parts
STOP_SECONDS = 30  # for an engine to end after it has answered; Slurm's default of KillWait


def files(
    plan: Plan,
    cluster: Cluster,
    every: Sequence[Nodes],
    parts: Sequence[Partition],
    jobs: Sequence[Job],
) -> Iterator[File]:
    types = sorted({name for group in every for name, _ in group.gres})
    runs = [job.seconds for job in jobs if job.seconds is not None]
    largest = max((job.count + 1 for job in jobs), default=0)
    text = render(
        "conf",
        "slurm/slurm.conf.j2",
        cluster=plan.name,
        controller=cluster.controller,
        database=cluster.database,
        types=types,
        shards=any(group.shards for group in every),
        topology=topology.plugin(cluster),
        channels=any(job.workload.one_domain for job in jobs),
        window=max(DAY_MINUTES, *(math.ceil(s / 60) for s in runs), 0),
        kill_wait=STOP_SECONDS + max((job.drain_seconds for job in jobs), default=0),
        array=largest,
        recurring=any(job.workload.schedule for job in jobs),
        large_array=largest > SLURM_ARRAY,
        nodes=[_node(group) for group in every],
        partitions=[
            _partition(part, _weights(part, every), is_default=part == _default(parts))
            for part in parts
        ],
    )
    yield File(f"{FOLDER}/slurm.conf", text)
    lines = [Verbatim(line) for group in every for line in _gres(group)]
    yield File(f"{FOLDER}/gres.conf", render("conf", "slurm/gres.conf.j2", lines=lines))
    yield File(f"{FOLDER}/cgroup.conf", render("conf", "slurm/cgroup.conf.j2"))
    yield File(f"{FOLDER}/job_container.conf", render("conf", "slurm/job_container.conf.j2"))
    database = render("conf", "slurm/slurmdbd.conf.j2", database=cluster.database)
    yield File(f"{FOLDER}/slurmdbd.conf", database)
    if near := [Verbatim(line) for line in topology.lines(cluster)]:
        yield File(f"{FOLDER}/topology.conf", render("conf", "slurm/topology.conf.j2", lines=near))


def _node(group: Nodes) -> Verbatim:
    machine = group.machine
    fields = {
        "NodeName": hostlist(group.names),
        "Sockets": machine.sockets,
        "CoresPerSocket": machine.cores // machine.sockets,
        "ThreadsPerCore": machine.threads_per_core,
        "CoreSpecCount": machine.kept_cores,
        "RealMemory": group.memory_mib,
        "Gres": group.said_gres,
        "Feature": ",".join(group.features),
        "State": "UNKNOWN",
    }
    return Verbatim(" ".join(f"{name}={value}" for name, value in fields.items() if value))


def _default(parts: Sequence[Partition]) -> Partition | None:
    """Where work goes that names none: away from the plan's own, where nodes are left."""
    open_to_all = [part for part in parts if not part.accounts]
    first = next(iter(open_to_all), None)
    return next((part for part in open_to_all if part.name == REST), first)


def _weights(part: Partition, every: Sequence[Nodes]) -> str:
    """What a job's use of the shares is counted by: its GPUs, an instance as its part of one.
    Without it Slurm counts CPUs."""
    here = [group for group in every if {*group.names} & {*part.nodes}]
    parts = {g.kind(s.name): s.per_gpu for g in here for s in g.shares}
    types = {name for group in here for name, _ in group.gres}
    counted = [(f"gpu:{n}", parts.get(n, 1)) for n in sorted(types)]
    sliced = [group.machine.time_slices for group in here if group.shards]
    if slices := [number for number in sliced if number]:
        counted.append(("shard", min(slices)))
    return ",".join(f"GRES/{name}={round(WHOLE_GPU / per_gpu)}" for name, per_gpu in counted)


def _partition(part: Partition, weights: str, *, is_default: bool) -> Verbatim:
    fields = {
        "PartitionName": part.name,
        "Nodes": hostlist(part.nodes),
        "Default": "YES" if is_default else "",
        "PriorityTier": 1 if part.spare else 10,
        "TRESBillingWeights": weights,
        "AllowAccounts": ",".join(part.accounts),
        "MaxTime": "UNLIMITED",
        "State": "UP",
    }
    return Verbatim(" ".join(f"{name}={value}" for name, value in fields.items() if value))


def _gres(group: Nodes) -> Iterator[str]:
    """GPUs by their device files, with the cores beside them. Those of instances are not the same
    after each start of a node, so slurmd asks NVML for all of a node that is cut."""
    start = f"NodeName={hostlist(group.names)}"
    machine = group.machine
    if group.cuts:
        yield f"{start} AutoDetect=nvml"
        return
    for first, last, more in _spans(machine):
        span = f"[{first}-{last}]" if last > first else str(first)
        yield f"{start} Name=gpu Type={group.type} File=/dev/nvidia{span}{more}"
    if group.shards:  # as many of each GPU
        yield f"{start} Name=shard Count={group.shards}"


def _spans(machine: Machine) -> Iterator[tuple[int, int, str]]:
    """GPUs that have the same beside them, first and last, and what that is. Where NVLink joins
    some of them each is alone, with its links to all: `-1` is to itself."""
    beside = [(c.first, c.last, f" Cores={c.first_core}-{c.last_core}") for c in machine.gpu_cores]
    spans = beside or ([(0, machine.gpus - 1, "")] if machine.gpus else [])
    if not machine.gpu_links:
        yield from spans
        return
    links = {(g.first, g.second): g.links for g in machine.gpu_links}
    for gpu, cores in [(n, c) for first, last, c in spans for n in range(first, last + 1)]:
        row = [links.get((min(gpu, n), max(gpu, n)), 0) for n in range(machine.gpus)]
        row[gpu] = -1
        yield gpu, gpu, f"{cores} Links={','.join(map(str, row))}"
