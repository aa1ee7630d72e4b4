"""Mixtures of experts, by how their fields are named."""

from __future__ import annotations

from gpuplan.models.fields import Fields
from gpuplan.models.model import Experts


def local(fields: Fields, layers: int) -> Experts:
    """Mixtral, gpt-oss: every layer has experts, as wide as `intermediate_size` says."""
    return _experts(fields, "num_local_experts", "intermediate_size", 0, layers)


def qwen(fields: Fields, layers: int) -> Experts:
    """Every `decoder_sparse_step`-th layer but those of `mlp_only_layers`."""
    step = fields.whole("decoder_sparse_step")
    dense = set(fields.entries("mlp_only_layers", int, "a list of layers"))
    having = sum((i + 1) % step == 0 and i not in dense for i in range(layers))
    return _experts(fields, "num_experts", "moe_intermediate_size", 0, having)


def deepseek(fields: Fields, layers: int) -> Experts:
    """The layers from `first_k_dense_replace` on, with shared experts beside the routed ones."""
    first = fields.whole("first_k_dense_replace", least=0)
    step = fields.whole("moe_layer_freq", 1)
    fields.at_most("first_k_dense_replace", first, "num_hidden_layers", layers)
    having = sum(i >= first and i % step == 0 for i in range(layers))
    shared = fields.whole("n_shared_experts", 0, least=0)
    return _experts(fields, "n_routed_experts", "moe_intermediate_size", shared, having)


def _experts(fields: Fields, count: str, width: str, shared: int, layers: int) -> Experts:
    total = fields.whole(count)
    active = fields.whole("num_experts_per_tok")
    fields.at_most("num_experts_per_tok", active, count, total)
    size = fields.whole(width)
    return Experts(
        count=total,
        active=active,
        intermediate_size=size,
        shared=shared,
        shared_intermediate_size=size if shared else 0,
        layers=layers,
    )
