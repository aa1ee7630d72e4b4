"""Names in a document that is not valid otherwise: all its mistakes are told at once.

Looks at plain data and expects nothing of its shape; a valid manifest goes through `run` instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpuplan.catalog.load import Catalog
from gpuplan.diagnostics import Diagnostic
from gpuplan.manifest.parts import ModelShorthand
from gpuplan.models.load import known, known_names
from gpuplan.resolve import messages
from gpuplan.source import Origin, SourceDocument
from gpuplan.targets import TARGETS, implemented


def name_problems(
    document: SourceDocument, catalog: Catalog, *, emitted: bool = True
) -> Iterator[Diagnostic]:
    """GPUs, models and engines that do not exist, where its stack is to be `emitted` a target that
    nothing is emitted for, and names that two workloads have."""
    root = Origin(document.name)
    data = _mapping(document.data)
    platform = _mapping(data.get("platform"))
    target = platform.get("target")
    if emitted and isinstance(target, str) and target in TARGETS:
        yield from target_problems(target, root)
    yield from same_names(data.get("workloads"), root.child("workloads"))
    for number, name in enumerate(_list(platform.get("gpus"))):
        if isinstance(name, str) and catalog.gpu(name) is None:
            at = root.child("platform", "gpus", number)
            yield messages.unknown_gpu(name, catalog.gpu_ids, at)
    for number, workload in enumerate(_list(data.get("workloads"))):
        yield from _workload(_mapping(workload), root.child("workloads", number), catalog)


def target_problems(target: str, root: Origin) -> Iterator[Diagnostic]:
    if not TARGETS[target].backends:
        yield messages.unsupported_target(target, implemented(), root.child("platform", "target"))


def inventory_names(document: SourceDocument, catalog: Catalog) -> Iterator[Diagnostic]:
    """GPUs of an inventory that do not exist."""
    hosts = Origin(document.name, ("hosts",))
    for number, host in enumerate(_list(_mapping(document.data).get("hosts"))):
        for place, gpu in enumerate(_list(_mapping(host).get("gpus"))):
            name = _mapping(gpu).get("type")
            if isinstance(name, str) and name and catalog.gpu(name) is None:
                at = hosts.child(number, "gpus", place, "type")
                yield messages.unknown_gpu(name, catalog.gpu_ids, at)


def same_names(workloads: object, at: Origin) -> Iterator[Diagnostic]:
    """Names that two of `workloads` have, or had before they were renamed."""
    specs = [(_mapping(w), at.child(n)) for n, w in enumerate(_list(workloads))]
    now = [(spec.get("name"), place.child("name")) for spec, place in specs]
    before = [
        (name, place.child("renamed_from", number))
        for spec, place in specs
        for number, name in enumerate(_list(spec.get("renamed_from")))
    ]
    seen: dict[str, Origin] = {}
    for name, place in (*now, *before):
        if isinstance(name, str) and name in seen:
            yield messages.same_name(name, seen[name], place)
        elif isinstance(name, str):
            seen[name] = place


def _workload(workload: Mapping[str, object], at: Origin, catalog: Catalog) -> Iterator[Diagnostic]:
    model = ModelShorthand("name", "string").expand(workload.get("model"))
    name = _mapping(model).get("name")
    described = {"path", "config"} & set(_mapping(model))
    if isinstance(name, str) and not described and known(name) is None:
        from gpuplan.models.vision import is_detector

        if not is_detector(name):
            yield messages.unknown_model(name, known_names(), at.child("model"))
    engine = workload.get("engine")
    if isinstance(engine, str) and catalog.engine(engine) is None:
        yield messages.unknown_engine(engine, catalog.ids("engines"), at.child("engine"))


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
