"""Manifests → the packer's requests: each workload sized as `compile` sizes it.

A workload keeps the layout that the search chose (devices of a replica, replicas); every other GPU
type or partition that serves it with as many replicas is another way to hold it. What growth adds
is room that is kept, not replicas that run now.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

from gpuplan.diagnostics import Diagnostic
from gpuplan.fleet.options import held_by
from gpuplan.fleet.problem import Option, Request
from gpuplan.frozen import record
from gpuplan.plan import window
from gpuplan.plan.isolation import neighbours
from gpuplan.plan.model import Workload
from gpuplan.plan.partitions import PartitionName
from gpuplan.sizing.ask.demand import GROWING, Demand
from gpuplan.sizing.ask.given import mapped
from gpuplan.sizing.candidates.choose import Candidate, best
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.decide.size import Search, finish, search
from gpuplan.sizing.decide.without import with_number
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.hardware.offers import Site
from gpuplan.targets import TARGETS


@record
class Holding:
    """How a workload is held: `replicas` of `nodes` items each; `growth` more run only later."""

    options: tuple[Option, ...]
    replicas: int
    growth: int
    nodes: int


class Sizer:
    """Sizes workloads of one site; equal ones, but for their names, once."""

    def __init__(self, site: Site, uncounted: frozenset[str] = frozenset()) -> None:
        """`uncounted` are GPU types with hosts whose network cards are not described."""
        self.site, self.uncounted = site, uncounted
        self._known: dict[object, Holding | tuple[Diagnostic, ...]] = {}

    def __call__(self, demand: Demand) -> Holding | tuple[Diagnostic, ...]:
        key = _key(demand)
        if key not in self._known:
            self._known[key] = self._holding(demand)
        return self._known[key]

    def _holding(self, demand: Demand) -> Holding | tuple[Diagnostic, ...]:
        tried = search(demand, self.site)
        if not isinstance(tried, Search):
            return tried
        winner = best(tried.allowed)
        assert winner is not None, "a search without a feasible candidate is a diagnostic"
        sized = self._sized(tried, winner)
        if not isinstance(sized, Sized):
            return sized
        work, today = sized.workload, _today(demand)
        now = winner.replicas if today is None else self._now(today, winner)
        return Holding(
            options=tuple(self._options(tried, work)),
            replicas=now,
            growth=work.replicas - now,
            nodes=work.nodes_per_replica,
        )

    def _sized(self, tried: Search, candidate: Candidate) -> Sized | tuple[Diagnostic, ...]:
        return finish(tried, self.site, candidate, ())

    def _now(self, demand: Demand, winner: Candidate) -> int:
        """Replicas of the same layout that the load of `demand` needs."""
        tried = search(demand, self.site)
        same = [
            c.replicas
            for c in (tried.allowed if isinstance(tried, Search) else ())
            if c.feasible and c.device.pool == winner.device.pool and c.gpus == winner.gpus
        ]
        return min([*same, winner.replicas])

    def _options(self, tried: Search, chosen: Workload) -> Iterator[Option]:
        """Of each device its smallest layout with the chosen replicas and nodes, smallest first;
        of shapes that may be bought on the smallest, which has least beside its GPUs."""
        smallest: dict[tuple[str, PartitionName | None], Candidate] = {}
        for candidate in tried.allowed:
            device = (candidate.device.gpu.identifier, candidate.device.partition)
            fits = candidate.feasible and candidate.replicas == chosen.replicas
            if fits and (device not in smallest or _layout(candidate) < _layout(smallest[device])):
                smallest[device] = candidate
        ways: dict[Option, None] = {}
        for candidate in sorted(smallest.values(), key=_size):
            sized = self._sized(tried, candidate)
            if isinstance(sized, Sized) and sized.workload.nodes_per_replica == (
                chosen.nodes_per_replica
            ):
                ways[self._option(sized.workload, candidate.device)] = None
        yield from ways

    def _option(self, work: Workload, device: Device) -> Option:
        """One node's part of a replica. A guest needs memory beside its own; the part of a replica
        that lies on several hosts needs a network function a GPU."""
        guest = TARGETS[self.site.target].virtual_machines
        mode, part = held_by(device.share, device.gpu) if device.share else (None, None)
        between = self.site.fabric is not None and work.nodes_per_replica > 1
        counted = guest or work.gpu not in self.uncounted
        return Option(
            gpu=work.gpu,
            gpus=0 if part else work.gpus_per_node,
            mode=mode,
            part=part,
            cores=work.resources.cpu_cores,
            memory_bytes=work.resources.host_memory_bytes + window.GUEST_OVERHEAD_BYTES * guest,
            functions=work.gpus_per_node if between and counted else 0,
        )


def _layout(candidate: Candidate) -> tuple[int, int]:
    offer = candidate.device.offer
    return candidate.gpus, offer.gpus_per_node if offer.shape else 0


def _today(demand: Demand) -> Demand | None:
    """The same before it grows; None where it does not."""
    growth = demand.growth if isinstance(demand, GROWING) else None
    if growth is None or growth.factor.value <= 1:
        return None
    return with_number(demand, growth.factor.field.path, 1.0, "today's load")


_NAMES = ("name", "description", "tenant", "renamed_from", "origin", "anchors")


def _key(demand: Demand) -> object:
    """Everything but names, the place and where numbers come from."""
    plain = mapped(demand, lambda number: replace(number, source="", replaced=None))
    values = [(f.name, getattr(plain, f.name)) for f in fields(plain) if f.name not in _NAMES]
    return (demand.kind, repr(values), id(demand.anchors))


def _size(candidate: Candidate) -> tuple[float, float, str, str]:
    device = candidate.device
    share = candidate.gpus / device.per_gpu
    return (share, device.memory_bytes.value, device.gpu.identifier, device.partition or "")


def requests_of(stack: str, demand: Demand, holding: Holding, *, spread: bool) -> Iterator[Request]:
    """One request of a workload; where a replica lies on several hosts, one of each replica."""
    name = f"{stack}/{demand.name}"
    common = Request(
        name=name,
        count=holding.replicas,
        options=holding.options,
        tenant=demand.tenant,
        isolation=neighbours(demand.isolation),
        spread=name if spread and holding.replicas > 1 else None,
        growth=holding.growth,
        origin=demand.origin,
    )
    if holding.nodes == 1:
        yield common
        return
    for number in range(holding.replicas + holding.growth):
        replica, later = f"{name}/{number}", number >= holding.replicas
        count, growth = (0, holding.nodes) if later else (holding.nodes, 0)
        yield replace(common, name=replica, count=count, growth=growth, spread=replica)
