"""Rules about how a model is split over GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.plan.model import NodePool, Workload, by_name
from gpuplan.policy.api import Finding, Subject
from gpuplan.units import GB, format_rate


def tensor_parallel_link(subject: Subject) -> Iterator[Finding]:
    """Tensor parallelism runs over a slow link.

    Why: tensor parallelism exchanges activations twice a layer, so every token waits for the
    slowest link of the group. A 256 KiB all-reduce takes 5–11 µs over NVLink on H100 and 207 µs
    over PCIe on eight L40S. Between nodes that no NVLink joins, and between partitions of GPUs,
    there is no such link at all.

    Looks at: the tensor-parallel size, the GPUs that one replica has on one node, the nodes that an
    NVLink domain joins where the plan counts on one, whether it runs on partitions, and the
    bandwidth between the GPUs of its node pool (one direction).

    Threshold: a group that spans partitions, or nodes of more than one NVLink domain, is an error.
    Inside a node it is a warning when more than `maximum_size_on_slow_link` GPUs share a link below
    `fast_link_gigabytes_per_s`. Source: PCIe 5.0 x16 carries 64 GB/s in one direction, NVLink of an
    A100 300 GB/s.

    Fix: keep tensor parallelism inside a node and use pipeline parallelism between nodes; use GPUs
    with NVLink, or more replicas of a smaller group.

    Silent: without tensor parallelism.
    """
    for workload in subject.plan.workloads:
        if workload.parallelism.tensor_parallel_size > 1:
            pool = by_name(subject.plan.node_pools, workload.node_pool)
            yield from _spread(workload, pool)
            yield from _slow(workload, pool, subject)


def _spread(workload: Workload, pool: NodePool) -> Iterator[Finding]:
    size = workload.parallelism.tensor_parallel_size
    here = min(workload.gpus_per_node, pool.gpus_per_node)
    if workload.one_domain:
        here *= min(workload.nodes_per_replica, pool.domain_nodes)
    if workload.partition:
        reason = f"partitions ({workload.partition}) have no link between them"
    elif size > here:
        nodes = "one node has" if here <= workload.gpus_per_node else "NVLink joins"
        reason = f"{nodes} {here} of its GPUs"
    else:
        return
    yield Finding(
        resource=f"workload/{workload.name}",
        path=f"workloads[{workload.name}].parallelism.tensor_parallel_size",
        message=f"{workload.name} splits each layer over {size} GPUs, but {reason}",
        help="keep tensor parallelism inside a node; split by pipeline stages between nodes",
        requested=size,
        capacity=1 if workload.partition else here,
        unit="GPUs",
        origin=workload.origin,
    )


def _slow(workload: Workload, pool: NodePool, subject: Subject) -> Iterator[Finding]:
    size = workload.parallelism.tensor_parallel_size
    fast = subject.thresholds["fast_link_gigabytes_per_s"] * GB
    most = subject.thresholds["maximum_size_on_slow_link"]
    if workload.partition or size <= most or pool.interconnect_bytes_per_s >= fast:
        return
    yield Finding(
        resource=f"workload/{workload.name}",
        path=f"workloads[{workload.name}].node_pool",
        message=f"{workload.name} splits each layer over {size} GPUs that share "
        f"{pool.interconnect} ({format_rate(pool.interconnect_bytes_per_s)}); below "
        f"{format_rate(fast)} every token waits for the link",
        help=f"use GPUs with a faster link, or groups of at most {most} GPUs, several of them"
        " as stages of a pipeline where one does not hold the model",
        requested=fast,
        capacity=pool.interconnect_bytes_per_s,
        unit="B/s",
        level="warning",
        origin=workload.origin,
    )
