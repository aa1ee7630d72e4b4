"""What becomes of objects that are there already, one constructor a message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpuplan.diagnostics import Diagnostic, error, note, warning
from gpuplan.kubernetes import naming
from gpuplan.kubernetes.objects import KubernetesObject
from gpuplan.plan.model import Plan, RetainedClaim, Volume, Workload
from gpuplan.source import Origin
from gpuplan.units import format_bytes, plural


def cannot_become(identity: str, properties: Iterable[str], at: Origin | None) -> Diagnostic:
    return error(
        "GP020",
        f"{identity} is there and cannot change: {', '.join(properties)}",
        at,
        help="give the workload another name, or compile a new stack with --fresh after removing"
        " this one",
    )


def keeps_size(workload: Workload, volume: Volume, there_bytes: int) -> Diagnostic:
    return note(
        "GP021",
        f"{workload.name}: volume '{volume.name}' keeps {format_bytes(there_bytes)}, more than the"
        f" {format_bytes(volume.size_bytes)} that it needs: a claim cannot shrink",
        workload.origin,
    )


def grows(workload: Workload, volume: Volume, there_bytes: int) -> Diagnostic:
    return note(
        "GP021",
        f"{workload.name}: volume '{volume.name}' grows from {format_bytes(there_bytes)} to"
        f" {format_bytes(volume.size_bytes)}",
        workload.origin,
        help="its storage class must have allowVolumeExpansion: true",
    )


def keeps_own_volumes(plan: Plan, workload: Workload, volume: Volume, kept: Volume) -> Diagnostic:
    """The template of a StatefulSet's claims is fixed."""
    size = naming.quantity(volume.size_bytes)
    claims = f"{volume.name}-{workload.oldest_name}-0"
    grown = volume.size_bytes > kept.size_bytes and volume.storage_class == kept.storage_class
    patch = (
        f"kubectl -n {naming.namespace_name(plan, workload.tenant)} patch pvc {claims} -p "
        f'\'{{"spec":{{"resources":{{"requests":{{"storage":"{size}"}}}}}}}}\', for each replica'
    )
    return warning(
        "GP021",
        f"{workload.name}: each replica's volume '{volume.name}' keeps its"
        f" {format_bytes(kept.size_bytes)} of {_class(kept.storage_class)}, which nothing can"
        " change in a StatefulSet",
        workload.origin,
        help=f"grow the claims by hand: {patch}" if grown else "another name makes a new workload",
    )


def new_claim(plan: Plan, workload: Workload, volume: Volume, former: RetainedClaim) -> Diagnostic:
    """`volume` as it will be; `former` is what stands there."""
    if former.tenant != workload.tenant:
        reason = f"is in the namespace of tenant '{former.tenant}'"
    elif former.storage_class != volume.storage_class:
        reason = f"is of {_class(former.storage_class)}"
    else:
        reason = "can be mounted on one node only (ReadWriteOnce)"
    name = naming.claim(workload.oldest_name, volume.name, volume.generation)
    old = naming.claim(former.workload, former.volume, former.generation)
    fills = volume.purpose == "models"
    remedy = "its weights are downloaded again at the first start" if fills else "copy its data"
    build = note if fills else warning
    return build(
        "GP022",
        f"{workload.name}: claim '{old}' {reason} and cannot change: '{name}' takes its place,"
        " empty, and the old one is kept",
        workload.origin,
        help=f"{remedy}; {_let_go(plan, former)}",
    )


def kept_claim(plan: Plan, names: Sequence[str], place: str, size_bytes: int) -> Diagnostic:
    """`names` are those of a claim, or of the claims of a StatefulSet's pods; `size_bytes` each."""
    size = format_bytes(size_bytes)
    claims = (
        f"claim '{names[0]}' ({size}) is kept, though no workload mounts it"
        if len(names) == 1
        else f"claims '{names[0]}' to '{names[-1]}' ({size} each) are kept, though no workload"
        " mounts them"
    )
    return note(
        "GP022",
        claims,
        Origin(plan.workloads[0].origin.document) if plan.workloads[0].origin else None,
        help=f"without need for {'it' if len(names) == 1 else 'them'}: `gpuplan compile --forget"
        f" {place}`",
    )


def kept_namespace(plan: Plan, tenant: str) -> Diagnostic:
    namespace = naming.namespace_name(plan, tenant)
    return note(
        "GP022",
        f"namespace '{namespace}' is kept, though no workload is in it: it holds volumes",
        Origin(plan.workloads[0].origin.document) if plan.workloads[0].origin else None,
        help=f"without need for them: `gpuplan compile --forget {namespace}`",
    )


def _let_go(plan: Plan, claim: RetainedClaim) -> str:
    name = naming.claim(claim.workload, claim.volume, claim.generation)
    namespace = naming.namespace_name(plan, claim.tenant)
    return f"without need for it: `gpuplan compile --forget {namespace}/{name}`"


def unknown_claim(plan: Plan, name: str, known: Iterable[str]) -> Diagnostic:
    names = ", ".join(known)
    return error(
        "GP006",
        f"stack {plan.name} keeps no '{name}'",
        help=f"it keeps {names}" if names else "it keeps nothing that no workload uses",
    )


def new_run(workload: Workload, former: str, name: str, properties: Iterable[str]) -> Diagnostic:
    goes_on = workload.training is not None
    return warning(
        "GP022",
        f"{workload.name}: job '{former}' cannot change ({', '.join(properties)}): '{name}' takes"
        " its place and runs from the start" + (", or its last checkpoint" if goes_on else ""),
        workload.origin,
        help="let the run that is there end first, where its result is wanted",
    )


def new_kind(workload: Workload, former: KubernetesObject, now: KubernetesObject) -> Diagnostic:
    """Of a run that another kind of object brings from now on."""
    return warning(
        "GP022",
        f"{workload.name}: {former.kind} '{former.name}' goes, and {now.kind} '{now.name}' takes"
        " its place and runs from the start, or its last checkpoint; where nodes are free both run"
        " for a while, and write the same checkpoints",
        workload.origin,
        help="let the run that is there end first, or delete it before `pulumi up`",
    )


def recut(node: str, former: str, name: str, instances: int, at: Origin | None) -> Diagnostic:
    return warning(
        "GP023",
        f"node {node} is cut anew, from '{former}' to '{name}': whoever works on its"
        f" {plural(instances, 'MIG instance')} is stopped",
        at,
        help=f"announce it, and drain the node first: kubectl drain {node} --ignore-daemonsets"
        " --delete-emptydir-data; where replicas find no other node it waits until"
        " --disable-eviction is added",
    )


def waits_for(old: str, new: str, command: str, at: Origin | None) -> Diagnostic:
    return warning(
        "GP024",
        f"{new} waits for the GPUs of {old}, which an update removes only afterwards",
        at,
        help=f"before `pulumi up`: {command}",
    )


def _class(name: str | None) -> str:
    return f"storage class '{name}'" if name else "the default storage class"
