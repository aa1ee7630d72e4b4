"""What is wrong with a cluster on GKE, or should be known of it: one constructor a message."""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.diagnostics import Diagnostic, error, note, warning
from gpuplan.manifest.cluster import ProvisioningSpec
from gpuplan.plan.model import NodePool, Workload
from gpuplan.source import Origin


def stays_longer(longest_s: int, at: Origin) -> Diagnostic:
    return error(
        "GP016",
        f"a machine that is waited for stays {longest_s // 86_400} days at most",
        at,
        help=f"write longest: {longest_s // 86_400} d or less; a run goes on from its last"
        " checkpoint",
    )


def nobody_asks(waited: ProvisioningSpec, at: Origin) -> Diagnostic:
    return error(
        "GP016",
        f"queued {waited.node} come for a ProvisioningRequest alone, and nobody makes one",
        at,
        help="name a queue of Kueue in platform.queue, which makes them; or write kind: flex-start",
    )


def priced_on_demand(pool: NodePool, kind: str, at: Origin) -> Diagnostic:
    return note(
        "GP014",
        f"pool {pool.name} is {kind} and priced as on demand: no source here states what a machine"
        " that is waited for costs",
        at,
        help="platform.prices takes what your project pays",
    )


def unknown_accelerator(pool: NodePool, machine: str) -> Diagnostic:
    return error(
        "GP012",
        f"pool {pool.name}: no source states what GKE calls the GPUs of {machine}",
        pool.origin,
        help="name another type in platform.nodes: `gpuplan catalog list instances`",
    )


def cut_in_two_ways(pool: NodePool) -> Diagnostic:
    return error(
        "GP016",
        f"pool {pool.name}: GKE cuts all GPUs of a node into equal parts, and the plan cuts some of"
        " a node otherwise",
        pool.origin,
        help="name a type with one GPU in platform.nodes, or ask for parts of one size:"
        " overrides.partition",
    )


def no_rdma(pool: NodePool, machine: str, known: Sequence[str]) -> Diagnostic:
    return error(
        "GP016",
        f"pool {pool.name}: {machine} has no RDMA that pods can claim, and its pods talk to other"
        " nodes",
        pool.origin,
        help=f"name {' or '.join(known)} in platform.nodes; or write kind: ethernet, which needs no"
        " daemon of Google's beside each pod as GPUDirect-TCPX does",
    )


def image_without_gib(workload: Workload) -> Diagnostic:
    return warning(
        "GP017",
        f"{workload.name}: Google's plugin gIB tunes NCCL for this network, and no source says that"
        f" {workload.engine.image} has it",
        workload.origin,
        help="use an image with the plugin in engine.image; without, NCCL uses its own InfiniBand"
        " transport with settings of nobody's",
    )


def not_side_by_side(pool: NodePool, at: Origin) -> Diagnostic:
    return warning(
        "GP017",
        f"pool {pool.name}: its nodes talk to each other, and queued machines have no placement"
        " policy: they may stand apart",
        at,
        help="write kind: flex-start, whose machines stand together and come one by one; or"
        " reserve them",
    )


def not_to_be_had(pool: NodePool, machine: str, only: Sequence[str]) -> Diagnostic:
    return error(
        "GP016",
        f"pool {pool.name}: {machine} can be had as {' or '.join(only)} alone, whatever price on"
        " demand is listed",
        pool.origin,
        help="add it to platform.cluster.provisioning with kind: flex-start, make its workloads"
        " 'preemptible', or name another type",
    )
