"""What is wrong with a cloud's cluster, or should be known of it: one constructor a message."""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.diagnostics import Change, Diagnostic, error, note, remedied, warning
from gpuplan.manifest.cluster import CapacityReservationSpec
from gpuplan.plan.model import NodePool, Workload
from gpuplan.source import Origin
from gpuplan.units import GIB


def no_region(target: str, provider: str, at: Origin) -> Diagnostic:
    return error(
        "GP012",
        f"target '{target}' needs to know its region",
        at,
        label="no 'region'",
        help=f"write platform.region: `gpuplan catalog list prices --provider {provider}` shows"
        " where prices are known",
    )


def no_zones(target: str, show: str, at: Origin) -> Diagnostic:
    return error(
        "GP012",
        f"target '{target}' needs to know its zones: no source says which have these machines",
        at,
        label="no 'cluster.zones'",
        help=f"write platform.cluster: {{zones: [ZONE, ZONE]}}, of those that `{show}` lists",
    )


def few_zones(target: str, least: int, at: Origin) -> Diagnostic:
    return error(
        "GP004",
        f"a new cluster of target '{target}' needs subnets in {least} zones or more",
        at,
        help="name another zone: pools that live in one zone are in the first",
    )


def other_form(what: str, value: str, target: str, example: str, at: Origin) -> Diagnostic:
    return error(
        "GP004",
        f"'{value}' is not how target '{target}' writes {what}",
        at,
        help=f"write it like {example}",
    )


def other_region(zone: str, region: str, at: Origin) -> Diagnostic:
    return error(
        "GP004",
        f"zone '{zone}' is not in region '{region}'",
        at,
        help=f"name zones of {region}, or another region",
    )


def no_machines_of_ones_own(target: str, field: str, at: Origin) -> Diagnostic:
    problem = error(
        "GP007",
        f"target '{target}' rents its machines, and '{field}' describes some of one's own",
        at,
        help=f"remove '{field}'; name instance types in 'nodes', or GPU types in 'gpus'",
    )
    return remedied(problem, (Change(at, None),))


def unknown_release(stated: str, known: Sequence[str], show: str, at: Origin) -> Diagnostic:
    return error(
        "GP012",
        f"no source states how long Kubernetes {stated} is supported there",
        at,
        help=f"known are {', '.join(known)}; `{show}` shows all",
    )


def driver_of_the_image(target: str, chosen: str, at: Origin) -> Diagnostic:
    problem = error(
        "GP016",
        f"target '{target}' takes the GPU driver that is in the image of its nodes",
        at,
        help=f"remove it: {chosen}",
    )
    return remedied(problem, (Change(at, None),))


def other_fabric(target: str, kind: str, known: Sequence[str], at: Origin) -> Diagnostic:
    problem = error(
        "GP016",
        f"machines of target '{target}' have no {kind}",
        at,
        help=f"write kind: {' or '.join(known)}, or ethernet for a network without RDMA",
    )
    return remedied(problem, *((Change(at, name),) for name in (*known, "ethernet")))


def not_there(target: str, what: str, value: str, known: Sequence[str], at: Origin) -> Diagnostic:
    problem = error(
        "GP016",
        f"target '{target}' has no {what} '{value}'",
        at,
        help=f"write {' or '.join(known)}" if known else "remove it",
    )
    return remedied(problem, *((Change(at, name),) for name in known or (None,)))


def unused_provisioning(node: str, at: Origin) -> Diagnostic:
    return warning(
        "GP014",
        f"no machine of the plan is a {node}, so none is waited for",
        at,
        help=f"name {node} in platform.nodes, so that it is planned with",
    )


def waited_and(pool: NodePool, kind: str, other: str, at: Origin) -> Diagnostic:
    return error(
        "GP016",
        f"pool {pool.name} cannot be {kind} and {other} at once",
        at,
        help=f"choose: remove this entry, or what makes the pool {other}",
    )


def unused_reservation(reserved: CapacityReservationSpec, at: Origin) -> Diagnostic:
    return warning(
        "GP014",
        f"reservation {reserved.id} holds {reserved.node}, which the plan has none of",
        at,
        help=f"name {reserved.node} in platform.nodes, so that it is planned with",
    )


def spot_and_reserved(pool: NodePool, at: Origin) -> Diagnostic:
    return error(
        "GP016",
        f"pool {pool.name} is planned on spare capacity, which no reservation holds",
        at,
        help="remove the reservation, or 'preemptible' of its workloads",
    )


def reservation_elsewhere(reserved: CapacityReservationSpec, at: Origin) -> Diagnostic:
    return error(
        "GP004",
        f"reservation {reserved.id} is in {reserved.zone}, where the cluster has no subnet",
        at,
        help="add its zone to platform.cluster.zones",
    )


def reservation_of_other_region(
    reserved: CapacityReservationSpec, region: str, at: Origin
) -> Diagnostic:
    return error(
        "GP004",
        f"reservation {reserved.id} is in {reserved.zone}, which is not in region '{region}'",
        at,
        help=f"name a reservation in {region}, or its region in platform.region",
    )


def unknown_machine(pool: NodePool) -> Diagnostic:
    return error(
        "GP012",
        f"pool {pool.name}: no source describes the machine {pool.node_type or 'of its nodes'}",
        pool.origin,
        help="name a type in platform.nodes that `gpuplan catalog list instances` shows",
    )


def whole_gpus(workload: Workload, users: int, needed_bytes: int, pool: NodePool) -> Diagnostic:
    needed, has = (f"{size / GIB:.3g} GiB" for size in (needed_bytes, pool.gpu_memory_bytes))
    return note(
        "GP014",
        f"{workload.name}: each of its {users} notebooks has a whole {pool.gpu} of {has} and asks"
        f" for {needed}. Time-sharing and MPS, which would put several on one, are not planned:"
        " they bound neither a neighbour's time nor, time-sharing, its memory",
        workload.origin,
        help="name a GPU that MIG cuts in platform.nodes or gpus: `gpuplan catalog list gpus`",
    )
