"""Everything a manifest refers to, found: models, engines, hardware, machines. Reads the files that
the manifest names, and nothing else."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from gpuplan.catalog.load import Catalog
from gpuplan.catalog.model import EnginePin
from gpuplan.diagnostics import Diagnostic, Severity
from gpuplan.engines import megatron
from gpuplan.errors import Rejected
from gpuplan.frozen import frozen
from gpuplan.inventory import allocations
from gpuplan.manifest.load import Loaded, inventory_label, read_document, validate
from gpuplan.models.model import Model
from gpuplan.plan.model import Digest, GpuLayout, MigInstance, Neighbour, NodeLayout
from gpuplan.plan.outside.cluster import Cluster
from gpuplan.plan.partitions import PartitionName
from gpuplan.resolve.calibration import manifest_anchors
from gpuplan.resolve.clusters.chains import chain_problems, reservation_problems
from gpuplan.resolve.clusters.cluster import cluster
from gpuplan.resolve.models import find_engine, find_model
from gpuplan.resolve.names import inventory_names, same_names, target_problems
from gpuplan.resolve.network import network_problems
from gpuplan.resolve.pools import platform_problems
from gpuplan.resolve.site import find_site, plannable
from gpuplan.resolve.versions import version_problems
from gpuplan.resolve.where import Where
from gpuplan.sizing.ask.demand import Demand, ServingDemand, TrainingDemand
from gpuplan.sizing.ask.read import demand, pinned
from gpuplan.sizing.calibration.anchors import Anchors
from gpuplan.sizing.hardware.offers import Site
from gpuplan.source import Origin, Sources
from gpuplan.vendors import VENDORS

if TYPE_CHECKING:
    from gpuplan.inventory.v1 import HeldCut, Inventory


@frozen
class Resolved:
    """A manifest with everything it names. `inputs` are digests of what was read, by content and
    not by spelling. The inventory is what other stacks leave of it; `neighbours` are theirs."""

    loaded: Loaded
    demands: tuple[Demand, ...]
    site: Site
    inventory: Inventory | None
    inventory_document: str
    inputs: tuple[Digest, ...]
    neighbours: tuple[Neighbour, ...] = ()
    cluster: Cluster | None = None
    diagnostics: tuple[Diagnostic, ...] = ()


def resolve(
    loaded: Loaded,
    sources: Sources,
    catalog: Catalog,
    *,
    emitted: bool = True,
    beside: Sequence[str] = (),
) -> Resolved:
    """Raises `Rejected` with every problem of the manifest and of the files it names; a target that
    nothing is emitted for is one where its stack is to be `emitted`. Hosts that the stacks `beside`
    hold count as free."""
    if loaded.manifest.platform.regions is not None:
        from gpuplan.resolve.regions.messages import one_region_at_a_time

        at = Origin(loaded.document, ("platform", "regions"))
        raise Rejected([one_region_at_a_time(at)])
    problems = list(_names(loaded, emitted=emitted))
    whole, document = _inventory(loaded, sources, catalog, problems)
    target = loaded.manifest.platform.target
    known, left_out = plannable(whole, document, catalog, target) if whole else (None, ())
    inventory, notes = _left(loaded, known, beside)
    notes += left_out
    demands, wrong = find_demands(loaded, catalog)
    problems += wrong
    spot = any(w.preemptible for w in loaded.manifest.workloads)
    where = Where(loaded.manifest.platform, loaded.document, inventory, document, spot)
    site, wrong = find_site(where, catalog)
    problems += [d for d in wrong if d.severity is Severity.ERROR]
    notes += tuple(d for d in wrong if d.severity is not Severity.ERROR)
    platform_at = Origin(loaded.document, ("platform",))
    listed = None
    if emitted:
        listed, wrong = cluster(where.platform, platform_at, inventory, document, catalog)
        problems += wrong
    problems += network_problems(where.platform, platform_at)
    vendors = {o.gpu.vendor for o in site.gpus} if site else VENDORS.keys()
    problems += version_problems(loaded, [d.engine for d in demands], vendors, catalog)
    if problems or site is None:
        raise Rejected((*problems, *notes))
    inputs = [_digest(loaded.document, loaded.manifest), *manifest_anchors(loaded)[1]]
    if whole is not None:
        inputs.append(_digest(document, whole, without=("allocations",)))
    return Resolved(
        loaded=loaded,
        demands=demands,
        site=site,
        inventory=inventory,
        inventory_document=document,
        inputs=tuple(inputs),
        neighbours=tuple(_neighbours(loaded, whole)),
        cluster=listed,
        diagnostics=notes,
    )


def _left(
    loaded: Loaded, inventory: Inventory | None, beside: Sequence[str]
) -> tuple[Inventory | None, tuple[Diagnostic, ...]]:
    """What other stacks leave of the inventory, and a note of what they hold."""
    if inventory is None:
        return None, ()
    left, taken = allocations.available(inventory, (loaded.manifest.name, *beside))
    at = Origin(loaded.document, ("platform", "inventory"))
    return left, (allocations.held_by_others(taken, at),) if taken else ()


def _neighbours(loaded: Loaded, inventory: Inventory | None) -> Iterator[Neighbour]:
    for allocation in inventory.allocations if inventory else ():
        for host in (h for h in allocation.hosts if h.mig):
            cuts = (GpuLayout(gpus=tuple(c.gpus), instances=_instances(c)) for c in host.mig)
            layout = NodeLayout(node_count=1, node_names=(host.name,), gpus=tuple(cuts))
            if allocation.stack != loaded.manifest.name:
                yield Neighbour(stack=allocation.stack, gpus_per_node=host.gpus, layout=layout)


def _instances(cut: HeldCut) -> tuple[MigInstance, ...]:
    parts = [re.split("[@:]", text) for text in cut.instances]
    return tuple(
        MigInstance(profile=PartitionName(profile), start=int(start), size=int(size))
        for profile, start, size in parts
    )


def find_demands(loaded: Loaded, catalog: Catalog) -> tuple[tuple[Demand, ...], list[Diagnostic]]:
    """The demand of each workload, and every problem of those that have none."""
    problems: list[Diagnostic] = []
    anchors = Anchors()
    try:
        anchors, _ = manifest_anchors(loaded)
    except Rejected as rejected:
        problems.extend(rejected.diagnostics)
    numbers = range(len(loaded.manifest.workloads))
    demands = [_demand(loaded, number, catalog, problems) for number in numbers]
    return tuple(replace(d, anchors=anchors) for d in demands if d is not None), problems


def _names(loaded: Loaded, *, emitted: bool) -> Iterator[Diagnostic]:
    root = Origin(loaded.document)
    if emitted:
        yield from target_problems(loaded.manifest.platform.target, root)
    specs = loaded.manifest.workloads
    workloads = [{"name": w.name, "renamed_from": w.renamed_from} for w in specs]
    yield from same_names(workloads, root.child("workloads"))
    yield from chain_problems(loaded.manifest.workloads, root.child("workloads"))
    yield from reservation_problems(loaded.manifest, root)


def _demand(
    loaded: Loaded, number: int, catalog: Catalog, problems: list[Diagnostic]
) -> Demand | None:
    workload = loaded.manifest.workloads[number]
    at = Origin(loaded.document, ("workloads", number))
    model: Model | None = None
    try:
        model = find_model(workload.model, loaded.folder, at.child("model"))
        engine: EnginePin = find_engine(workload, model, catalog, at)
        asked = demand(loaded.manifest, number, model, engine, loaded.document)
        if isinstance(asked, ServingDemand) and asked.disaggregated:
            problems.extend(platform_problems(loaded.manifest.platform, at))
        if isinstance(asked, TrainingDemand) and workload.engine is None:
            others = (pin for pin in catalog.engines(asked.task) if pin.name != engine.name)
            unstarted = () if megatron.starts(asked.model.identifier) else (megatron.NAME,)
            return replace(asked, others=tuple(map(pinned, others)), unstarted=unstarted)
        return asked
    except Rejected as rejected:
        problems.extend(rejected.diagnostics)
        return None


def _inventory(
    loaded: Loaded, sources: Sources, catalog: Catalog, problems: list[Diagnostic]
) -> tuple[Inventory | None, str]:
    """The inventory that the manifest names; its messages stand at its own lines."""
    name = loaded.manifest.platform.inventory
    if name is None:
        return None, ""
    path = loaded.folder / name
    label = inventory_label(loaded.document, name)
    at = Origin(loaded.document, ("platform", "inventory"))
    inventory, wrong = read_inventory(path, label, sources, catalog, at)
    problems += wrong
    return inventory, label


def read_inventory(
    path: Path, label: str, sources: Sources, catalog: Catalog, at: Origin | None = None
) -> tuple[Inventory | None, list[Diagnostic]]:
    """The inventory at `path`, or every problem it has; its document is called `label`, and `at` is
    where another document names it."""
    document, problems = read_document(path, label, sources, "`gpuplan schema inventory`", at)
    if document is None:
        return None, problems
    from gpuplan.inventory.v1 import Inventory

    inventory, errors = validate(Inventory, document)
    problems += errors
    problems += inventory_names(document, catalog) if errors else ()
    problems += allocations.problems(inventory, label) if inventory else ()
    return inventory, problems


def _digest(name: str, document: BaseModel, without: Sequence[str] = ()) -> Digest:
    tree: Any = document.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, exclude=set(without)
    )
    text = json.dumps(tree, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return Digest(name=name, sha256=hashlib.sha256(text.encode()).hexdigest())
