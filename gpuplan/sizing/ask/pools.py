"""What a workload says that pools for prefill and for decode do not go with."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.diagnostics import Change, Diagnostic
from gpuplan.manifest.v1 import Workload
from gpuplan.sizing.ask.messages import contradiction
from gpuplan.source import Origin

ENGINE = "vllm"  # whose router is published with its arguments
UNPLANNED = (
    ("command", "both kinds of replicas are started with arguments of their own"),
    ("load.concurrency", "users who wait for their answers do not say how many prompts arrive"),
    ("load.burst", "a queue of prompts that come in bursts is not predicted for them"),
    ("speculative", "what drafts would bring on a decode replica is not predicted"),
    ("overrides.replicas", "it does not say how many of them prefill"),
    ("overrides.pipeline_parallel_size", "a replica of a pool lies inside a node, without stages"),
    ("overrides.partition", "a cache is sent by whole GPUs"),
    ("overrides.max_num_seqs", "both kinds of replicas have settings of their own"),
    ("overrides.max_num_batched_tokens", "both kinds of replicas have settings of their own"),
)


def pools_problems(workload: Workload, at: Origin) -> Iterator[Diagnostic]:
    if workload.disaggregation is None:
        return
    for path, why in UNPLANNED:
        if _stated(workload, path):
            field = at.child(*path.split("."))
            yield contradiction(
                f"'{path}' and pools for prefill and decode",
                field,
                why,
                "remove it, or `disaggregation`",
                Change(field, None),
            )
    if workload.engine is not None and workload.engine.name not in (None, ENGINE):
        field = at.child("disaggregation")
        yield contradiction(
            f"'{workload.engine.name}' is not started as pools for prefill and decode",
            field,
            f"stacks have the router of {ENGINE}, which hands a cache over by NIXL",
            f"write `engine: {ENGINE}`, or remove it",
            Change(field, None),
        )


def _stated(workload: Workload, path: str) -> bool:
    value: object = workload
    for name in path.split("."):
        value = getattr(value, name, None)
    return value is not None
