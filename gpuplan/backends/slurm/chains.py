"""Which job waits for which, and what recurs: a script submits, one writes a scrontab's lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from graphlib import TopologicalSorter

from gpuplan.backends.slurm.job import Job
from gpuplan.backends.slurm.view import account, qos
from gpuplan.plan.model import record
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.tree import File

MINUTES, MEMORY_MIB = 10, 256  # of the job that submits


@record
class Entry:
    """A job that recurs: the options of the one that submits it, and cron's fields."""

    name: str
    schedule: Verbatim
    options: tuple[Verbatim, ...]


def files(cluster: str, jobs: Sequence[Job], root: str) -> Iterator[File]:
    names = [job.name for job in jobs]
    text = render(
        "shell",
        "slurm/submit.sh.j2",
        names=names,
        chain=[(name, _before(jobs, name)) for name in ordered(jobs)],
    )
    yield File("submit.sh", text, executable=True)
    if recurring := [_entry(job, root) for job in jobs if job.workload.schedule]:
        text = render("shell", "slurm/scrontab.sh.j2", cluster=Verbatim(cluster), entries=recurring)
        yield File("scrontab.sh", text, executable=True)


def ordered(jobs: Sequence[Job]) -> list[str]:
    """Each after those it waits for, else as in the plan, which has no circles."""
    graph = {job.name: _before(jobs, job.name) for job in jobs}
    sorter = TopologicalSorter(graph)
    sorter.prepare()
    names: list[str] = []
    place = {name: number for number, name in enumerate(graph)}
    while sorter.is_active():
        ready = sorted(sorter.get_ready(), key=lambda name: place[name])
        names += ready
        sorter.done(*ready)
    return names


def _before(jobs: Sequence[Job], name: str) -> list[str]:
    """Those that have a script: what cannot be started is said elsewhere."""
    by_name = {job.name: job for job in jobs}
    return [other for other in by_name[name].workload.after if other in by_name]


def _entry(job: Job, root: str) -> Entry:
    options = {
        "job-name": f"{job.name}_cron",
        "partition": job.workload.node_pool,
        "account": account(job.workload),
        "qos": qos(job.workload),
        "time": f"00:{MINUTES}:00",
        "mem": f"{MEMORY_MIB}M",
        "open-mode": "append",
        "output": f"{root}/%x.log",
    }
    return Entry(
        name=job.name,
        schedule=Verbatim(job.workload.schedule or ""),
        options=tuple(Verbatim(f"--{name}={value}") for name, value in options.items()),
    )
