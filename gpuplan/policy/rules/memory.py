"""Rules about GPU memory: does it fit, is there room, is there cache for the load asked."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.plan.model import NodePool, Partition, Plan, Workload, by_name
from gpuplan.policy.api import Finding, Subject
from gpuplan.units import format_bytes


def partition_of(pool: NodePool, workload: Workload) -> Partition | None:
    """The partition that the workload runs on, where its pool lists it."""
    return next((p for p in pool.partitions if p.name == workload.partition), None)


def device_bytes(plan: Plan, workload: Workload) -> int:
    """Memory of what one rank of the workload runs on: a partition, else a whole GPU."""
    pool: NodePool = by_name(plan.node_pools, workload.node_pool)
    if workload.partition is None:
        return pool.gpu_memory_bytes
    # Hosts cut their GPUs for each guest; a pool of them may not list what they are cut into.
    partition = partition_of(pool, workload)
    return partition.memory_bytes if partition else workload.memory.capacity_bytes


def devices_per_gpu(plan: Plan, workload: Workload) -> int:
    """How many of what one rank runs on make a whole GPU."""
    pool: NodePool = by_name(plan.node_pools, workload.node_pool)
    partition = partition_of(pool, workload)
    if partition is not None:
        return partition.per_gpu
    return max(1, pool.gpu_memory_bytes // device_bytes(plan, workload))


def memory_fit(subject: Subject) -> Iterator[Finding]:
    """The workload needs more GPU memory than there is.

    Why: an engine that runs out of GPU memory does not start, or dies under its first full batch.

    Looks at: the sum of weights, gradients, optimizer states, activations, KV cache and overhead of
    one GPU, against the smallest of what the engine may take, what the sizing assumed, and what the
    node pool's GPU or partition has.

    Threshold: none to set; one byte too many is an error. Source: vLLM `gpu_memory_utilization`,
    which bounds what the engine takes.

    Fix: a larger GPU, more tensor or pipeline parallelism, a lower precision, or less context and
    concurrency.

    Silent: never; every workload has a memory budget.
    """
    for workload in subject.plan.workloads:
        memory = workload.memory
        limits = (
            (memory.usable_bytes, "the engine may take"),
            (memory.capacity_bytes, "the sizing counted on"),
            (device_bytes(subject.plan, workload), "the GPU has"),
        )
        limit, whose = min(limits, key=lambda pair: pair[0])
        if memory.used_bytes > limit:
            yield Finding(
                resource=f"workload/{workload.name}",
                path=f"workloads[{workload.name}].memory",
                message=f"{workload.name} needs {format_bytes(memory.used_bytes)} of GPU memory, "
                f"{format_bytes(memory.used_bytes - limit)} more than {whose} "
                f"({format_bytes(limit)})",
                help="use a larger GPU, more tensor parallelism or a lower precision",
                requested=memory.used_bytes,
                capacity=limit,
                unit="B",
                origin=workload.origin,
            )


def memory_headroom(subject: Subject) -> Iterator[Finding]:
    """The workload leaves too little GPU memory free.

    Why: allocators fragment, graphs are captured late, and a driver or library update takes a few
    hundred MiB; a plan that fills the GPU fails on a day when nothing in it changed.

    Looks at: the free part of one GPU, in percent of its capacity. A serving engine takes all that
    it may (`gpu_memory_utilization`) and fills it with cache; any other workload takes its memory
    budget.

    Threshold: `inference_percent` (vLLM keeps 10 % free by default, `gpu_memory_utilization` 0.9)
    and `training_percent` (peaks of training vary with the data). Exactly the threshold is enough.

    Fix: lower `gpu_memory_utilization`, the context length or the micro-batch, or use a larger GPU.

    Silent: when the workload does not fit at all (GP101 says so), and for notebooks, which get the
    memory that was asked for.
    """
    for workload in subject.plan.workloads:
        memory = workload.memory
        if workload.task == "notebook":
            continue
        training = workload.task in ("training", "finetuning")
        percent = subject.thresholds["training_percent" if training else "inference_percent"]
        taken = memory.used_bytes
        if workload.serving is not None:
            taken = max(taken, memory.usable_bytes)
        free = memory.capacity_bytes - taken
        if free >= 0 and free * 100 < memory.capacity_bytes * percent:
            yield Finding(
                resource=f"workload/{workload.name}",
                path=f"workloads[{workload.name}].memory.capacity_bytes",
                message=f"{workload.name} leaves {free * 100 / memory.capacity_bytes:.1f} % of GPU "
                f"memory free ({format_bytes(free)}); {percent} % is the floor for "
                f"{'training' if training else 'inference'}",
                help="lower the engine's share, the context or the batch, or use a larger GPU",
                requested=memory.capacity_bytes * percent / 100,
                capacity=free,
                unit="B",
                origin=workload.origin,
            )


def kv_cache(subject: Subject) -> Iterator[Finding]:
    """The KV cache is smaller than the concurrency asked.

    Why: requests that find no room in the cache wait in the queue, or push others out and are
    computed again; the latency that was promised holds only up to what fits.

    Looks at: for each language model that is served, the requests that run at once at the peak,
    over all replicas, against what the engines admit (`max_num_seqs`) and what their caches hold:
    the memory that the engine may take beside weights and work space, at the bytes one request
    needs (from the plan's evidence).

    Threshold: none to set; the caches hold the asked concurrency or they do not. Source: the engine
    admits a request only with free blocks (vLLM, PagedAttention, SOSP 2023).

    Fix: more replicas, a shorter context, an fp8 cache (`overrides.kv_cache_dtype`), or a larger
    GPU.

    Silent: for workloads that are not served, for image services, and about the cache of a plan
    whose evidence does not say what one request needs.
    """
    for workload in subject.plan.workloads:
        if workload.serving is None:
            continue
        admitted = workload.serving.max_num_seqs * workload.replicas
        if admitted < workload.concurrency:
            yield _too_few(
                workload, "serving.max_num_seqs", f"its engines admit {admitted:,}", admitted
            )
        each = _request_bytes(subject.plan, workload)
        if each is not None:
            memory = workload.memory
            room = memory.usable_bytes - memory.used_bytes + memory.kv_cache_bytes
            held = int(max(room, 0) / each) * workload.replicas
            if held < workload.concurrency:
                yield _too_few(
                    workload, "memory.kv_cache_bytes", f"its KV caches hold {held:,}", held
                )


def _request_bytes(plan: Plan, workload: Workload) -> float | None:
    """Cache that one request holds on each GPU, on average over its life."""
    evidence = {e.quantity: e.value for e in plan.evidence}
    names = ("kv_cache_bytes", "kv_cache_tokens", "tokens_per_request")
    size, tokens, each = (evidence.get(f"{workload.name}.{name}") for name in names)
    return size / tokens * each if size and tokens and each else None


def _too_few(workload: Workload, path: str, limit: str, capacity: int) -> Finding:
    return Finding(
        resource=f"workload/{workload.name}",
        path=f"workloads[{workload.name}].{path}",
        message=f"{workload.name} is asked for {workload.concurrency:,} requests at once, {limit}",
        help="add replicas, shorten the context, or use an fp8 cache or a larger GPU",
        requested=workload.concurrency,
        capacity=capacity,
        unit="requests",
        origin=workload.origin,
    )
