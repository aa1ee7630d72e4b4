"""An inventory's hosts as the packer takes them: what workloads may have of each NUMA node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from gpuplan.catalog.load import Catalog
from gpuplan.catalog.model import Gpu
from gpuplan.diagnostics import Diagnostic
from gpuplan.fleet import messages
from gpuplan.fleet.gpu_sets import gpu_sets
from gpuplan.fleet.host_sharing import host_sharing
from gpuplan.fleet.problem import Card, HostType, NumaCapacity
from gpuplan.frozen import record
from gpuplan.inventory.v1 import GpuSpec, HostSpec, Inventory, NicSpec, NumaNodeSpec
from gpuplan.placement.problems import missing_fact
from gpuplan.plan import window
from gpuplan.resolve.messages import mixed_host
from gpuplan.sharing.modes import HostSharing
from gpuplan.sizing.hardware.locality import localities
from gpuplan.source import Origin
from gpuplan.units import MICROS


@record
class Hosts:
    """`stand_ins` are the GPU types that are priced as the catalogue lists them; `sharing` says of
    each type how some of its hosts share it, and where the first of them stands."""

    types: tuple[HostType, ...] = ()
    sharing: tuple[tuple[str, HostSharing, Origin | None], ...] = ()
    stand_ins: tuple[str, ...] = ()
    problems: tuple[Diagnostic, ...] = ()


def hosts(inventory: Inventory, document: str, catalog: Catalog) -> Hosts:
    """The host types of `inventory`: entries that differ in nothing but their names are one; hosts
    without GPUs are none. GPU types are known to the catalogue."""
    types: list[HostType] = []
    sharing: dict[tuple[str, HostSharing], Origin] = {}
    listed: set[str] = set()
    problems: list[Diagnostic] = []
    for number, spec in enumerate(inventory.hosts):
        at = Origin(document, ("hosts", number))
        if not spec.gpus:
            continue
        gpu = catalog.gpu(spec.gpus[0].type)
        assert gpu is not None, "names were checked"
        missing = [*_missing(spec, at)]
        cost = _cost(spec, gpu, catalog)
        if cost is None:
            names = f"{spec.names[0]}…" if len(spec.names) > 1 else spec.names[0]
            missing.append(messages.no_price(names, gpu.identifier, at.child("names")))
        problems += missing
        if missing or cost is None:
            continue
        if spec.price is None:
            listed.add(gpu.identifier)
        kind, notes = _host_type(spec, gpu, cost, at)
        way, more = host_sharing(spec, gpu, at)
        problems += [*notes, *more]
        types.append(kind)
        sharing.setdefault((gpu.identifier, way), at)
    return Hosts(
        types=tuple(named(merged(types))),
        sharing=tuple((name, way, at) for (name, way), at in sharing.items()),
        stand_ins=tuple(sorted(listed)),
        problems=tuple(problems),
    )


def _missing(spec: HostSpec, at: Origin) -> Iterator[Diagnostic]:
    types = tuple(dict.fromkeys(g.type for g in spec.gpus))
    if len(types) > 1:
        yield mixed_host(types, at.child("gpus"))
    for number, node in enumerate(spec.numa_nodes):
        if node.memory is None:
            place = at.child("numa_nodes", number)
            yield missing_fact("'memory'", "packing", place, "add 'memory' (see `numactl -H`)")
    if spec.numa_nodes:
        return
    for field, value in (("cpu_cores", spec.cpu_cores), ("memory", spec.memory)):
        if value is None:
            yield missing_fact(
                f"'{field}'", "packing", at.child("names"), f"add '{field}', or 'numa_nodes'"
            )


def _cost(spec: HostSpec, gpu: Gpu, catalog: Catalog) -> int | None:
    """Micro-USD per hour of a host: its price, else what the catalogue lists for its GPUs."""
    if spec.price is not None:
        return micro_usd(spec.price)
    listed = catalog.price(gpu.identifier)
    count = sum(g.count or 1 for g in spec.gpus)
    return None if listed is None else micro_usd(listed.usd_per_hour * count)


def micro_usd(usd: Decimal) -> int:
    return int((usd * MICROS).to_integral_value())


def _host_type(
    spec: HostSpec, gpu: Gpu, cost: int, at: Origin
) -> tuple[HostType, tuple[Diagnostic, ...]]:
    gpus = [g for g in spec.gpus for _ in range(g.count or 1)]
    notes: list[Diagnostic] = []
    unplaced = _unplaced(spec, at)
    notes += [unplaced] if unplaced else []
    described = _as_one(spec) if unplaced or not spec.numa_nodes else spec
    nodes = tuple(_nodes(described, gpus, at))
    sets = gpu_sets(spec, gpu, gpus, nodes, at)
    notes += sets.problems
    if spec.virtualization:
        notes.append(messages.guest(spec.names, spec.virtualization, at.child("virtualization")))
    kind = HostType(
        name=spec.node_type or f"{len(gpus)}x-{gpu.identifier}",
        gpu=gpu.identifier,
        nodes=nodes,
        islands=sets.islands,
        together=sets.together,
        unpassed=sets.unpassed,
        cost=cost,
        available=len(spec.names),
        names=tuple(spec.names),
    )
    return kind, tuple(notes)


def _unplaced(spec: HostSpec, at: Origin) -> Diagnostic | None:
    """The first GPU, or card with functions, of which the NUMA node is unknown."""
    if len(spec.numa_nodes) < 2:
        return None
    for number, gpu in enumerate(spec.gpus):
        if gpu.numa_node is None:
            return messages.one_node("the NUMA node of a GPU", at.child("gpus", number))
    for number, nic in enumerate(spec.nics):
        if nic.numa_node is None and _functions(nic):
            return messages.one_node("the NUMA node of a card", at.child("nics", number))
    return None


def _as_one(spec: HostSpec) -> HostSpec:
    """The host with one NUMA node, which has all its cores and memory."""
    cpus = ",".join(n.cpus for n in spec.numa_nodes if n.cpus)
    if not cpus and spec.cpu_cores:
        cpus = f"0-{spec.cpu_cores * spec.threads_per_core - 1}"
    memory = sum(n.memory for n in spec.numa_nodes if n.memory) or spec.memory
    node = NumaNodeSpec.model_construct(cpus=cpus or None, siblings="split", memory=memory)
    return spec.model_copy(update={"numa_nodes": [node]})


def _nodes(spec: HostSpec, gpus: Sequence[GpuSpec], at: Origin) -> Iterator[NumaCapacity]:
    """What is left of each node after the host's reserve, in whole huge pages."""
    single = len(spec.numa_nodes) == 1
    for number, locality in enumerate(localities(spec, at, guests=spec.hypervisor is not None)):
        yield NumaCapacity(
            gpus=tuple(i for i, g in enumerate(gpus) if single or g.numa_node == number),
            cores=locality.free_cores,
            memory_bytes=locality.free_pages * window.PAGE_BYTES,
            cards=tuple(
                Card(functions=_functions(nic), gpus=_on_switch(nic, gpus))
                for nic in spec.nics
                if _functions(nic) and (single or nic.numa_node == number)
            ),
        )


