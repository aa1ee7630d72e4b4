"""What a cloud's cluster cannot be made of, by its record and by what is known of it alone."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.diagnostics import Diagnostic
from gpuplan.manifest.cluster import CapacityReservationSpec, ProvisioningSpec
from gpuplan.plan.isolation import guarded
from gpuplan.resolve.clouds import messages
from gpuplan.resolve.clouds.driver import driver_on_nodes
from gpuplan.resolve.clouds.groups import machine_of
from gpuplan.resolve.clouds.provider import Asked, Provider
from gpuplan.resolve.clouds.release import release_of
from gpuplan.source import Origin


def checks(asked: Asked, provider: Provider) -> Iterator[Diagnostic]:
    yield from _of_zones(asked, provider)
    yield from _of_platform(asked, provider)
    yield from _of_cluster(asked, provider)
    for number, reserved in enumerate(asked.spec.reservations):
        here = asked.at.child("cluster", "reservations", number)
        yield from _of_reservation(asked, provider, reserved, here)
    for number, waited in enumerate(asked.spec.provisioning):
        here = asked.at.child("cluster", "provisioning", number)
        yield from _of_provisioning(asked, provider, waited, here)
    yield from provider.cluster_problems(asked)
    for pool in asked.pools:
        machine = machine_of(pool)
        if machine is None:
            yield messages.unknown_machine(pool)
        else:
            yield from provider.pool_problems(asked, pool, machine)
    yield from _of_notebooks(asked)


def _target(asked: Asked) -> str:
    return asked.platform.target


def _of_zones(asked: Asked, provider: Provider) -> Iterator[Diagnostic]:
    spec, at, target = asked.spec, asked.at, _target(asked)
    region = asked.platform.region
    if region is None:
        yield messages.no_region(target, provider.name, at)
    if not spec.zones and provider.least_zones:
        machines = sorted({pool.node_type for pool in asked.pools if pool.node_type})
        show = provider.show_zones.format(
            region=region or "REGION",
            commas=",".join(machines) or "TYPE",
            spaces=" ".join(machines) or "TYPE",
            first=next(iter(machines), "TYPE"),
        )
        yield messages.no_zones(target, show, at)
    elif len(set(spec.zones or ())) < provider.least_zones and spec.existing is None:
        yield messages.few_zones(target, provider.least_zones, at.child("cluster", "zones"))
    for number, zone in enumerate(spec.zones or ()):
        here = at.child("cluster", "zones", number)
        if not provider.zone.match(zone):
            yield messages.other_form("a zone", zone, target, provider.zone.example, here)
        elif region and (provider.region_of(zone) or region) != region:
            yield messages.other_region(zone, region, here)


def _of_platform(asked: Asked, provider: Provider) -> Iterator[Diagnostic]:
    """What the cloud's nodes are, and a manifest cannot make otherwise."""
    platform, at = asked.platform, asked.at
    target = platform.target
    for field in ("inventory", "node"):
        if getattr(platform, field) is not None:
            yield messages.no_machines_of_ones_own(target, field, at.child(field))
    if release_of(platform, asked.facts) is None:
        here = at.child("versions", "kubernetes")
        stated, known = platform.versions["kubernetes"].version, asked.facts.releases
        names = [r.version for r in known]
        yield messages.unknown_release(stated, names, provider.show_releases, here)
    if driver_on_nodes(platform, asked.pools) and "driver" in platform.versions:
        here = at.child("versions", "driver")
        yield messages.driver_of_the_image(target, provider.own_driver, here)
    kind = platform.fabric.kind if platform.fabric else "ethernet"
    if kind not in (*provider.fabrics, "ethernet"):
        here = at.child("fabric", "kind")
        yield messages.other_fabric(target, kind, provider.fabrics, here)


def _of_cluster(asked: Asked, provider: Provider) -> Iterator[Diagnostic]:
    """Values of `platform.cluster` that only other clouds have."""
    spec, target, at = asked.spec, _target(asked), asked.at.child("cluster")
    if spec.existing and not provider.cluster_name.match(spec.existing):
        example, here = provider.cluster_name.example, at.child("existing")
        yield messages.other_form("a cluster's name", spec.existing, target, example, here)
    for field, known in (
        ("scaling", provider.scaling),
        ("local_disks", provider.local_disks),
        ("driver", provider.drivers),
    ):
        value = getattr(spec, field)
        if value and value not in known:
            yield messages.not_there(target, field, value, known, at.child(field))


def _of_reservation(
    asked: Asked, provider: Provider, reserved: CapacityReservationSpec, at: Origin
) -> Iterator[Diagnostic]:
    spec, target = asked.spec, _target(asked)
    form = provider.reservations.get(reserved.kind)
    if form is None:
        kinds = tuple(provider.reservations)
        yield messages.not_there(target, "reservation", reserved.kind, kinds, at.child("kind"))
    elif not form.match(reserved.id):
        yield messages.other_form(
            "a reservation", reserved.id, target, form.example, at.child("id")
        )
    held = [p for p in asked.pools if p.node_type == reserved.node]
    if not held:
        yield messages.unused_reservation(reserved, at.child("node"))
    for pool in held:
        if pool.spot:
            yield messages.spot_and_reserved(pool, at)
    region, here = asked.platform.region, at.child("zone")
    if region and (provider.region_of(reserved.zone) or region) != region:
        yield messages.reservation_of_other_region(reserved, region, here)
    elif spec.zones and reserved.zone not in spec.zones:
        yield messages.reservation_elsewhere(reserved, here)


def _of_provisioning(
    asked: Asked, provider: Provider, waited: ProvisioningSpec, at: Origin
) -> Iterator[Diagnostic]:
    if waited.kind not in provider.provisioning:
        known, target = provider.provisioning, _target(asked)
        yield messages.not_there(target, "provisioning", waited.kind, known, at.child("kind"))
    pools = [p for p in asked.pools if p.node_type == waited.node]
    if not pools:
        yield messages.unused_provisioning(waited.node, at.child("node"))
    for pool in pools:
        if asked.reserved(pool):
            yield messages.waited_and(pool, waited.kind, "reserved", at)
        if pool.spot:
            yield messages.waited_and(pool, waited.kind, "on spare capacity", at)


def _of_notebooks(asked: Asked) -> Iterator[Diagnostic]:
    """People who may share GPUs, two or more of whom would have room on the one that each has."""
    for workload in asked.workloads:
        pool = next((p for p in asked.pools if p.name == workload.node_pool), None)
        work = workload.notebook
        if work is None or pool is None or workload.partition or guarded(workload.isolation):
            continue
        if work.users > 1 and 2 * work.gpu_memory_bytes <= pool.gpu_memory_bytes:
            yield messages.whole_gpus(workload, work.users, work.gpu_memory_bytes, pool)
