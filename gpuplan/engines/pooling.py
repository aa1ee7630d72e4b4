"""The flags with which engines read texts and write none: vectors, scores.

vLLM: `--runner` and `--convert` (docs.vllm.ai, models/pooling_models, 0.18); `--convert` leaves a
model that has a pooler of its own as it is. TEI: `text-embeddings-router --help` of 1.9.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from gpuplan.engines.container import folder
from gpuplan.engines.launch import Argument
from gpuplan.plan.model import Workload
from gpuplan.render.commented import Because

Pooling = Literal["embed", "score"]
PLACES = "texts at once: the tokens of a step are taken before all places are"
# The defaults of TEI, below which nothing is set.
CLIENT_BATCH, CONCURRENT = 32, 512


def vllm(pooling: Pooling) -> Iterator[Argument]:
    yield Because("--runner=pooling", "texts are read, none is written")
    yield f"--convert={'embed' if pooling == 'embed' else 'classify'}"


def tei(workload: Workload) -> Iterator[Argument]:
    """The router refuses what goes beyond its limits: they are what the plan expects, twice."""
    serving = workload.serving
    assert serving is not None
    each = -(-workload.concurrency // workload.replicas)
    concurrent = max(CONCURRENT, 2 * each)
    yield Because(f"--max-concurrent-requests={concurrent}", "twice those that run, at least")
    yield f"--max-client-batch-size={max(CLIENT_BATCH, serving.texts or 1)}"
    yield "--auto-truncate=false"
    cache = f"{folder(workload, 'models')}/hub"
    yield Because(f"--huggingface-hub-cache={cache}", "the image's own variable names /data")