def _functions(nic: NicSpec) -> int:
    listed = nic.virtual_functions
    return listed if isinstance(listed, int) else len(listed)


def _on_switch(nic: NicSpec, gpus: Sequence[GpuSpec]) -> tuple[int, ...]:
    if nic.switch is None:
        return ()
    return tuple(i for i, g in enumerate(gpus) if g.switch == nic.switch)


def merged(types: Sequence[HostType]) -> list[HostType]:
    """Types that differ in nothing but their hosts as one."""
    kinds: dict[HostType, HostType] = {}
    for kind in types:
        key = replace(kind, available=None, names=())
        first = kinds.get(key)
        kinds[key] = kind if first is None else _both(first, kind)
    return list(kinds.values())


def _both(first: HostType, second: HostType) -> HostType:
    known = first.available is not None and second.available is not None
    total = (first.available or 0) + (second.available or 0)
    return replace(first, available=total if known else None, names=(*first.names, *second.names))


def named(types: Sequence[HostType]) -> Iterator[HostType]:
    """Each type under a name of its own: the second `dgx-h100` is `dgx-h100-2`."""
    seen: dict[str, int] = {}
    for kind in types:
        seen[kind.name] = seen.get(kind.name, 0) + 1
        number = seen[kind.name]
        yield kind if number == 1 else replace(kind, name=f"{kind.name}-{number}")
