"""Nodes that are kept for a job from a time on: for what has to be ready by then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.backends.slurm.job import Job
from gpuplan.backends.slurm.names import minutes, reservation
from gpuplan.backends.slurm.view import account
from gpuplan.plan.model import record
from gpuplan.plan.outside.cluster import Cluster
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.tree import File


@record
class Kept:
    name: str
    partition: str
    start: Verbatim
    duration: Verbatim
    nodes: int
    account: str


def files(cluster: Cluster, jobs: Sequence[Job]) -> Iterator[File]:
    by_name = {job.name: job for job in jobs}
    kept = [
        _kept(by_name[r.workload], r.start, r.seconds)
        for r in cluster.reservations
        if r.workload in by_name
    ]
    if kept:
        text = render("shell", "slurm/reserve.sh.j2", reservations=kept)
        yield File("reserve.sh", text, executable=True)


def _kept(job: Job, start: str, seconds: float | None) -> Kept:
    """As long as its time limit, where nobody says. Tasks of an array share nodes where they can;
    the reservation has as many as the pool has for them."""
    work = job.workload
    nodes = work.nodes_per_replica
    if nodes == 1:
        per_node = max(1, job.nodes.machine.gpus // work.gpus_per_node)
        nodes = -(-work.replicas // per_node)
    duration = seconds if seconds is not None else job.seconds
    return Kept(
        name=reservation(job.name),
        partition=work.node_pool,
        start=Verbatim(start),
        duration=Verbatim("UNLIMITED" if duration is None else minutes(duration)),
        nodes=nodes,
        account=account(work),
    )
