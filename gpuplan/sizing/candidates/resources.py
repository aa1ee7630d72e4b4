"""What a replica needs beside its GPUs: cores, memory, shared memory, scratch, and volumes."""

from __future__ import annotations

import math
from typing import Literal

from gpuplan.plan import window
from gpuplan.plan.model import HostResources, Volume
from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.ask.given import Given
from gpuplan.sizing.ask.messages import reduced
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.evidence.formula import Formula, Quantity, constant
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.hardware.locality import Locality
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.units import GIB, format_bytes

Purpose = Literal["models", "dataset", "checkpoints", "home", "requests", "results"]

MOUNTS: dict[Purpose, str] = {
    "models": "/models",
    "dataset": "/data",
    "checkpoints": "/checkpoints",
    "home": "/home/jovyan",
    "requests": "/requests",
    "results": "/results",
}
WANTED_CORES = constant(window.WANTED_CORES, "1", "physical cores a GPU, the middle of 4 to 8")
LEAST_MEMORY = constant(
    window.LEAST_MEMORY_BYTES, "B", "host memory that a GPU should have at least"
)
USUAL_MEMORY = constant(window.USUAL_MEMORY_BYTES, "B", "host memory that a GPU usually has")
PAGE = constant(window.PAGE_BYTES, "B", "size of a huge page")

_CORES = Formula(window.CORES, "1", "what a GPU should have, within its part of the host's cores")
_CORES_ANYWHERE = Formula(
    window.CORES_ANYWHERE, "1", "what a GPU should have; the host's cores are not known"
)
_MEMORY = Formula(
    window.MEMORY, "B", "as much as the GPU has, within its part of the host's memory"
)
_MEMORY_ANYWHERE = Formula(
    window.MEMORY_ANYWHERE, "B", "as much as the GPU has; the host's memory is not known"
)
_ALL_CORES = Formula(window.ALL_CORES, "1", "the devices of one node's part of a replica")
_ALL_MEMORY = Formula(window.ALL_MEMORY, "B", "the devices of one node's part of a replica")
_SHARED = Formula(
    "floor(min(16 * gibibyte, memory / 4) / gibibyte) * gibibyte",
    "B",
    "NCCL and data loaders pass buffers through /dev/shm; at most a quarter of the memory",
)
SCRATCH = constant(50 * GIB, "B", "compiled kernels, caches and temporary files")


def planned_cores(demand: Demand, device: Device, wanted: Quantity = WANTED_CORES) -> float:
    """The cores of a device, as `host_resources` gives them."""
    chosen = demand.overrides.cpu_cores_per_gpu
    return chosen.value if chosen else _Share(Settled(demand), device, wanted).cores().value


def host_resources(
    settled: Settled[Demand], device: Device, devices: int, wanted: Quantity = WANTED_CORES
) -> HostResources:
    """For `devices` devices of one replica on one node: what its pod or its guest is given.
    `wanted`: cores that a GPU should have."""
    ledger, share = settled.ledger, _Share(settled, device, wanted)
    overrides = settled.demand.overrides
    cores = settled.settle("cpu_cores_per_gpu", share.cores(), overrides.cpu_cores_per_gpu)
    memory = settled.settle("host_memory_per_gpu", share.memory(), overrides.host_memory_per_gpu)
    least = LEAST_MEMORY.value / device.per_gpu
    settled.hold(
        overrides.host_memory_per_gpu,
        f"{format_bytes(least)} of host memory a GPU, or its part of one, are the least; with less "
        "the kernel may kill it while weights load",
        works=True,
        wise=memory.value >= least,
    )
    count = ledger.given("gpus_per_replica_node", constant(devices, "1", "layout of a replica"))
    total = ledger.derive("cpu_cores", _ALL_CORES, cores_per_device=cores, devices=count)
    total_memory = ledger.derive(
        "host_memory_bytes", _ALL_MEMORY, memory_per_device=memory, page=PAGE, devices=count
    )
    shared = settled.settle(
        "shared_memory_bytes",
        ledger.derive("shared_memory_bytes", _SHARED, memory=total_memory),
        overrides.shared_memory,
    )
    why = f"it is part of the memory of a pod, which is {format_bytes(total_memory.value)}"
    settled.hold(overrides.shared_memory, why, works=shared.value <= total_memory.value)
    scratch = settled.settle(
        "scratch_bytes", ledger.given("scratch_bytes", SCRATCH), overrides.scratch
    )
    return HostResources(
        cpu_cores=int(total),
        host_memory_bytes=int(total_memory),
        shared_memory_bytes=int(shared),
        scratch_bytes=int(scratch),
    )


