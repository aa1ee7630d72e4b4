"""Who may use what: accounts of the tenants, and qualities of service of the priorities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from gpuplan.backends.slurm.job import Job
from gpuplan.backends.slurm.view import spare_account
from gpuplan.plan.model import Plan, record
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.tree import File

LEVELS = {"low": 10, "normal": 100, "high": 1000, "critical": 10000}
SPARE_LEVELS = {f"{name}-preemptible": number // 2 for name, number in LEVELS.items()}
GRACE_SECONDS = 30  # of work that gives way, to end; longer where an engine still answers


@record
class Quality:
    """A quality of service; `preempts` are those that give way to it."""

    name: str
    priority: int
    mode: str
    preempts: str
    grace_seconds: int


def qualities(jobs: Sequence[Job]) -> Iterator[Quality]:
    """All of them, so that work which comes later has one. Those that give way come first: they
    have to be there before others preempt them."""
    drains = [job.drain_seconds for job in jobs if job.workload.preemptible]
    for name, number in SPARE_LEVELS.items():
        grace = max(GRACE_SECONDS, *drains, 0)
        yield Quality(name=name, priority=number, mode="requeue", preempts="", grace_seconds=grace)
    every = ",".join(SPARE_LEVELS)
    for name, number in LEVELS.items():
        yield Quality(name=name, priority=number, mode="cluster", preempts=every, grace_seconds=0)


def files(plan: Plan, jobs: Sequence[Job]) -> Iterator[File]:
    lines = [Verbatim(line) for line in _accounts(plan, jobs)]
    load = render("conf", "slurm/accounts.cfg.j2", cluster=plan.name, lines=lines)
    yield File("etc/accounts.cfg", load)
    names = [name for t in plan.tenants for name in (t.name, spare_account(t.name))]
    script = render(
        "shell",
        "slurm/accounts.sh.j2",
        cluster=plan.name,
        qualities=list(qualities(jobs)),
        names=names,
    )
    yield File("accounts.sh", script, executable=True)


def _accounts(plan: Plan, jobs: Sequence[Job]) -> Iterator[str]:
    """A tenant's share is the GPUs that the plan gives it, and so is the most that it has for work
    which does not give way; that counts instances by themselves."""
    keeps, gives = ",".join(LEVELS), ",".join(SPARE_LEVELS)
    for tenant in plan.tenants:
        mine = [j for j in jobs if j.workload.tenant == tenant.name]
        counts: Counter[str] = Counter()
        for job in mine:
            if not job.workload.preemptible:
                counts[job.kind] += job.workload.devices
        limits = [f"gres/gpu={counts.total()}", *(f"gres/gpu:{k}={n}" for k, n in counts.items())]
        share = max(1, sum(j.workload.gpu_count for j in mine if not j.workload.preemptible))
        start = f"Organization='{plan.name}':Fairshare"
        yield (
            f"Account - '{tenant.name}':Description='{tenant.name}':{start}={share}"
            f":GrpTRES='{','.join(limits)}':QOS='{keeps}'"
        )
        name = spare_account(tenant.name)
        yield f"Account - '{name}':Description='{name}':{start}=1:QOS='{gives}'"
