"""Claims across compilations: data is never lost by an update, and no update is refused for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gpuplan.diagnostics import Diagnostic
from gpuplan.engines.start import RUNS
from gpuplan.errors import Rejected
from gpuplan.kubernetes import naming
from gpuplan.kubernetes.pods import templated
from gpuplan.kubernetes.scene import scene_of
from gpuplan.kubernetes.storage import claim_key
from gpuplan.kubernetes.update import messages
from gpuplan.plan.model import Plan, RetainedClaim, Tenant, Volume, Workload


def keep_claims(
    before: Plan, after: Plan, forget: Sequence[str] = ()
) -> tuple[Plan, tuple[Diagnostic, ...]]:
    """`after` with volumes that the claims of `before` allow, and with the claims and namespaces of
    `before` that hold data. `forget` are those to let go, as NAMESPACE/CLAIM or NAMESPACE. Raises
    `Rejected` where one of them is not there or is in use."""
    notes: list[Diagnostic] = []
    workloads = []
    for workload in after.workloads:
        volumes = []
        for volume in workload.volumes:
            kept, said = _kept(before, after, workload, volume)
            volumes.append(kept)
            notes += said
        workloads.append(replace(workload, volumes=tuple(volumes)))
    plan = replace(after, workloads=tuple(workloads))
    unused = tuple(_unused(before, plan))
    tenants = _data_tenants(before, after)
    names = {*(place(before, c) for c in unused), *(_namespace(before, t.name) for t in tenants)}
    if unknown := [n for n in forget if n not in names]:
        raise Rejected(messages.unknown_claim(after, n, sorted(names)) for n in unknown)
    retained = tuple(
        c
        for c in unused
        if place(before, c) not in forget and _namespace(before, c.tenant) not in forget
    )
    known = {(place(before, c), c.pods) for c in before.retained_claims}
    replaced = {w.oldest_name for w in plan.workloads}  # said with what takes its place
    notes += [
        messages.kept_claim(after, claim_names(plan, c), place(after, c), c.size_bytes)
        for c in retained
        if (place(before, c), c.pods) not in known and (c.pods or c.workload not in replaced)
    ]
    kept_tenants = tuple(t for t in tenants if _namespace(before, t.name) not in forget)
    notes += [
        messages.kept_namespace(after, t.name)
        for t in kept_tenants
        if any(w.tenant == t.name for w in before.workloads)
    ]
    return (
        replace(
            plan,
            retained_claims=retained,
            tenants=tuple(_tenants(after, plan, retained, kept_tenants)),
        ),
        tuple(notes),
    )


def claims_of(plan: Plan) -> tuple[RetainedClaim, ...]:
    """Every claim of the stack: those that pods mount, then the retained."""
    return (*_mounted(plan), *plan.retained_claims)


def _mounted(plan: Plan) -> Iterator[RetainedClaim]:
    for scene in (scene_of(plan, w) for w in plan.workloads):
        for volume in scene.workload.volumes:
            yield RetainedClaim(
                key=claim_key(scene, volume),
                workload=scene.name,
                volume=volume.name,
                generation=volume.generation,
                tenant=scene.workload.tenant,
                size_bytes=volume.size_bytes,
                storage_class=volume.storage_class,
                shared=volume.shared,
                pods=scene.pods if templated(scene, volume) else None,
            )


def _unused(before: Plan, plan: Plan) -> Iterator[RetainedClaim]:
    """Claims of `before` that `plan` does not mount; of a StatefulSet's, those of its last pods, as
    large as any of those that may be among them."""
    mounted = {place(plan, c): c.pods or 0 for c in _mounted(plan)}
    of_place: dict[str, list[RetainedClaim]] = {}
    for claim in claims_of(before):
        of_place.setdefault(place(before, claim), []).append(claim)
    for where, former in sorted(of_place.items()):
        stay = mounted.get(where, 0)
        if former[0].pods is None:
            if where not in mounted:
                yield former[0]
        elif (pods := sum(c.pods or 0 for c in former) - stay) > 0:
            left = (c for c in former if c in before.retained_claims or (c.pods or 0) > stay)
            yield replace(former[-1], pods=pods, size_bytes=max(c.size_bytes for c in left))


def same(plan: Plan, workload: Workload) -> Workload | None:
    """The workload of `plan` that has the objects of `workload`."""
    name = workload.oldest_name
    return next(
        (w for w in plan.workloads if w.oldest_name == name and w.tenant == workload.tenant),
        None,
    )


def place(plan: Plan, claim: RetainedClaim) -> str:
    """`NAMESPACE/CLAIM`; for the claims of a StatefulSet, what their names begin with."""
    name = (
        naming.claim(claim.workload, claim.volume, claim.generation)
        if claim.pods is None
        else f"{claim.volume}-{claim.workload}"
    )
    return f"{_namespace(plan, claim.tenant)}/{name}"


def claim_names(plan: Plan, claim: RetainedClaim) -> tuple[str, ...]:
    """The objects' names of a retained claim."""
    where = place(plan, claim)
    name = where.partition("/")[2]
    if claim.pods is None:
        return (name,)
    first = next((c.pods or 0 for c in _mounted(plan) if place(plan, c) == where), 0)
    return tuple(f"{name}-{number}" for number in range(first, first + claim.pods))