class _Share:
    """What one device has of the host: the least that it can have anywhere it may stand."""

    def __init__(self, settled: Settled[Demand], device: Device, wanted: Quantity) -> None:
        self.wanted = wanted
        self.settled, self.device, self.ledger = settled, device, settled.ledger
        self.overrides = settled.demand.overrides
        self.per_gpu = constant(device.per_gpu, "1", "devices that share a GPU")
        self.localities = localities_of(device.offer)

    def cores(self) -> Quantity:
        """Of a guest that gets fewer than it should, why is said."""
        wanted = {"wanted_cores": self.wanted, "per_gpu": self.per_gpu}
        scarcest = min(self.localities, key=_cores_per_gpu)
        part = scarcest.core_part(self.ledger, "cores_for_a_gpu")
        if part is None:
            return self.ledger.derive("cpu_cores_per_gpu", _CORES_ANYWHERE, **wanted)
        made = self.ledger.derive("cpu_cores_per_gpu", _CORES, cores_for_a_gpu=part, **wanted)
        if self.device.per_gpu == 1 and made.value < window.LEAST_CORES:
            usual = f"{window.LEAST_CORES} to {window.MOST_CORES} cores per GPU"
            self._reduced(self.overrides.cpu_cores_per_gpu, f"{made.value:g}", usual, scarcest)
        return made

    def memory(self) -> Quantity:
        fact = self.device.offer.gpu.memory_bytes
        wanted = {
            "usual_memory": USUAL_MEMORY,
            "gpu_memory": Quantity(fact.value, "B", fact.source),
            "per_gpu": self.per_gpu,
            "page": PAGE,
        }
        scarcest = min(self.localities, key=_free_pages_per_gpu)
        part = scarcest.memory_part(self.ledger, "memory_for_a_gpu", "kept_memory_bytes")
        if part is None:
            return self.ledger.derive("host_memory_per_gpu", _MEMORY_ANYWHERE, **wanted)
        made = self.ledger.derive(
            "host_memory_per_gpu",
            _MEMORY,
            least_memory=LEAST_MEMORY,
            memory_for_a_gpu=part,
            guest_overhead=scarcest.overhead,
            **wanted,
        )
        usual = _MEMORY_ANYWHERE(**{name: quantity.value for name, quantity in wanted.items()})
        if made.value < usual:
            text = f"{format_bytes(usual)} of memory per GPU"
            self._reduced(
                self.overrides.host_memory_per_gpu, format_bytes(made.value), text, scarcest
            )
        return made

    def _reduced(self, chosen: Given | None, given: str, wanted: str, where: Locality) -> None:
        """A guest's part of a NUMA node; a pod may have cores and memory of another one."""
        demand = self.settled.demand
        if where.guests and chosen is None:
            because = f"that is its part of {where.name}"
            problem = reduced(f"'{demand.name}'", given, wanted, because, demand.origin)
            self.settled.problems.append(problem)


def _cores_per_gpu(locality: Locality) -> float:
    return math.inf if locality.cores is None else locality.free_cores / locality.gpus


def _free_pages_per_gpu(locality: Locality) -> float:
    return math.inf if locality.memory_bytes is None else locality.free_pages / locality.gpus


def localities_of(offer: GpuOffer) -> tuple[Locality, ...]:
    """Those that the offer names; else its whole node, of which a pod gets its part."""
    whole = Locality(
        name="the node",
        gpus=offer.gpus_per_node,
        cores=offer.cpu_cores_per_node,
        memory_bytes=offer.memory_bytes_per_node,
        numa_nodes=offer.numa_nodes,
        source=f"platform: {offer.node_type or 'node'}",
    )
    return offer.localities or (whole,)


def volume(site: Site, purpose: Purpose, size: Quantity, *, shared: bool) -> Volume:
    """One for all. `shared` counts where the storage class does not say whether several nodes mount
    its volumes."""
    several = shared if site.storage_shared is None else site.storage_shared
    return _volume(site, purpose, size, several=several, per_replica=False)


def own_volume(site: Site, purpose: Purpose, size: Quantity) -> Volume:
    """One for each replica."""
    return _volume(site, purpose, size, several=False, per_replica=True)


def _volume(
    site: Site, purpose: Purpose, size: Quantity, *, several: bool, per_replica: bool
) -> Volume:
    return Volume(
        name=purpose,
        size_bytes=int(size),
        storage_class=site.storage_class,
        shared=several,
        per_replica=per_replica,
        mount_path=MOUNTS[purpose],
        purpose=purpose,
    )


def models_volume(site: Site, size: Quantity, replicas: int) -> Volume:
    """The weights of a service: one volume for all replicas, or one each where the storage class
    has none that several nodes mount."""
    if site.storage_shared is False:
        return own_volume(site, "models", size)
    return volume(site, "models", size, shared=replicas > 1)
