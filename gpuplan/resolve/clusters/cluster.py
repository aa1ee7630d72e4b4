"""The machines of a cluster whose scheduler lists them all, from the inventory.

Cores are counted over a machine socket by socket, as Slurm counts them, whatever the kernel's
numbers of their threads are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpuplan.catalog.load import Catalog
from gpuplan.diagnostics import Diagnostic, error
from gpuplan.inventory.cores import cores
from gpuplan.manifest.v1 import FabricSpec, Platform
from gpuplan.plan import window
from gpuplan.plan.outside.cluster import Cluster, GpuCores, GpuLinks, Machine, Reservation
from gpuplan.resolve.clusters.switches import switch_problems, switches
from gpuplan.sharing.islands import joined, nvlinks, partly_joined
from gpuplan.source import Origin
from gpuplan.targets import TARGETS

if TYPE_CHECKING:
    from gpuplan.inventory.v1 import HostSpec, Inventory

LINKS = {"infiniband": "infiniband", "roce": "ethernet"}  # of cards that RDMA goes over


def cluster(
    platform: Platform, at: Origin, inventory: Inventory | None, document: str, catalog: Catalog
) -> tuple[Cluster | None, list[Diagnostic]]:
    """The cluster of a target that lists machines, or every problem it has. `at` is the
    platform's place. Without an inventory none, which placement says."""
    spec, problems = platform.slurm, []
    if not TARGETS[platform.target].lists_machines:
        return None, []
    if spec is None:
        problems.append(no_cluster(platform.target, at))
    if inventory is None:
        return None, problems
    machines = []
    for number, host in enumerate(inventory.hosts):
        if not host.names:  # all are other stacks', or nobody can plan them
            continue
        here = Origin(document, ("hosts", number))
        faults = list(_problems(host, here))
        problems += faults
        if not faults:
            machines.append(_machine(host, here, catalog, platform.fabric))
    problems += switch_problems(inventory, document)
    if problems or spec is None:
        return None, problems
    return Cluster(
        controller=spec.controller,
        database=spec.database or spec.controller,
        storage=spec.storage,
        containers=spec.containers,
        machines=tuple(machines),
        reservations=tuple(
            Reservation(workload=r.workload, start=r.start, seconds=r.duration)
            for r in spec.reservations
        ),
        switches=switches(inventory, [n for m in machines for n in m.names]),
    ), []


def no_cluster(target: str, at: Origin) -> Diagnostic:
    return error(
        "GP012",
        f"target '{target}' needs to know its cluster",
        at,
        label="no 'slurm'",
        help="write platform.slurm: {controller: HOST, storage: /FOLDER, containers: pyxis}",
    )


def _problems(host: HostSpec, at: Origin) -> Iterator[Diagnostic]:
    name = host.names[0]
    lacking = [
        fact
        for fact, value in (
            ("'sockets'", host.sockets),
            ("cores ('cpu_cores', or 'cpus' of 'numa_nodes')", _cores(host)),
            ("memory", _memory(host)),
        )
        if not value
    ]
    if lacking:
        yield error(
            "GP012",
            f"{', '.join(lacking)} of {name} is not stated",
            at,
            label="needed for its line in slurm.conf",
            help="state it, as `lscpu` and `free -b` print it on the host",
        )
    elif host.sockets and _cores(host) % host.sockets:
        yield error(
            "GP004",
            f"{name} has {_cores(host)} cores on {host.sockets} sockets, which is no whole number",
            at.child("sockets"),
            help="state the sockets and the physical cores as `lscpu` prints them",
        )
    for place, other in enumerate(host.names):
        if other in ("default", "localhost"):
            yield error(
                "GP004",
                f"a node of Slurm cannot be called '{other}'",
                at.child("names", place),
                help="state the host's own name",
            )


def _machine(host: HostSpec, at: Origin, catalog: Catalog, fabric: FabricSpec | None) -> Machine:
    known = catalog.gpu(host.gpus[0].type) if host.gpus else None
    count, memory = _cores(host), _memory(host) or 0
    gpus = sum(g.count or 1 for g in host.gpus)
    kept = window.KEPT_CORES * max(1, sum(n.cpus is not None for n in host.numa_nodes))
    free = max(count - kept, min(count, gpus))  # as pools are filled
    return Machine(
        names=tuple(host.names),
        node_type=host.node_type,
        gpu=host.gpus[0].type if host.gpus else "",
        gpu_product=(known.product or "") if known else "",
        gpus=gpus,
        sockets=host.sockets or 1,
        cores=count,
        threads_per_core=host.threads_per_core,
        memory_bytes=memory,
        kept_cores=count - free,
        kept_memory_bytes=memory - _whole_pages(memory * (1 - window.KEPT_BY_KUBELET_FRACTION)),
        gpu_cores=tuple(_gpu_cores(host)),
        gpu_links=_gpu_links(host, gpus),
        nvlink_domain=host.nvlink_domain,
        adapters=_adapters(host, fabric),
        time_slices=host.time_slices,
        origin=at,
    )


def _adapters(host: HostSpec, fabric: FabricSpec | None) -> tuple[str, ...]:
    """Those of the fabric's kind; none where one of them has no name."""
    link = LINKS.get(fabric.kind) if fabric else None
    cards = [n for n in host.nics if link and n.link in (link, None)]
    names = [n.name for n in cards]
    return tuple(n for n in names if n) if cards and all(names) else ()


def _whole_pages(size_bytes: float) -> int:
    return int(size_bytes // window.PAGE_BYTES) * window.PAGE_BYTES


def _cores(host: HostSpec) -> int:
    return host.cpu_cores or sum(len(cores(n, host.threads_per_core)) for n in host.numa_nodes)


def _memory(host: HostSpec) -> int | None:
    sizes = [node.memory for node in host.numa_nodes]
    return host.memory or (sum(s or 0 for s in sizes) if sizes and all(sizes) else None)


def _gpu_links(host: HostSpec, gpus: int) -> tuple[GpuLinks, ...]:
    if not partly_joined(gpus, joined(host)):
        return ()
    pairs = sorted(nvlinks(host).items())
    return tuple(GpuLinks(first=a, second=b, links=n) for (a, b), n in pairs)


def _gpu_cores(host: HostSpec) -> Iterator[GpuCores]:
    """GPUs that follow one another on one NUMA node; nothing where one has none."""
    if not host.numa_nodes or any(g.numa_node is None for g in host.gpus):
        return
    ranges, first = [], 0
    for node in host.numa_nodes:
        count = len(cores(node, host.threads_per_core))
        ranges.append((first, first + count - 1))
        first += count
    if first != _cores(host):
        return
    nodes = [g.numa_node for g in host.gpus for _ in range(g.count or 1)]
    begin = 0
    for number in range(1, len(nodes) + 1):
        if number == len(nodes) or nodes[number] != nodes[begin]:
            place = nodes[begin] or 0
            if place < len(ranges) and ranges[place][1] >= ranges[place][0]:
                low, high = ranges[place]
                yield GpuCores(first=begin, last=number - 1, first_core=low, last_core=high)
            begin = number
