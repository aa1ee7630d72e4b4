"""Manifests that are refused, drawn by number: each is sound but for what a fault puts into it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from gpuplan.diagnostics import Diagnostic, Remedy, Severity
from gpuplan.pipeline import compile_files
from gpuplan.replay.numbers import uniform

T = TypeVar("T")
Tree = dict[str, Any]
Draw = Callable[[Sequence[T]], T]
GPUS = ("l4", "a10", "l40s", "a100-sxm-80gb", "h100-sxm-80gb", "h200-sxm-141gb", "h20-96gb")
CHATS = (
    "meta-llama/Llama-3.1-8B-Instruct",
    "meta-llama/Llama-3.3-70B-Instruct",
    "Qwen/Qwen3-30B-A3B",
    "deepseek-ai/DeepSeek-V3",
)
INVENTORIES = Path("examples/inventories").resolve()


class Draws:
    """Choices of one manifest, one after the other."""

    def __init__(self, number: int) -> None:
        self.number, self.stream = number, 0

    def __call__(self, items: Sequence[T]) -> T:
        self.stream += 1
        return items[int(uniform(11, self.stream, self.number) * len(items))]


def _workload(draw: Draws) -> Tree:
    kinds = (_service, _service, _service, _batch, _run, _images, _images, _notebooks)
    return {"name": "work", **draw(kinds)(draw)}


def _notebooks(draw: Draws) -> Tree:
    memory = draw(("9 GiB", "30 GiB", "200 GiB"))
    return {"task": "notebook", "notebook": {"users": draw((2, 30)), "gpu_memory": memory}}


def _run(draw: Draws) -> Tree:
    training: Tree = {
        "sequence_length": draw((2048, 8192)),
        "global_batch": draw((64, 96, 30)),
        "tokens": draw((1e8, 3e9)),
        "lora": draw((None, None, 16)),
        "optimizer": draw((None, "adamw-bf16", "adamw-8bit")),
        "sharding": draw((None, None, "none", "zero1")),
        "recompute": draw((None, None, "none")),
    }
    limits: tuple[Tree, ...] = (
        {},
        {"finish_within": "2 h"},
        {"finish_within": "40 h"},
        {"tokens_per_second": 60000},
    )
    return {
        "task": "finetuning",
        "model": draw(("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.3-70B-Instruct")),
        "training": {name: value for name, value in training.items() if value is not None},
        "slo": draw(limits),
    }


def _images(draw: Draws) -> Tree:
    images = {"mean": draw(("1024x1024", "2048x2048")), "steps": draw((20, 50))}
    model = draw(("black-forest-labs/FLUX.1-dev", "stabilityai/stable-diffusion-xl-base-1.0"))
    if draw((True, False)):
        load: Tree = {"requests_per_second": draw((0.5, 30)), "images": images}
        limit = {"request_latency": draw(("400 ms", "4 s", "20 s"))}
        return {"task": "inference", "model": model, "load": load, "slo": limit}
    load = {"requests": draw((10_000, 3_000_000)), "images": images}
    within = {"finish_within": draw(("20 s", "3 h"))}
    return {"task": "batch", "model": model, "load": load, "slo": within}


def _language(draw: Draws) -> tuple[Tree, Tree]:
    """A model, and the lengths of its load."""
    lengths: Tree = {"input_tokens": {"mean": draw((300, 3000)), "p95": draw((3000, 20000))}}
    lengths["output_tokens"] = {"mean": draw((50, 400)), "p95": draw((400, 2000))}
    model, precision = draw(CHATS), draw((None, None, "fp8", "int4"))
    return {"model": model} | ({"precision": precision} if precision else {}), lengths


def _batch(draw: Draws) -> Tree:
    model, lengths = _language(draw)
    load = {"requests": draw((20_000, 5_000_000)), **lengths}
    within = {"finish_within": draw(("30 s", "6 h"))}
    return {"task": "batch", **model, "load": load, "slo": within}


def _service(draw: Draws) -> Tree:
    model, lengths = _language(draw)
    limits = {
        "time_to_first_token": draw((None, "80 ms", "500 ms", "3 s")),
        "time_per_output_token": draw((None, "6 ms", "14 ms", "60 ms")),
        "request_latency": draw((None, None, "2 s", "9 s", "60 s")),
    }
    load = {"requests_per_second": draw((0.5, 8, 300)), **lengths}
    slo = {name: limit for name, limit in limits.items() if limit}
    return {"task": "inference", **model, "load": load, "slo": slo}


def _platform(draw: Draws) -> Tree:
    platform: Tree = {"target": "kubernetes"}
    if draw((True, True, True, False)):
        platform["gpus"] = list(dict.fromkeys((draw(GPUS), draw(GPUS))))[: draw((1, 2))]
    nodes = draw(("", "", "", "described", "few", "named", "rack", "guests", "rented"))
    if nodes in ("described", "few"):
        platform["node"] = {"gpus": draw((1, 2, 8)), "cpu_cores": 64, "memory": "1 TiB"}
        platform["node"] |= {"count": draw((1, 3))} if nodes == "few" else {}
    elif nodes == "named":
        platform |= {"nodes": ["g6.xlarge"], "gpus": ["l4"]}
    elif nodes in ("rack", "guests"):
        file, target = ("rack-7", "kubernetes") if nodes == "rack" else ("hypervisors", "libvirt")
        platform |= {"inventory": str(INVENTORIES / f"{file}.yaml"), "target": target}
        platform.pop("gpus", None)
    elif nodes == "rented":
        platform |= {"provider": "aws"}
    if draw((True, False)):
        platform["fabric"] = {"kind": "infiniband", "bandwidth_per_gpu": "400 Gb/s"}
    if draw((True, False, False)):
        platform["storage"] = {"bandwidth": "500 MB/s"}
    return platform


SERVED: tuple[tuple[str, object], ...] = (
    ("overrides.tensor_parallel_size", 16),
    ("overrides.tensor_parallel_size", 3),
    ("overrides.tensor_parallel_size", 1),
    ("overrides.replicas", 1),
    ("overrides.max_num_seqs", 1),
    ("overrides.max_num_seqs", 4000),
    ("overrides.max_model_len", 400),
    ("overrides.gpu_memory_utilization", 0.2),
    ("overrides.kv_cache_dtype", "fp8"),
    ("load.input_tokens.p95", 10),
    ("load.concurrency.users", 30),
    ("speculative.accepted_tokens", 9),
    ("disaggregation", "prefill_decode"),
)
TRAINED: tuple[tuple[str, object], ...] = (
    ("overrides.gpu_count", 7),
    ("overrides.gpu_count", 8),
    ("overrides.micro_batch", 64),
    ("dataset.rate", "2 GB/s"),
    ("training.epochs", 2),
    ("task", "training"),
)
ANY: tuple[tuple[str, object], ...] = (
    ("overrides.gpu", "l4"),
    ("overrides.partition", "1g.10gb"),
    ("overrides.shared_memory", "9 TiB"),
    ("overrides.home_storage", "1 GiB"),
    ("overrides.model_storage", "1 MiB"),
    ("overrides.cpu_cores_per_gpu", 500),
    ("overrides.memory_per_gpu", "4 TiB"),
    ("tenancy.isolation", "vm"),
    ("tenancy.isolation", "shared"),
    ("load.idle", "30 h"),
    ("notebook.users", 4),
    ("slo.finish_within", "3 h"),
    ("checkpoint.interval", "1 h"),
    ("task", "batch"),
)


def drawn(number: int) -> Tree:
    """A manifest as a tree of plain values; half have faults."""
    draw = Draws(number)
    tree: Tree = {"apiVersion": "gpuplan.dev/v1", "name": "drawn", "platform": _platform(draw)}
    tree["workloads"] = [_workload(draw)]
    work = tree["workloads"][0]
    own = TRAINED if "training" in work else SERVED if "input_tokens" in str(work) else ANY
    for _ in range(draw((0, 0, 1, 2))):
        path, value = draw((*own, draw(ANY)))
        put(tree, ("workloads", 0, *path.split(".")), value)
    return tree


def put(tree: Any, path: tuple[str | int, ...], value: object) -> None:
    """A value at a path, with the mappings on its way; None takes it away, and what is then
    empty."""
    first, *rest = path
    if rest and value is None and not isinstance(tree[first], dict | list):
        del tree[first]  # a short form
    elif rest:
        if isinstance(tree, dict) and not isinstance(tree.get(first), dict | list):
            tree[first] = {} if first not in tree else {"mean": tree[first]}
        put(tree[first], tuple(rest), value)
        if tree[first] in ({}, []):
            del tree[first]
    elif value is not None and isinstance(tree, list):
        tree[first:] = [value]  # type: ignore[misc]
    elif value is not None:
        tree[first] = value
    else:
        del tree[first]


def applied(tree: Tree, remedy: Remedy) -> Tree:
    changed = copy.deepcopy(tree)
    for change in remedy:
        put(changed, change.origin.path, change.value)
    return changed


def refusals(tree: Tree, folder: Path) -> list[Diagnostic]:
    """The errors of a compilation that writes nothing."""
    file = folder / "manifest.yaml"
    file.write_text(json.dumps(tree), encoding="utf-8")
    result = compile_files([file])
    return [d for d in result.problems if d.severity is Severity.ERROR]
