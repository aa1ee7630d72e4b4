"""Which of a host's GPUs go together: partitions of its board, what NVLink joins, IOMMU groups."""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.catalog.model import Gpu
from gpuplan.diagnostics import Diagnostic
from gpuplan.fleet import messages
from gpuplan.fleet.problem import NumaCapacity
from gpuplan.frozen import record
from gpuplan.inventory.v1 import GpuSpec, HostSpec
from gpuplan.placement.boards import unknown_board
from gpuplan.placement.machines.hypervisors import held
from gpuplan.sharing.fabric import fabric_partitions, on_modules, undescribed
from gpuplan.sharing.groups import Group, group, kept
from gpuplan.sharing.islands import GpuSet, best_sets, joined, partly_joined
from gpuplan.source import Origin


@record
class GpuSets:
    """By the numbers of the host's GPUs; what each is, `HostType` says."""

    islands: tuple[GpuSet, ...]
    together: tuple[GpuSet, ...]
    unpassed: GpuSet
    problems: tuple[Diagnostic, ...]


def gpu_sets(
    spec: HostSpec, gpu: Gpu, gpus: Sequence[GpuSpec], nodes: Sequence[NumaCapacity], at: Origin
) -> GpuSets:
    """Those of a host of `gpus`, one by one, of which `nodes` have the numbers."""
    together, unpassed = _groups(spec, gpus)
    problems = [*held(spec, at)] if unpassed else []
    islands, unchecked = _partitions(spec, gpu, gpus, at)
    problems += unchecked
    links = joined(spec)
    if not islands and partly_joined(len(gpus), links):
        passed = [tuple(g for g in n.gpus if g not in unpassed) for n in nodes]
        sets = best_sets(links, passed, together)
        islands = tuple(s for s in sets if gpu.is_card or links.keys() >= set(s))
        problems.append(messages.partly_joined(spec.names, at.child("links", 0)))
    return GpuSets(islands=islands, together=together, unpassed=unpassed, problems=tuple(problems))


def _partitions(
    spec: HostSpec, gpu: Gpu, gpus: Sequence[GpuSpec], at: Origin
) -> tuple[tuple[GpuSet, ...], tuple[Diagnostic, ...]]:
    """On a hypervisor, the partitions that the fabric manager of an NVSwitch board gives out. Hosts
    without guests see the whole board, and any of its GPUs reach each other."""
    if spec.hypervisor is None:
        return (), ()
    partitions = fabric_partitions(gpu, len(gpus))
    if not partitions:
        unknown = undescribed(gpu) and len(gpus) > 1
        return (), (
            unknown_board(gpu.identifier, "a guest", at.child("gpus", 0)),
        ) if unknown else ()
    modules = {g.module_id: i for i, g in enumerate(gpus)}
    if len(on_modules(partitions, modules)) < len(partitions):
        return (), (messages.no_islands(at.child("gpus", 0)),)
    sets = (tuple(sorted(modules[m] for m in p.modules)) for p in partitions)
    return tuple(s for s in sets if len(s) > 1), ()


def _groups(spec: HostSpec, gpus: Sequence[GpuSpec]) -> tuple[tuple[GpuSet, ...], GpuSet]:
    """GPUs that go to one guest together, and those that go to none: the host keeps something in
    their group. Containers share out all of them."""
    groups: dict[Group, list[int]] = {}
    for number, gpu in enumerate(gpus if spec.hypervisor else ()):
        if (own := group(gpu)) is not None:
            groups.setdefault(own, []).append(number)
    none = kept(spec)
    together = (tuple(g) for own, g in groups.items() if len(g) > 1 and own not in none)
    return tuple(together), tuple(n for own, g in groups.items() if own in none for n in g)
