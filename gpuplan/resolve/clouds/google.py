"""What GKE lets a cluster be."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.catalog.market import Instance
from gpuplan.diagnostics import Diagnostic
from gpuplan.plan.model import NodePool
from gpuplan.resolve.clouds import google_messages as messages
from gpuplan.resolve.clouds.groups import one_profile
from gpuplan.resolve.clouds.provider import Asked, Form, Provider
from gpuplan.source import Origin

NAME = r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?"  # of a cluster or a node pool: 40 characters
RESERVED = r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?"
BLOCKS = rf"/reservationBlocks/{RESERVED}(/reservationSubBlocks/{RESERVED})?"
LONGEST_S = 7 * 24 * 3600  # of flex-start (Compute Engine, provisioning models)


def _of_cluster(asked: Asked) -> Iterator[Diagnostic]:
    """Longer than a machine that is waited for may stay, or in what nobody asks for it."""
    for number, waited in enumerate(asked.spec.provisioning):
        here = asked.at.child("cluster", "provisioning", number)
        if waited.longest > LONGEST_S:
            yield messages.stays_longer(LONGEST_S, here.child("longest"))
        if waited.kind == "queued" and asked.platform.queue is None:
            yield messages.nobody_asks(waited, here.child("kind"))


def _of_pool(asked: Asked, pool: NodePool, machine: Instance) -> Iterator[Diagnostic]:
    if asked.facts.accelerator(machine.name) is None:
        yield messages.unknown_accelerator(pool, machine.name)
    for layout in pool.layouts:
        if one_profile(asked, pool, layout) is None:
            yield messages.cut_in_two_ways(pool)
            break
    yield from _of_capacity(asked, pool, machine)
    if not asked.together(pool, GOOGLE):
        return
    if machine.name not in asked.facts.interfaces:
        yield messages.no_rdma(pool, machine.name, sorted(asked.facts.interfaces))
    for workload in (w for w in asked.spanning(pool) if w.nodes_per_replica > 1):
        yield messages.image_without_gib(workload)
    waited = asked.provisioned(pool)
    if waited and waited.kind == "queued":
        yield messages.not_side_by_side(pool, _entry(asked, pool))


def _of_capacity(asked: Asked, pool: NodePool, machine: Instance) -> Iterator[Diagnostic]:
    only = asked.facts.capacities.get(machine.name)
    waited, held = asked.provisioned(pool), asked.reserved(pool)
    if waited and pool.usd_per_hour is not None and not _stated(asked, pool):
        yield messages.priced_on_demand(pool, waited.kind, _entry(asked, pool))
    kind = "reserved" if held else waited.kind if waited else "spot" if pool.spot else "on-demand"
    if only and kind not in only and not (kind == "queued" and "flex-start" in only):
        yield messages.not_to_be_had(pool, machine.name, only)


def _stated(asked: Asked, pool: NodePool) -> bool:
    return pool.gpu in asked.platform.prices


def _entry(asked: Asked, pool: NodePool) -> Origin:
    nodes = [p.node for p in asked.spec.provisioning]
    return asked.at.child("cluster", "provisioning", nodes.index(pool.node_type or ""))


GOOGLE = Provider(
    name="gcp",
    zone=Form(pattern=r"(?P<region>[a-z]+(-[a-z]+)+[0-9]+)-[a-z]", example="us-central1-a"),
    even_zones=True,
    cluster_name=Form(pattern=NAME, example="shared"),
    show_zones='gcloud compute machine-types list --filter="zone~^{region}- AND name=({spaces})"',
    show_releases="gcloud container get-server-config --region REGION",
    fabrics=("roce",),
    reservations={
        "on-demand": Form(
            pattern=rf"(projects/{RESERVED}/reservations/)?{RESERVED}({BLOCKS})?",
            example="projects/PROJECT/reservations/NAME, or NAME",
        )
    },
    provisioning=("flex-start", "queued"),
    local_disks=("ephemeral", "block"),
    own_driver="GKE installs the one that its release of the nodes' image is tested with, by the"
    " setting driverVersion of cloud/pools",
    family=r"[a-z0-9]+-[a-z0-9]+",
    quota_unit="GPUs",
    quota_kinds={"spot": "spot", "flex-start": "spot", "queued": "spot"},
    taints={"queued": ("cloud.google.com/gke-queued",)},
    network_class="mrdma.google.com",
    cluster_problems=_of_cluster,
    pool_problems=_of_pool,
)
