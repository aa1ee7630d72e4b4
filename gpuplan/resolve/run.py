"""Everything a manifest refers to, found: models, engines, hardware, machines. Reads the files that
the manifest names, and nothing else."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from gpuplan.catalog.load import Catalog
from gpuplan.catalog.model import EnginePin
from gpuplan.diagnostics import Diagnostic
from gpuplan.errors import Rejected
from gpuplan.inventory.v1 import Inventory
from gpuplan.manifest.load import Loaded, read_text, unreadable_at, validate
from gpuplan.manifest.text import read_yaml
from gpuplan.models.model import Model
from gpuplan.plan.model import Digest
from gpuplan.resolve.models import find_engine, find_model
from gpuplan.resolve.site import Where, find_site
from gpuplan.sizing.api import Demand, Site
from gpuplan.sizing.demand import demand
from gpuplan.source import Origin, Sources


@dataclass(frozen=True, slots=True)
class Resolved:
    """A manifest with everything it names. `inputs` are digests of what was read, by content and
    not by spelling."""

    loaded: Loaded
    demands: tuple[Demand, ...]
    site: Site
    inventory: Inventory | None
    inventory_document: str
    inputs: tuple[Digest, ...]


def resolve(loaded: Loaded, sources: Sources, catalog: Catalog) -> Resolved:
    """Raises `Rejected` with every problem of the manifest and of the files it names."""
    problems: list[Diagnostic] = []
    inventory, document = _inventory(loaded, sources, problems)
    demands = [_demand(loaded, n, catalog, problems) for n in range(len(loaded.manifest.workloads))]
    where = Where(loaded.manifest.platform, loaded.document, inventory, document)
    site, wrong = find_site(where, catalog)
    problems += wrong
    if problems or site is None:
        raise Rejected(problems)
    inputs = [_digest(loaded.document, loaded.manifest)]
    if inventory is not None:
        inputs.append(_digest(document, inventory))
    return Resolved(
        loaded=loaded,
        demands=tuple(d for d in demands if d is not None),
        site=site,
        inventory=inventory,
        inventory_document=document,
        inputs=tuple(inputs),
    )


def _demand(
    loaded: Loaded, number: int, catalog: Catalog, problems: list[Diagnostic]
) -> Demand | None:
    workload = loaded.manifest.workloads[number]
    at = Origin(loaded.document, ("workloads", number))
    model: Model | None = None
    try:
        model = find_model(workload.model, loaded.folder, at.child("model"))
        engine: EnginePin = find_engine(workload, model, catalog, at)
        return demand(loaded.manifest, number, model, engine, loaded.document)
    except Rejected as rejected:
        problems.extend(rejected.diagnostics)
        return None


def _inventory(
    loaded: Loaded, sources: Sources, problems: list[Diagnostic]
) -> tuple[Inventory | None, str]:
    """The inventory that the manifest names; its messages stand at its own lines."""
    name = loaded.manifest.platform.inventory
    if name is None:
        return None, ""
    path = loaded.folder / name
    text = read_text(path)
    if isinstance(text, Diagnostic):
        at = Origin(loaded.document, ("platform", "inventory"))
        problems.append(unreadable_at(text, at))
        return None, name
    for document, wrong in read_yaml(path.name, text, str(path)):
        sources.add(document)
        problems += wrong
        if wrong:
            return None, document.name
        inventory, errors = validate(Inventory, document)
        problems += errors
        return inventory, document.name
    return None, path.name


def _digest(name: str, document: BaseModel) -> Digest:
    tree: Any = document.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    text = json.dumps(tree, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return Digest(name=name, sha256=hashlib.sha256(text.encode()).hexdigest())
