"""What a replica needs beside its GPUs: cores, memory, shared memory, scratch, and volumes."""

from __future__ import annotations

from typing import Literal

from gpuplan.plan.model import HostResources, Volume
from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.evidence.formula import Formula, Ledger, Quantity, constant
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.units import GIB, format_bytes

Purpose = Literal["models", "dataset", "checkpoints", "home"]

MOUNTS: dict[Purpose, str] = {
    "models": "/models",
    "dataset": "/data",
    "checkpoints": "/checkpoints",
    "home": "/home/jovyan",
}
WANTED_CORES = constant(6, "1", "physical cores a GPU, the middle of 4 to 8")
LEAST_MEMORY = constant(16e9, "B", "host memory that a GPU should have at least")
USUAL_MEMORY = constant(32e9, "B", "host memory that a GPU usually has")
KEPT_CORES = constant(2, "1", "cores a NUMA node for the system and the kubelet or hypervisor")

_CORES = Formula(
    "max(1, floor(min(wanted_cores, floor((cores_per_node - kept_cores * numa_nodes) "
    "/ gpus_per_node)) / per_gpu))",
    "1",
    "what a GPU should have, within its share of the node",
)
_CORES_UNKNOWN = Formula(
    "max(1, floor(wanted_cores / per_gpu))", "1", "what a GPU should have; the node is not known"
)
_MEMORY = Formula(
    "floor(max(least_memory, min(max(usual_memory, gpu_memory), 0.9 * memory_per_node "
    "/ gpus_per_node)) / per_gpu / gibibyte) * gibibyte",
    "B",
    "as much as the GPU has, within 90 % of its share of the node",
)
_MEMORY_UNKNOWN = Formula(
    "floor(max(usual_memory, gpu_memory) / per_gpu / gibibyte) * gibibyte",
    "B",
    "as much as the GPU has; the node is not known",
)
_TIMES = Formula("per_device * devices", "1", "the devices of one node's part of a replica")
_TOTAL = Formula("per_device * devices", "B", "the devices of one node's part of a replica")
_SHARED = Formula(
    "floor(min(16 * gibibyte, memory / 4) / gibibyte) * gibibyte",
    "B",
    "NCCL and data loaders pass buffers through /dev/shm; at most a quarter of the memory",
)
SCRATCH = constant(50 * GIB, "B", "compiled kernels, caches and temporary files")


def host_resources(settled: Settled[Demand], device: Device, devices: int) -> HostResources:
    """For `devices` devices of one replica on one node."""
    ledger, overrides = settled.ledger, settled.demand.overrides
    scope = _scope(ledger, device)
    cores = settled.settle(
        "cpu_cores_per_gpu", _cores(ledger, device.offer, scope), overrides.cpu_cores_per_gpu
    )
    memory = settled.settle(
        "host_memory_per_gpu", _memory(ledger, device.offer, scope), overrides.memory_per_gpu
    )
    least = LEAST_MEMORY.value / device.per_gpu
    settled.hold(
        overrides.memory_per_gpu,
        f"{format_bytes(least)} of host memory a GPU, or its part of one, are the least; with less "
        "the kernel may kill it while weights load",
        works=True,
        wise=memory.value >= least,
    )
    count = ledger.given("gpus_per_replica_node", constant(devices, "1", "layout of a replica"))
    total = ledger.derive("cpu_cores", _TIMES, per_device=cores, devices=count)
    total_memory = ledger.derive("host_memory_bytes", _TOTAL, per_device=memory, devices=count)
    shared = settled.settle(
        "shared_memory_bytes",
        ledger.derive("shared_memory_bytes", _SHARED, memory=total_memory),
        overrides.shared_memory,
    )
    why = f"it is part of the memory of a pod, which is {format_bytes(total_memory.value)}"
    settled.hold(overrides.shared_memory, why, works=shared.value <= total_memory.value)
    scratch = ledger.given("scratch_bytes", SCRATCH)
    return HostResources(
        cpu_cores=int(total),
        memory_bytes=int(total_memory),
        shared_memory_bytes=int(shared),
        scratch_bytes=int(scratch),
    )


def _scope(ledger: Ledger, device: Device) -> dict[str, Quantity]:
    offer, where = device.offer, f"platform: {device.offer.node_type or 'node'}"
    facts = {
        "gpus_per_node": (offer.gpus_per_node, "1", where),
        "cores_per_node": (offer.cpu_cores_per_node, "1", where),
        "memory_per_node": (offer.memory_bytes_per_node, "B", where),
        "numa_nodes": (offer.numa_nodes, "1", where)
        if offer.numa_nodes
        else (1, "1", "default: one NUMA node, where the platform names none"),
    }
    scope = {
        name: ledger.given(name, Quantity(float(value), unit, source))
        for name, (value, unit, source) in facts.items()
        if value is not None
    }
    return scope | {
        "per_gpu": constant(device.per_gpu, "1", "devices that share a GPU"),
        "gpu_memory": Quantity(offer.gpu.memory_bytes.value, "B", offer.gpu.memory_bytes.source),
        "wanted_cores": WANTED_CORES,
        "kept_cores": KEPT_CORES,
        "least_memory": LEAST_MEMORY,
        "usual_memory": USUAL_MEMORY,
    }


def _cores(ledger: Ledger, offer: GpuOffer, scope: dict[str, Quantity]) -> Quantity:
    formula = _CORES_UNKNOWN if offer.cpu_cores_per_node is None else _CORES
    return ledger.derive(
        "cpu_cores_per_gpu", formula, **{n: scope[n] for n in formula.names if n in scope}
    )


def _memory(ledger: Ledger, offer: GpuOffer, scope: dict[str, Quantity]) -> Quantity:
    formula = _MEMORY_UNKNOWN if offer.memory_bytes_per_node is None else _MEMORY
    return ledger.derive(
        "host_memory_per_gpu", formula, **{n: scope[n] for n in formula.names if n in scope}
    )


def volume(site: Site, purpose: Purpose, size: Quantity, *, shared: bool) -> Volume:
    return Volume(
        name=purpose,
        size_bytes=int(size),
        storage_class=site.storage_class,
        shared=shared if site.storage_shared is None else site.storage_shared,
        mount_path=MOUNTS[purpose],
        purpose=purpose,
    )
