"""Which fields of a manifest's workload each kind of workload uses: the rest is refused by name."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from gpuplan.diagnostics import Diagnostic
from gpuplan.manifest.v1 import Workload
from gpuplan.sizing.ask.demand import Kind
from gpuplan.sizing.ask.messages import missing_field, unused_field
from gpuplan.source import Origin

_LETTERS: dict[str, Kind] = {
    "S": "serving",
    "B": "batch",
    "I": "image service",
    "J": "image batch",
    "T": "training",
    "N": "notebook",
}
_ALL = "SBIJTN"
USED = {
    "name": _ALL,
    "description": _ALL,
    "task": _ALL,
    "model": "SBIJT",
    "precision": "SBIJT",
    "engine": _ALL,
    "command": _ALL,
    "environment": _ALL,
    "secrets": _ALL,
    "load.requests_per_second.mean": "SI",
    "load.requests_per_second.peak": "SI",
    "load.input_tokens.mean": "SB",
    "load.input_tokens.p95": "SB",
    "load.output_tokens.mean": "SB",
    "load.output_tokens.p95": "SB",
    "load.images.mean": "IJ",
    "load.images.p95": "IJ",
    "load.images.steps": "IJ",
    "load.requests": "BJ",
    "load.idle": "SI",
    "load.concurrency.users": "S",
    "load.concurrency.think_time": "S",
    "load.burst": "S",
    "load.prefix_cache": "SB",
    "speculative.method": "SB",
    "speculative.model": "SB",
    "speculative.accepted_tokens": "SB",
    "speculative.draft_tokens": "SB",
    "speculative.draft_cost": "SB",
    "speculative.draft_memory": "SB",
    "disaggregation": "SB",
    "slo.time_to_first_token": "S",
    "slo.time_per_output_token": "S",
    "slo.request_latency": "SI",
    "slo.tokens_per_second": "SBT",
    "slo.finish_within": "BJT",
    "slo.confidence": "SBIJT",
    "training.sequence_length": "T",
    "training.global_batch": "T",
    "training.tokens": "T",
    "training.epochs": "T",
    "training.steps": "T",
    "training.optimizer": "T",
    "training.lora.rank": "T",
    "training.lora.quantized": "T",
    "training.recompute": "T",
    "training.sharding": "T",
    "dataset.name": "T",
    "dataset.size": "T",
    "dataset.tokens": "T",
    "dataset.rate": "T",
    "checkpoint.interval": "T",
    "notebook.users": "N",
    "notebook.gpu_memory": "N",
    "growth.factor": "SBIJ",
    "growth.horizon": "SBIJ",
    "tenancy.team": _ALL,
    "tenancy.isolation": _ALL,
    "priority": _ALL,
    "preemptible": _ALL,
    "deadline": "BJT",
    "overrides.gpu": _ALL,
    "overrides.partition": "SBIJN",
    "overrides.replicas": "SBIJ",
    "overrides.tensor_parallel_size": "SB",
    "overrides.max_model_len": "SB",
    "overrides.max_num_seqs": "SBJ",
    "overrides.gpu_memory_utilization": "SB",
    "overrides.kv_cache_dtype": "SB",
    "overrides.micro_batch": "T",
    "overrides.gpu_count": "T",
    "overrides.cpu_cores_per_gpu": _ALL,
    "overrides.memory_per_gpu": _ALL,
    "overrides.shared_memory": _ALL,
    "overrides.model_storage": "SBIJT",
    "overrides.checkpoint_storage": "T",
    "overrides.home_storage": "N",
    "renamed_from": _ALL,
}
NEEDED: dict[Kind, dict[str, str]] = {
    "serving": {
        "load.requests_per_second": "requests_per_second: {mean: 8, peak: 20}",
        "load.input_tokens": "input_tokens: {mean: 1200, p95: 4000}",
        "load.output_tokens": "output_tokens: {mean: 300}",
    },
    "batch": {
        "load.requests": "requests: 100000",
        "load.input_tokens": "input_tokens: {mean: 1200, p95: 4000}",
        "load.output_tokens": "output_tokens: {mean: 300}",
    },
    "image service": {
        "load.requests_per_second": "requests_per_second: {mean: 1, peak: 3}",
        "load.images": "images: {mean: 1024x1024, steps: 30}",
    },
    "image batch": {
        "load.requests": "requests: 100000",
        "load.images": "images: {mean: 1024x1024, steps: 30}",
    },
    "training": {"training": "training: {tokens: 1e9, global_batch: 128, sequence_length: 4096}"},
    "notebook": {"notebook": "notebook: {users: 10, gpu_memory: 10 GiB}"},
}
# A field that stands in for one that is needed.
INSTEAD = {"load.requests_per_second": "load.concurrency"}


def written(document: BaseModel, prefix: str = "") -> Iterator[str]:
    """Dotted names of the fields that a person wrote, down to those that `USED` knows."""
    for name in sorted(document.model_fields_set):
        value, field = getattr(document, name), f"{prefix}{name}"
        if value is None:
            continue
        if isinstance(value, BaseModel) and field not in USED:
            yield from written(value, f"{field}.")
        else:
            yield field


def lookup(workload: Workload, field: str) -> object:
    """The value of a dotted field, or None where it or a parent is absent."""
    value: object = workload
    for name in field.split("."):
        value = getattr(value, name, None)
    return value


def field_problems(workload: Workload, kind: Kind, at: Origin) -> Iterator[Diagnostic]:
    """Fields that the kind does not use, then fields that it needs and lacks."""
    task = kind if kind in ("training", "notebook") else workload.task
    for field in written(workload):
        users = [_LETTERS[letter] for letter in USED[field]]
        if kind not in users:
            yield unused_field(field, task, at.child(*field.split(".")), users)
    for field, example in NEEDED[kind].items():
        other = INSTEAD.get(field) if kind == "serving" else None
        if lookup(workload, field) is None and not (other and lookup(workload, other)):
            parent, _, _ = field.rpartition(".")
            origin = at.child(*parent.split(".")) if parent else at
            yield missing_field(field, task, origin, f"for example `{example}`")


# Overrides that narrow the search rather than replace a derived number.
SEARCHED = ("gpu", "partition", "tensor_parallel_size", "replicas", "gpu_count", "micro_batch")
