"""Rules about what stands beside a GPU: physical cores and host memory.

A node pool is a fixed shape, bought as it is. A virtual machine's shape is gpuplan's own choice, so
it is held to the whole window.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from gpuplan.plan.model import NodePool, Plan, VirtualMachine, by_name, record
from gpuplan.plan.window import bytes_of, cores_of
from gpuplan.policy.api import Finding, Subject
from gpuplan.policy.rules.cost import saving
from gpuplan.policy.rules.memory import device_bytes, devices_per_gpu
from gpuplan.source import Origin
from gpuplan.units import GB, format_bytes


@record
class Shape:
    """What a node or a VM has for its GPUs. `gpus` is a fraction where a VM has vGPUs. `chosen`:
    gpuplan chose the ratio."""

    resource: str
    path: str
    label: str
    gpus: Fraction
    gpu_memory_bytes: int
    cores: int | None
    memory_bytes: int | None
    trains: bool
    chosen: bool
    pool: NodePool
    origin: Origin | None


def shapes(plan: Plan) -> Iterator[Shape]:
    for pool in plan.node_pools:
        tasks = {w.task for w in plan.workloads if w.node_pool == pool.name}
        yield Shape(
            resource=f"node_pool/{pool.name}",
            path=f"node_pools[{pool.name}]",
            label=f"a node of {pool.name}",
            gpus=Fraction(pool.gpus_per_node),
            gpu_memory_bytes=pool.gpus_per_node * pool.gpu_memory_bytes,
            cores=pool.cpu_cores,
            memory_bytes=pool.memory_bytes,
            trains=bool(tasks & {"training", "finetuning"}),
            chosen=False,
            pool=pool,
            origin=pool.origin,
        )
    for machine in plan.virtual_machines:
        if any(d.kind in ("gpu", "vgpu") for d in machine.devices):
            yield _machine_shape(plan, machine)


def _machine_shape(plan: Plan, machine: VirtualMachine) -> Shape:
    workload = by_name(plan.workloads, machine.workload)
    pool = by_name(plan.node_pools, workload.node_pool)
    whole = sum(d.kind == "gpu" for d in machine.devices)
    parts = sum(d.kind == "vgpu" for d in machine.devices)
    per_gpu = devices_per_gpu(plan, workload) if parts else 1
    return Shape(
        resource=f"virtual_machine/{machine.name}",
        path=f"virtual_machines[{machine.name}]",
        label=f"VM {machine.name}",
        gpus=whole + Fraction(parts, per_gpu),
        gpu_memory_bytes=whole * pool.gpu_memory_bytes + parts * device_bytes(plan, workload),
        cores=sum(len(c.pins) for c in machine.cells) // machine.threads_per_core,
        memory_bytes=machine.memory_bytes,
        trains=workload.task in ("training", "finetuning"),
        chosen=True,
        pool=pool,
        origin=machine.origin,
    )


def _cores_finding(shape: Shape, limit: int, level: str | None, remedy: str) -> Finding:
    assert shape.cores is not None
    per_gpu = shape.cores / shape.gpus
    relation = "fewer" if per_gpu < limit else "more"
    cores = "1 physical core" if per_gpu == 1 else f"{float(per_gpu):.3g} physical cores"
    return Finding(
        resource=shape.resource,
        path=f"{shape.path}.{'cells' if shape.chosen else 'cpu_cores'}",
        message=f"{shape.label} has {cores} a GPU, {relation} than {limit}",
        help=remedy,
        requested=float(limit * shape.gpus),
        capacity=shape.cores,
        unit="cores",
        level=level,
        origin=shape.origin,
    )


def few_cores(subject: Subject) -> Iterator[Finding]:
    """Too few physical cores for each GPU.

    Why: tokenising, scheduling, data loading and NCCL's proxy threads run on the CPU; a GPU that
    waits for them is paid for and idle.

    Looks at: physical cores (not threads) for each GPU, of a node in a pool and of a virtual
    machine. A vGPU counts as its share of a GPU, rounded down.

    Threshold: fewer than `minimum` is a warning, fewer than `error_below` an error; for a virtual
    machine, whose shape is ours to choose, fewer than `minimum` is an error. Source: GPU hosts are
    required to have 4 cores a GPU by RunPod and 2 by Vast; training guides ask for 3.5–5.5.

    Fix: another node shape, or more cores for the VM (`overrides.cpu_cores_per_gpu`).

    Silent: when the cores are not known.
    """
    minimum, severe = subject.thresholds["minimum"], subject.thresholds["error_below"]
    for shape in shapes(subject.plan):
        if shape.cores is not None and shape.cores < cores_of(minimum, shape.gpus):
            grave = shape.chosen or shape.cores < cores_of(severe, shape.gpus)
            remedy = "give the VM more cores" if shape.chosen else "choose a shape with more cores"
            yield _cores_finding(shape, minimum, "error" if grave else None, remedy)


def many_cores(subject: Subject) -> Iterator[Finding]:
    """More physical cores for each GPU than it can use.

    Why: cores beside a GPU that cannot feed it any faster are money, and on a hypervisor they are
    taken from the next VM.

    Looks at: physical cores for each GPU, of a node in a pool and of a virtual machine.

    Threshold: more than `maximum`. For a virtual machine that is an error, since we chose the
    ratio. A bought shape is what it is (31 of 60 AWS GPU shapes have more than 8), so there it is a
    note, and only when the plan holds a cheaper candidate with the same GPU.

    Fix: fewer cores for the VM, or the cheaper shape.

    Silent: for a fixed shape without a cheaper one; when the cores are not known; for a VM with
    less than one whole GPU, which needs a few cores whatever its share.
    """
    maximum = subject.thresholds["maximum"]
    for shape in shapes(subject.plan):
        if shape.cores is None or shape.cores <= maximum * shape.gpus:
            continue
        if shape.chosen:
            if shape.gpus >= 1:
                yield _cores_finding(shape, maximum, "error", "give the VM fewer cores")
        elif _cheaper_shape(subject.plan, shape.pool):
            yield _cores_finding(shape, maximum, None, "take the cheaper shape with the same GPU")


def _cheaper_shape(plan: Plan, pool: NodePool) -> bool:
    """Whether a workload of the pool had a cheaper candidate with the pool's GPU."""
    return any(
        candidate.gpu == pool.gpu and (saving(workload, candidate) or 0) > 0
        for workload in plan.workloads
        if workload.node_pool == pool.name
        for candidate in workload.alternatives
    )


