"""Which fields a workload writes, against those that its kind uses and needs."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from gpuplan.diagnostics import Diagnostic
from gpuplan.manifest.traffic import Objective
from gpuplan.manifest.v1 import Workload
from gpuplan.plan.times import PLAIN, STATISTICS, field_of, time_name
from gpuplan.sizing.ask.fields import FIELDS, TOKENS, Kind, ManifestField
from gpuplan.sizing.ask.given import Given
from gpuplan.sizing.ask.messages import missing_field, read_as_tokens, unused_field
from gpuplan.source import Origin

_LENGTHS = {
    "load.input_tokens": "input_tokens: {mean: 1200, p95: 4000}",
    "load.output_tokens": "output_tokens: {mean: 300}",
}
_VIDEOS = "videos: {mean: 832x480, frames: 81, steps: 50, memory: 20 GiB}"
NEEDED: dict[Kind, dict[str, str]] = {
    "serving": {"load.requests_per_second": "requests_per_second: {mean: 8, peak: 20}"} | _LENGTHS,
    "batch": {"load.requests": "requests: 100000"} | _LENGTHS,
    "pooling service": {
        "load.requests_per_second": "requests_per_second: {mean: 8, peak: 20}",
        "load.input_tokens": "input_tokens: {mean: 200, p95: 500}",
    },
    "pooling batch": {
        "load.requests": "requests: 100000",
        "load.input_tokens": "input_tokens: {mean: 200, p95: 500}",
    },
    "speech service": {
        "load.requests_per_second": "requests_per_second: {mean: 2, peak: 5}",
        "load.audio": "audio: 30 s",
    },
    "speech batch": {"load.requests": "requests: 10000", "load.audio": "audio: 6 min"},
    "image service": {
        "load.requests_per_second": "requests_per_second: {mean: 1, peak: 3}",
        "load.images": "images: {mean: 1024x1024, steps: 30}",
        "load.images.steps": "steps: 30",
    },
    "image batch": {
        "load.requests": "requests: 100000",
        "load.images": "images: {mean: 1024x1024, steps: 30}",
        "load.images.steps": "steps: 30",
    },
    "video service": {
        "load.requests_per_second": "requests_per_second: {mean: 0.01, peak: 0.02}",
        "load.videos": _VIDEOS,
    },
    "video batch": {"load.requests": "requests: 1000", "load.videos": _VIDEOS},
    "vision service": {
        "load.requests_per_second": "requests_per_second: {mean: 40, peak: 100}",
        "load.images": "images: 1280x720",
    },
    "vision batch": {"load.requests": "requests: 1000000", "load.images": "images: 1280x720"},
    "vision training": {
        "training": "training: {epochs: 90, global_batch: 1024}",
        "dataset": "dataset: {images: 1281167, pixels: 500x375}",
        "dataset.images": "images: 1281167",
        "dataset.pixels": "pixels: 500x375",
    },
    "training": {"training": "training: {tokens: 1e9, global_batch: 128, sequence_length: 4096}"},
    "notebook": {"notebook": "notebook: {users: 10, gpu_memory: 10 GiB}"},
}
# A part of a service's load that stands in for one that is needed.
INSTEAD = {"load.requests_per_second": "load.concurrency"}


def written(document: BaseModel, prefix: str = "") -> Iterator[ManifestField]:
    """The fields that a person wrote."""
    for name in sorted(document.model_fields_set):
        value, path = getattr(document, name), f"{prefix}{name}"
        if value is None:
            continue
        if isinstance(value, Objective):
            limits = (s for s in STATISTICS if getattr(value, s) is not None)
            yield from (FIELDS[field_of(time_name(name, limit))] for limit in limits)
        elif isinstance(value, BaseModel) and path not in FIELDS:
            yield from written(value, f"{path}.")
        else:
            yield FIELDS[path]


def lookup(workload: Workload, path: str) -> object:
    """The value at a dotted path, or None where it or a parent is absent."""
    value: object = workload
    for name in path.split("."):
        value = getattr(value, name, None)
    return getattr(value, PLAIN[name]) if isinstance(value, Objective) else value


def written_numbers(workload: Workload) -> dict[str, Given]:
    """Every number that stands in the workload, by its path. A size in pixels is their product."""
    numbers: dict[str, Given] = {}
    for field in written(workload):
        value = lookup(workload, field.path)
        if isinstance(value, tuple):
            value = value[0] * value[1]
        if isinstance(value, int | float) and not isinstance(value, bool):
            source = f"manifest: workloads.{workload.name}.{field.path}"
            numbers[field.path] = Given(float(value), field.unit, source, field)
    return numbers


def field_problems(workload: Workload, kind: Kind, at: Origin) -> Iterator[Diagnostic]:
    """Fields that the kind does not use, then fields that it needs and lacks."""
    task = kind if kind in ("training", "vision training", "notebook") else workload.task
    for field in written(workload):
        if kind not in field.kinds:
            problem = unused_field(field.path, task, at.child(*field.parts), field.kinds)
            as_tokens = kind in TOKENS and field.path.startswith("load.images.")
            yield read_as_tokens(problem) if as_tokens else problem
    for path, example in NEEDED[kind].items():
        instead = INSTEAD.get(path) if kind == "serving" else None
        parent, _, _ = path.rpartition(".")
        if parent in NEEDED[kind] and lookup(workload, parent) is None:
            continue  # said of it whole
        if lookup(workload, path) is None and not (instead and lookup(workload, instead)):
            origin = at.child(*parent.split(".")) if parent else at
            yield missing_field(path, task, origin, f"for example `{example}`")
