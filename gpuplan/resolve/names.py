"""Unknown names in a manifest that is not valid otherwise: all its mistakes are told at once.

Looks at plain data and expects nothing of its shape; a valid manifest goes through `run` instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpuplan.catalog.load import Catalog
from gpuplan.diagnostics import Diagnostic
from gpuplan.manifest.v1 import ModelShorthand
from gpuplan.models.load import bundled, bundled_names
from gpuplan.resolve import messages
from gpuplan.source import Origin, SourceDocument


def unknown_names(document: SourceDocument, catalog: Catalog) -> Iterator[Diagnostic]:
    """GPUs, models and engines that do not exist."""
    root = Origin(document.name)
    data = _mapping(document.data)
    platform = _mapping(data.get("platform"))
    for number, name in enumerate(_list(platform.get("gpus"))):
        if isinstance(name, str) and catalog.gpu(name) is None:
            at = root.child("platform", "gpus", number)
            yield messages.unknown_gpu(name, catalog.gpu_ids, at)
    for number, workload in enumerate(_list(data.get("workloads"))):
        yield from _workload(_mapping(workload), root.child("workloads", number), catalog)


def _workload(workload: Mapping[str, object], at: Origin, catalog: Catalog) -> Iterator[Diagnostic]:
    model = ModelShorthand("name", "string").expand(workload.get("model"))
    name = _mapping(model).get("name")
    described = {"path", "config"} & set(_mapping(model))
    if isinstance(name, str) and not described and bundled(name) is None:
        yield messages.unknown_model(name, bundled_names(), at.child("model"))
    engine = workload.get("engine")
    if isinstance(engine, str) and catalog.engine(engine) is None:
        yield messages.unknown_engine(engine, catalog.ids("engines"), at.child("engine"))


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