def host_memory(subject: Subject) -> Iterator[Finding]:
    """Too little host memory for each GPU.

    Why: checkpoints are loaded, data sets are shuffled and batches are pinned in host memory; below
    the floor the kernel kills the process while the weights load.

    Looks at: host memory for each GPU, of a node in a pool and of a virtual machine. A vGPU counts
    as its share of a GPU.

    Threshold: less than `error_below_gigabytes` is an error, less than `minimum_gigabytes` a
    warning (decimal gigabytes, since a machine sold with 64 GiB reports a little less). Source: of
    60 AWS GPU shapes one has less than 16 GB a GPU and five less than 32.

    Fix: a shape with more memory, or more memory for the VM (`overrides.host_memory_per_gpu`).

    Silent: when the memory is not known.
    """
    least = subject.thresholds["minimum_gigabytes"]
    severe = subject.thresholds["error_below_gigabytes"]
    for shape in shapes(subject.plan):
        needed = bytes_of(least * GB, shape.gpus)
        if shape.memory_bytes is not None and shape.memory_bytes < needed:
            grave = shape.memory_bytes < bytes_of(severe * GB, shape.gpus)
            yield Finding(
                resource=shape.resource,
                path=f"{shape.path}.memory_bytes",
                message=f"{shape.label} has {format_bytes(float(shape.memory_bytes / shape.gpus))} "
                f"of host memory a GPU; {severe if grave else least} GB is the floor",
                help="give it more memory",
                requested=needed,
                capacity=shape.memory_bytes,
                unit="B",
                level="error" if grave else None,
                origin=shape.origin,
            )


def host_to_gpu_memory(subject: Subject) -> Iterator[Finding]:
    """Less host memory than GPU memory.

    Why: a checkpoint is staged in host memory before it reaches the GPUs, and offloading needs at
    least as much again; with less, loading swaps or fails.

    Looks at: host memory against the memory of all GPUs, of a node in a pool and of a virtual
    machine.

    Threshold: `percent_of_gpu_memory`. A warning where something trains (optimizer states are
    offloaded and checkpoints written), a note where it only serves. Source: stas00's ml-engineering
    guide, Vast and RunPod host requirements (at least 1 ×).

    Fix: a shape with more memory, or more memory for the VM (`overrides.host_memory_per_gpu`).

    Silent: when the memory is not known.
    """
    percent = subject.thresholds["percent_of_gpu_memory"]
    for shape in shapes(subject.plan):
        need = shape.gpu_memory_bytes * percent
        if shape.memory_bytes is not None and shape.memory_bytes * 100 < need:
            yield Finding(
                resource=shape.resource,
                path=f"{shape.path}.memory_bytes",
                message=f"{shape.label} has {format_bytes(shape.memory_bytes)} of host memory for "
                f"{format_bytes(shape.gpu_memory_bytes)} of GPU memory",
                help=f"give it at least {percent} % of its GPU memory",
                requested=need / 100,
                capacity=shape.memory_bytes,
                unit="B",
                level=None if shape.trains else "info",
                origin=shape.origin,
            )
