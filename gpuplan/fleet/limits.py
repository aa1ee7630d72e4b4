"""What is more than the packer packs: said before any work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.diagnostics import Diagnostic
from gpuplan.fleet import messages
from gpuplan.fleet.problem import HostType, Request
from gpuplan.fleet.solver.chassis import Chassis

MOST_ITEMS = 200_000  # to pack; a few seconds and 300 MiB
MOST_DIVISIONS = 20_000  # of a workload's GPUs between a host's NUMA nodes


def beyond(requests: Sequence[Request], hosts: Sequence[HostType]) -> Iterator[Diagnostic]:
    """Too many items, or workloads with too many ways to stand on a host."""
    items = sum(r.count + r.growth for r in requests)
    if items > MOST_ITEMS:
        largest = max(requests, key=lambda r: r.count + r.growth)
        yield messages.too_many_items(items, MOST_ITEMS, largest.name, largest.origin)
        return
    wanted: dict[tuple[str, int], Request] = {}
    for request in requests:
        for option in request.options:
            wanted.setdefault((option.gpu, option.gpus), request)
    for kind in hosts:
        chassis = Chassis(0, kind)
        for (gpu, gpus), request in wanted.items():
            fits = gpu == kind.gpu and 1 < gpus <= chassis.gpus
            if fits and chassis.ways(gpus) > MOST_DIVISIONS:
                yield messages.too_many_divisions(request.name, gpus, kind.name, request.origin)
                break
