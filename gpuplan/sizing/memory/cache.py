"""What attention of every kind keeps of a sequence, on one GPU, as the scope of `memory.memory`.

Grouped-query heads are split over the GPUs of a group, the compressed rows of latent attention are
not (DeepSeek-V2, 2024). Layers with a window keep no more than it, linear attention a state of
constant size, sparse attention all tokens and its indexer's keys in fp8 (DeepSeek-V3.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from gpuplan.frozen import record
from gpuplan.models.cache import cached_per_token, index_per_token, state_bytes
from gpuplan.models.model import Transformer
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.evidence.sheet import Sheet, sheet


@record
class Kept:
    """Which kinds of memory a model's sequences take besides layers that cache every token."""

    latent: bool
    windowed: bool
    states: bool
    indexed: bool


def kept(model: Transformer) -> Kept:
    return Kept(
        latent=model.latent is not None,
        windowed=any(group.window for group in model.attention),
        states=model.linear is not None,
        indexed=model.sparse is not None,
    )


@cache
def cache_inputs(model: Transformer) -> Mapping[str, Quantity]:
    """Elements of all layers; bytes of states; parameters beside the language model's layers."""
    windows = [(group, group.window) for group in model.attention if group.window]
    numbers: dict[str, float] = {
        "growing_elements": cached_per_token(model),
        "window_elements": sum(g.layers * g.cached_per_token for g, _ in windows),
        "window_tokens": max((tokens for _, tokens in windows), default=0),
        "index_bytes": index_per_token(model),
        "state_cache_bytes": state_bytes(model),
        "kept_parameters": model.kept_parameters,
        "tower_parameters": sum(tower.parameters for tower in model.towers),
    }
    experts, dense = model.experts, model.intermediate_size if model.dense_layers else 0
    shared = experts.shared * experts.shared_intermediate_size if experts else 0
    numbers["dense_width"] = max(dense, shared)
    units = {"index_bytes": "B", "state_cache_bytes": "B"}
    return {n: Quantity(float(v), units.get(n, "1"), model.source) for n, v in numbers.items()}


@cache
def cache_bytes(kept: Kept) -> Sheet:
    """`kv_bytes_per_token` far beyond every window, and `kv_cache_bytes` of `kv_cache_tokens` in
    `max_num_seqs` sequences."""
    split = "" if kept.latent else " / min(tensor_parallel_size, kv_heads)"
    index = " + index_bytes" if kept.indexed else ""
    token = f"(growing_elements * kv_bytes_each{split}{index}) / pipeline_stages"
    total = "kv_bytes_per_token * kv_cache_tokens"
    why = ["every token in every layer"]
    if kept.windowed:
        most = "min(kv_cache_tokens, max_num_seqs * window_tokens)"
        total += f" + window_elements * kv_bytes_each{split} / pipeline_stages * {most}"
        why.append("a window caps what its layers keep")
    if kept.states:
        total += " + max_num_seqs * state_cache_bytes / (tensor_parallel_size * pipeline_stages)"
        why.append("a state of constant size in each linear layer")
    each = "keys and values of every layer that sees all tokens"
    if kept.latent:
        each = "the compressed row of every layer, on every GPU"
    if kept.indexed:
        each += "; the indexer's keys"
    return sheet(f"""
        kv_bytes_per_token: B = {token}  # {each}
        kv_cache_bytes: B = ceil({total})  # {"; ".join(why)}
    """)
