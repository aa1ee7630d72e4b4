"""Plan → a Slurm cluster: its configuration, its accounts, and a script for each workload."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.backends.slurm import (
    accounts,
    chains,
    conf,
    host,
    images,
    jobs,
    playbook,
    problems,
    readme,
    reservations,
    serving,
    topology,
    view,
)
from gpuplan.backends.slurm.commands import FIRST
from gpuplan.backends.slurm.job import Job
from gpuplan.diagnostics import Diagnostic
from gpuplan.emission import Emission
from gpuplan.engines.launch import Launch
from gpuplan.engines.start import shortcomings, start
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.cluster import Cluster
from gpuplan.render.tree import File, FileTree

FIRST_PORT = 8000


def emit(plan: Plan) -> Emission:
    """A plan without a cluster was refused before."""
    cluster = plan.cluster
    if cluster is None:
        return Emission(diagnostics=(problems.no_cluster(plan),))
    every = tuple(view.nodes(plan, cluster))
    parts = tuple(view.partitions(plan, every))
    starts = {w.name: start(w, first=FIRST) for w in plan.workloads}
    unknown = tuple(s for s in starts.values() if not isinstance(s, Launch))
    work = tuple(
        jobs.at_ports(
            [
                Job(plan=plan, workload=w, launch=launch, nodes=view.of_pool(every, w))
                for w in plan.workloads
                if isinstance(launch := starts[w.name], Launch)
            ],
            FIRST_PORT,
        )
    )
    files = (
        *conf.files(plan, cluster, every, parts, work),
        *accounts.files(plan, work),
        *host.files(cluster, every),
        images.script(cluster, work),
        *_jobs(cluster, work),
        *playbook.files(plan.name, cluster),
        *reservations.files(cluster, work),
        *serving.files(work, f"{cluster.storage}/{plan.name}"),
        *chains.files(plan.name, work, f"{cluster.storage}/{plan.name}"),
    )
    diagnostics = (*unknown, *_problems(plan, cluster, every, work))
    sections = tuple(readme.sections(plan, cluster, every, work))
    return Emission(FileTree(files), diagnostics, sections)


def _jobs(cluster: Cluster, work: Sequence[Job]) -> Iterator[File]:
    for job in work:
        yield jobs.file(job, cluster.containers, cluster.storage)
        for name, text in job.launch.files:
            yield File(f"workloads/{job.name}/{name}", text)


def _problems(
    plan: Plan, cluster: Cluster, every: Sequence[view.Nodes], work: Sequence[Job]
) -> Iterator[Diagnostic]:
    for workload in plan.workloads:
        yield from shortcomings(workload)
    if cluster.switches and topology.domains(cluster):
        yield problems.switches_not_expressed()
    for group in every:
        if group.cuts:
            yield problems.layout_per_job(group.names)
    joined = (job.workload for job in work if job.workload.one_domain)
    yield from map(problems.memory_exchange, joined)
    for job in work:
        several = job.count > 1 and job.launch.port is not None and not job.ends
        if several and not job.moves_port:
            yield problems.own_port(job.workload, job.launch.port or 0)
        if several and job.workload.task == "inference":
            yield problems.addresses(job.workload, serving.PATH)