def delete_claim(plan: Plan, claim: RetainedClaim) -> tuple[str, ...]:
    namespace = _namespace(plan, claim.tenant)
    return "kubectl", "-n", namespace, "delete", "pvc", *claim_names(plan, claim)


def _namespace(plan: Plan, tenant: str) -> str:
    return naming.namespace_name(plan, tenant)


def _kept(
    before: Plan, after: Plan, workload: Workload, volume: Volume
) -> tuple[Volume, list[Diagnostic]]:
    own = _own_volume(before, workload, volume)
    if own is not None:
        kept = replace(
            volume,
            size_bytes=own.size_bytes,
            storage_class=own.storage_class,
            shared=False,
            per_replica=True,
        )
        said = [messages.keeps_own_volumes(after, workload, volume, kept)]
        return kept, said if _stored(kept) != _stored(volume) else []
    lineage = [
        c
        for c in claims_of(before)
        if c.workload == workload.oldest_name and c.volume == volume.name and c.pods is None
    ]
    if volume.per_replica:
        if not lineage or workload.members > 1:
            return volume, []
        volume = replace(volume, per_replica=False)  # one pod, whose claim is there
    return _of_lineage(after, workload, volume, lineage)


def _own_volume(plan: Plan, workload: Workload, volume: Volume) -> Volume | None:
    """The volume that each replica of the workload had of its own in `plan`."""
    former = same(plan, workload)
    if former is None or former.task in RUNS or workload.task in RUNS:
        return None
    scene = scene_of(plan, former)
    own = (v for v in former.volumes if v.name == volume.name and templated(scene, v))
    return next(own, None)


def _stored(volume: Volume) -> tuple[int, str | None, bool]:
    return volume.size_bytes, volume.storage_class, volume.shared


def _of_lineage(
    plan: Plan, workload: Workload, volume: Volume, lineage: list[RetainedClaim]
) -> tuple[Volume, list[Diagnostic]]:
    """`volume` in the newest claim that can serve it; else in one of the next generation."""
    newest_first = sorted(lineage, key=lambda c: -(c.generation or 1))
    for claim in newest_first:
        if _serves(claim, workload, volume):
            kept = replace(
                volume,
                size_bytes=max(claim.size_bytes, volume.size_bytes),
                shared=claim.shared,
                generation=claim.generation,
            )
            return kept, [*_resized(workload, volume, claim.size_bytes)]
    if not newest_first:
        return volume, []
    generation = (newest_first[0].generation or 1) + 1
    made = replace(volume, generation=generation)
    return made, [messages.new_claim(plan, workload, made, newest_first[0])]


def _serves(claim: RetainedClaim, workload: Workload, volume: Volume) -> bool:
    names = (workload.name, *workload.renamed_from)
    keys = {naming.claim(name, volume.name, claim.generation) for name in names}
    return (
        claim.key in keys
        and claim.tenant == workload.tenant
        and claim.storage_class == volume.storage_class
        and (claim.shared or not volume.shared)
    )


def _resized(workload: Workload, volume: Volume, there_bytes: int) -> Iterator[Diagnostic]:
    if volume.size_bytes < there_bytes:
        yield messages.keeps_size(workload, volume, there_bytes)
    elif volume.size_bytes > there_bytes:
        yield messages.grows(workload, volume, there_bytes)


def _data_tenants(before: Plan, after: Plan) -> tuple[Tenant, ...]:
    """Tenants of `before` that `after` lacks and whose namespace holds volumes."""
    here = {t.name for t in after.tenants}
    busy = {w.tenant for w in before.workloads if not w.volumes}
    holding = {w.tenant for w in before.workloads if w.volumes}
    return tuple(t for t in before.tenants if t.name not in here and t.name not in busy - holding)


def _tenants(
    after: Plan, plan: Plan, retained: Sequence[RetainedClaim], kept: Iterable[Tenant]
) -> Iterator[Tenant]:
    """Tenants with room for what is kept, and for what is grown by hand."""
    for tenant in after.tenants:
        more = sum(
            max(0, new.storage_bytes - old.storage_bytes)
            for new, old in zip(plan.workloads, after.workloads, strict=True)
            if new.tenant == tenant.name
        )
        more += _bytes(retained, tenant)
        yield replace(tenant, storage_quota_bytes=tenant.storage_quota_bytes + more)
    for tenant in kept:
        size = _bytes(retained, tenant)
        yield replace(tenant, gpu_quota=0, partition_quota=(), storage_quota_bytes=size)


def _bytes(claims: Iterable[RetainedClaim], tenant: Tenant) -> int:
    return sum(
        c.size_bytes * (1 if c.pods is None else c.pods) for c in claims if c.tenant == tenant.name
    )
