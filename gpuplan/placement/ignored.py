"""Fields of a manifest that its target does nothing with. None is ignored in silence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpuplan.diagnostics import Diagnostic
from gpuplan.manifest.v1 import FabricSpec, Manifest, Platform
from gpuplan.placement.problems import unchecked_fact
from gpuplan.plan.workload import Workload
from gpuplan.sizing.ask.messages import not_acted_on
from gpuplan.sizing.hardware.offers import GpuOffer
from gpuplan.source import Origin
from gpuplan.targets import TARGETS, Ignored

if TYPE_CHECKING:
    from gpuplan.inventory.v1 import Inventory

WITHOUT_COMPONENTS = (
    Ignored("versions", "no add-ons are installed"),
    Ignored("operators", "no add-ons are installed"),
)


def ignored(manifest: Manifest, document: str) -> Iterator[Diagnostic]:
    """A note for each field that has no effect with its target or its workloads."""
    platform, root = manifest.platform, Origin(document)
    reading = any(w.task != "notebook" for w in manifest.workloads)
    if platform.storage is not None and platform.storage.bandwidth and not reading:
        at = root.child("platform", "storage", "bandwidth")
        why = "notebooks say nothing of what they read"
        yield not_acted_on(f"platform.storage.bandwidth has no effect: {why}", at, "remove it")
    target = TARGETS[platform.target]
    of_platform = target.ignored_of_platform
    if not target.installs_components:
        of_platform = (*WITHOUT_COMPONENTS, *of_platform)
    tree = manifest.model_dump(by_alias=True, include={"platform", "workloads"})
    for field, at in _written(tree["platform"], of_platform, root.child("platform")):
        yield _note(f"platform.{field.field}", target.name, field.reason, at)
    for number, workload in enumerate(tree["workloads"]):
        here = root.child("workloads", number)
        for field, at in _written(workload, target.ignored_of_workloads, here):
            yield _note(f"'{workload['name']}': {field.field}", target.name, field.reason, at)


def _gangs(platform: Platform, workloads: Sequence[Workload], at: Origin) -> Iterator[Diagnostic]:
    """What is for pods of several nodes, where none are."""
    if not TARGETS[platform.target].queues_pods:
        return
    if platform.queue is not None and all(w.nodes_per_replica < 2 for w in workloads):
        why = "every run and every replica has its GPUs on one node"
        remedy = "keep it for work that needs several nodes, or remove it"
        yield not_acted_on(f"platform.queue has no effect here: {why}", at.child("queue"), remedy)
    if platform.jobs == "jobset" and not any(w.gang for w in workloads):
        why = "no run that starts once lies on several nodes"
        text = f"platform.jobs has no effect here: {why}"
        yield not_acted_on(text, at.child("jobs"), "keep it for such a run, or remove it")


def unneeded(
    manifest: Manifest,
    document: str,
    workloads: Sequence[Workload],
    inventory: Inventory | None,
    listed_in: str,
) -> Iterator[Diagnostic]:
    """A note for each field of the platform, and of the inventory that is `listed_in` a document,
    that this plan has no use for."""
    platform, at = manifest.platform, Origin(document).child("platform")
    spanning = any(w.nodes_per_replica > 1 for w in workloads)
    joined = any(w.joined for w in workloads)
    guests = TARGETS[platform.target].guests_on_hosts
    whole = guests and platform.fabric is not None and any(not w.partition for w in workloads)
    if platform.fabric is not None:
        yield from _fabric(platform.fabric, at.child("fabric"), used=joined or whole)
    yield from _without_vgpus(manifest, workloads, at)
    yield from _gangs(platform, workloads, at)
    if inventory is not None and not (guests and (spanning or whole)):
        yield from _without_functions(inventory, listed_in, platform.target)
    if inventory is not None and inventory.switches and not TARGETS[platform.target].lists_machines:
        text = (
            f"'switches' have no effect on target '{platform.target}', which places nothing by them"
        )
        where = Origin(listed_in, ("switches",))
        yield not_acted_on(text, where, "keep them for a target that does, or remove them")
    storage = platform.storage
    several = spanning or any(w.replicas > 1 and w.notebook is None for w in workloads)
    if storage is not None and storage.shared is False and not several:
        why = "no volume is mounted by several pods"
        where = at.child("storage", "shared")
        yield not_acted_on(f"platform.storage.shared has no effect here: {why}", where, "remove it")
    if not any(v.purpose == "checkpoints" for w in workloads for v in w.volumes):
        for name in (n for n in ("type", "price") if storage and getattr(storage, n)):
            text = f"platform.storage.{name} has no effect here: no run writes checkpoints"
            yield not_acted_on(text, at.child("storage", name), "remove it")


def unshared(workloads: Sequence[Workload], offers: Sequence[GpuOffer]) -> Iterator[Diagnostic]:
    """A note for each GPU type that these workloads cannot share for want of a fact."""
    if not any(w.partition for w in workloads):
        return
    places = {o.gpu.identifier: o.unshared for o in offers if o.unshared is not None}
    for name, origin in places.items():
        yield unchecked_fact(
            "'virtual_functions'",
            f"{name} is planned as whole GPUs alone",
            origin,
            "list them as `/usr/lib/nvidia/sriov-manage -e ADDRESS` makes them",
        )


def _fabric(fabric: FabricSpec, at: Origin, *, used: bool) -> Iterator[Diagnostic]:
    if not used:
        why = "every replica has its GPUs on one node, and no pod or guest gets a device of it"
        remedy = "keep it for work that needs several nodes, or remove it"
        yield not_acted_on(f"platform.fabric has no effect here: {why}", at, remedy)
    elif fabric.nodes_per_switch is not None and fabric.oversubscription is None:
        why = "nodes of two switches have the same rate as those of one"
        yield not_acted_on(
            f"platform.fabric.nodes_per_switch has no effect: {why}",
            at.child("nodes_per_switch"),
            "write 'oversubscription' beside it, or remove it",
        )


def _without_vgpus(
    manifest: Manifest, workloads: Sequence[Workload], at: Origin
) -> Iterator[Diagnostic]:
    platform = manifest.platform
    guests = TARGETS[platform.target].guests_on_hosts
    if platform.vgpu_subscription is None or not guests:
        return
    if not any(w.partition for w in workloads):
        yield not_acted_on(
            "platform.vgpu_subscription has no effect here: every guest has whole GPUs",
            at.child("vgpu_subscription"),
            "keep it for work on vGPUs, or remove it",
        )


def _without_functions(inventory: Inventory, document: str, target: str) -> Iterator[Diagnostic]:
    """One note for all network cards that could give virtual functions."""
    cards = [
        (nic, Origin(document, ("hosts", number, "nics", place, "virtual_functions")))
        for number, spec in enumerate(inventory.hosts)
        for place, nic in enumerate(spec.nics)
        if nic.virtual_functions
    ]
    if cards:
        why = "every replica has its GPUs in one guest, which needs none to reach them"
        if not TARGETS[target].guests_on_hosts:
            why = f"on target '{target}' pods get network devices by platform.fabric.resource alone"
        yield not_acted_on(
            f"network virtual functions ('virtual_functions' of 'nics') have no effect here: {why}",
            cards[0][1],
            "keep them for work that needs several guests, or remove them",
        )


def _written(
    tree: Mapping[str, Any], fields: Sequence[Ignored], at: Origin
) -> Iterator[tuple[Ignored, Origin]]:
    """Those of `fields` that stand in `tree` and say something."""
    for field in fields:
        value: Any = tree
        for part in field.field.split("."):
            value = value[part] if value else None
        if value:
            yield field, at.child(*field.field.split("."))


def _note(field: str, target: str, why: str, at: Origin) -> Diagnostic:
    return not_acted_on(f"{field} has no effect on target '{target}': {why}", at, "remove it")
