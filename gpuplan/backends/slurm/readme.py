"""What the README says of a Slurm cluster: prepare, put in place, submit, reach, undo."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.backends.slurm import serving
from gpuplan.backends.slurm.job import Job
from gpuplan.backends.slurm.view import Nodes, spare_account
from gpuplan.emission import Section
from gpuplan.engines.start import batch_folders
from gpuplan.plan.model import Plan, record
from gpuplan.plan.outside.cluster import Cluster
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.hostlist import hostlist
from gpuplan.render.markdown import code


@record
class Batch:
    """Where a batch's files go, on the shared storage."""

    name: Verbatim
    count: int
    several: bool
    requests: Verbatim


def sections(
    plan: Plan, cluster: Cluster, every: Sequence[Nodes], work: Sequence[Job]
) -> Iterator[Section]:
    root = f"{cluster.storage}/{plan.name}"
    cut = [group for group in every if group.cuts]
    reached = [job for job in work if job.port is not None]
    values: dict[str, dict[str, object]] = {
        "Before": {
            "controller": Verbatim(code(cluster.controller)),
            "database": Verbatim(code(cluster.database)),
            "storage": Verbatim(code(cluster.storage)),
            "root": Verbatim(root),
            "images": Verbatim(f"{cluster.storage}/images"),
            "pyxis": cluster.containers == "pyxis",
            "cut": [
                (Verbatim(code(hostlist(group.names))), Verbatim(code(group.said_gres)))
                for group in cut
            ],
            "secrets": [
                (
                    Verbatim(code(f"{root}/secrets/{job.name}.env")),
                    ", ".join(s.environment for s in job.workload.secrets),
                )
                for job in work
                if job.workload.secrets
            ],
        },
        "Apply": {
            "cut": bool(cut),
            "accounts": _users(plan),
            "reserved": bool(cluster.reservations),
        },
        "Start": {
            "scripts": [Verbatim(job.path) for job in work],
            "chain": [
                (
                    Verbatim(code(j.name)),
                    Verbatim(" and ".join(map(code, j.workload.after))),
                    len(j.workload.after) > 1,
                )
                for j in work
                if j.workload.after
            ],
            "recurring": [
                (Verbatim(code(j.name)), Verbatim(code(j.workload.schedule)))
                for j in work
                if j.workload.schedule
            ],
            "batches": [_batch(job, root) for job in work if _has_files(job)],
        },
        "Reach": {
            "endpoints": [
                (Verbatim(code(job.name)), Verbatim(code(f"{root}/endpoints/{job.name}/")))
                for job in reached
            ],
            "stack": Verbatim(plan.name),
            "script": Verbatim(serving.PATH),
            "services": [(Verbatim(code(s.name)), s.port) for s in serving.services(work)],
            "notebooks": any(job.workload.notebook for job in reached),
        },
        "Update": {},
        "Remove": {
            "names": [Verbatim(job.name) for job in work],
            "cut": bool(cut),
            "reserved": bool(cluster.reservations),
            "recurring": any(job.workload.schedule for job in work),
        },
    }
    for heading, given in values.items():
        if heading != "Reach" or reached:
            text = render("markdown", f"slurm/{heading.casefold()}.md.j2", **given)
            yield Section(heading, text)


def _users(plan: Plan) -> list[Verbatim]:
    return [
        Verbatim(f"sacctmgr add user name=USER account={t.name},{spare_account(t.name)}")
        for t in plan.tenants
    ]


def _has_files(job: Job) -> bool:
    return job.workload.task == "batch" and not job.workload.command


def _batch(job: Job, root: str) -> Batch:
    requests, _ = batch_folders(job.workload)
    volume = next((v for v in job.workload.volumes if v.mount_path == requests), None)
    folder = job.folder(root, volume.name) if volume else requests
    return Batch(
        name=Verbatim(code(job.name)),
        count=job.count,
        several=job.count > 1,
        requests=Verbatim(code(f"{folder}/requests-0.jsonl")),
    )
