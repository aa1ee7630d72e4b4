"""What runs on the machines as root: it puts the configuration in place, and looks at GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.backends.slurm.view import Nodes
from gpuplan.plan.outside.cluster import Cluster
from gpuplan.render.environments import render
from gpuplan.render.tree import File


def files(cluster: Cluster, every: Sequence[Nodes]) -> Iterator[File]:
    deploy = render(
        "shell",
        "slurm/deploy.sh.j2",
        controller=cluster.controller,
        database=cluster.database,
    )
    yield File("deploy.sh", deploy, executable=True)
    counts = [(group.names, group.machine.gpus) for group in every if group.machine.gpus]
    health = render("shell", "slurm/health.sh.j2", counts=counts)
    yield File("node/health.sh", health, executable=True)
    for name in ("prolog", "epilog"):
        text = render("shell", f"slurm/{name}.sh.j2")
        yield File(f"node/{name}.sh", text, executable=True)
    if cuts := list(_cuts(every)):
        yield File("mig.sh", render("shell", "slurm/mig.sh.j2", cuts=cuts), executable=True)


def _cuts(every: Sequence[Nodes]) -> Iterator[tuple[str, int, str]]:
    """Each GPU that is cut, by its node and number, with its instances in creation order."""
    for group in every:
        for name in group.names if group.cuts else ():
            for cut in group.cuts:
                placed = ",".join(f"{i.profile}:{i.start}" for i in cut.instances)
                for gpu in cut.gpus:
                    yield name, gpu, placed
