"""Which GPUs of the machine a container gets: whole ones, or instances of those that are cut."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.docker.view import Share, containers
from gpuplan.plan.model import MigInstance, NodePool, Plan, Workload


def shares(plan: Plan, pool: NodePool) -> dict[str, tuple[Share, ...]]:
    """Of each workload, one for each of its containers: GPUs are taken in the plan's order."""
    cuts = list(layouts(pool))
    cut = {number for number, _ in cuts}
    whole = iter([number for number in range(pool.gpus_per_node) if number not in cut])
    free = [(number, instance) for number, instances in cuts for instance in instances]
    return {w.name: tuple(_of_workload(w, whole, free)) for w in plan.workloads}


def _of_workload(
    workload: Workload, whole: Iterator[int], free: list[tuple[int, MigInstance]]
) -> Iterator[Share]:
    cores = workload.resources.cpu_cores
    for container in containers(workload):
        if workload.partition is None:
            gpus = tuple(next(whole) for _ in range(workload.gpus_per_node))
            yield Share(container=container, gpus=gpus, cores=cores)
        else:  # the plan has cut enough of them
            place = next(i for i, (_, m) in enumerate(free) if m.profile == workload.partition)
            number, instance = free.pop(place)
            yield Share(container=container, gpus=(number,), instance=instance, cores=cores)


def layouts(pool: NodePool) -> Iterator[tuple[int, tuple[MigInstance, ...]]]:
    """Each GPU that is cut, with its instances in the order of their creation."""
    for layout in pool.layouts:
        for cut in layout.gpus:
            for number in cut.gpus:
                yield number, cut.instances
