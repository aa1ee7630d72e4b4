"""The flags with which each serving engine drafts tokens.

Flags and methods are those of vLLM's `SpeculativeConfig` (documentation of 0.12) and of SGLang's
page on speculative decoding; a chain of drafts, not a tree, is what the sizing takes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from gpuplan.plan.model import Workload

# Multi-token prediction is drafted by the same code as EAGLE.
_SGLANG = {
    "mtp": "EAGLE",
    "eagle": "EAGLE",
    "eagle3": "EAGLE3",
    "draft_model": "STANDALONE",
    "ngram": "NGRAM",
}


def vllm(workload: Workload) -> Iterator[tuple[str, str]]:
    """Names and values of flags."""
    drafts = workload.serving.speculative if workload.serving else None
    if drafts is not None:
        config: dict[str, object] = {"method": drafts.method}
        if drafts.model is not None:
            config["model"] = drafts.model
        if drafts.revision is not None:
            config["revision"] = drafts.revision
        yield "speculative-config", json.dumps(config | {"num_speculative_tokens": drafts.tokens})


def sglang(workload: Workload) -> Iterator[tuple[str, str]]:
    drafts = workload.serving.speculative if workload.serving else None
    if drafts is None:
        return
    yield "speculative-algorithm", _SGLANG[drafts.method]
    if drafts.model is not None:
        yield "speculative-draft-model-path", drafts.model
    if drafts.revision is not None:
        yield "speculative-draft-model-revision", drafts.revision
    if drafts.method == "ngram":
        yield "speculative-num-draft-tokens", str(drafts.tokens)
        return
    yield "speculative-num-steps", str(drafts.tokens)
    yield "speculative-eagle-topk", "1"
    yield "speculative-num-draft-tokens", str(drafts.tokens + 1)  # with the one that is sampled


ENGINES = {"vllm": vllm, "sglang": sglang}
