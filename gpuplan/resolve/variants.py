"""A manifest's workload with another model, or its platform with another inventory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gpuplan.catalog.load import Catalog
from gpuplan.manifest.load import Loaded
from gpuplan.manifest.parts import ModelDimensions, Overrides
from gpuplan.models.model import Model, Transformer
from gpuplan.resolve.calibration import manifest_anchors
from gpuplan.resolve.models import find_engine
from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.ask.precision import precision_problem
from gpuplan.sizing.ask.read import demand
from gpuplan.source import Origin

# Fields of a platform that say which nodes there are.
NO_NODES: dict[str, object] = dict.fromkeys(("inventory", "node", "nodes", "provider", "region"))
KEPT = ("gpu", "partition")  # overrides that say which hardware; the others were for one model


def on_inventory(loaded: Loaded, path: Path) -> Loaded:
    """The manifest on all GPUs of the inventory at `path`, instead of what its platform offers."""
    changed = NO_NODES | {"inventory": str(path.resolve()), "gpus": None}
    platform = loaded.manifest.platform.model_copy(update=changed)
    return Loaded(
        loaded.manifest.model_copy(update={"platform": platform}), loaded.document, loaded.folder
    )


def with_model(loaded: Loaded, number: int, model: Model, catalog: Catalog) -> Demand:
    """Workload `number` with a bundled model, in the precision that is written where an engine
    serves it, else as it is published. Raises `Rejected`."""
    workload = loaded.manifest.workloads[number]
    at = Origin(loaded.document, ("workloads", number))
    precision = workload.precision
    if precision and isinstance(model, Transformer):
        precision = None if any(precision_problem(model, precision, None, at)) else precision
    written = workload.overrides or Overrides()
    kept = {f: v for f in KEPT if (v := getattr(written, f)) is not None}
    changed = workload.model_copy(
        update={
            "model": ModelDimensions(name=model.identifier),
            "precision": precision,
            "overrides": Overrides(**kept),
        }
    )
    engine = find_engine(changed, model, catalog, at)
    others = list(loaded.manifest.workloads)
    others[number] = changed
    manifest = loaded.manifest.model_copy(update={"workloads": others})
    asked = demand(manifest, number, model, engine, loaded.document)
    return replace(asked, anchors=manifest_anchors(loaded)[0])
