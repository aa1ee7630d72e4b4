"""What single fields decide in one family of dense decoders: heads, parts, positions."""

from __future__ import annotations

from dataclasses import replace

from gpuplan.models.families.layers import Bias, Frame, Parts
from gpuplan.models.fields import Fields


def head_bias(_fields: Fields, _frame: Frame, vocabulary: int) -> int:
    return vocabulary


def labels(fields: Fields, frame: Frame, _vocabulary: int) -> int:
    """A classifier without a bias over the last token."""
    return frame.hidden_size * (len(fields.mapping("id2label")) or 2)


def embedding_norm(_fields: Fields, frame: Frame, _vocabulary: int) -> int:
    return 2 * frame.hidden_size


def positions(fields: Fields, frame: Frame, _vocabulary: int) -> int:
    return fields.whole("max_position_embeddings") * frame.hidden_size


def opt(fields: Fields, frame: Frame, vocabulary: int) -> int:
    """Positions from 2 on; embeddings of another width have projections in and out."""
    hidden = frame.hidden_size
    width = fields.whole("word_embed_proj_dim", hidden)
    total = (fields.whole("max_position_embeddings") + 2) * hidden
    if width != hidden:
        total += 2 * width * hidden - vocabulary * (hidden - width)
    return total - (0 if fields.flag("do_layer_norm_before", default=True) else 2 * hidden)


def falcon_heads(fields: Fields, heads: int) -> int:
    if fields.flag("new_decoder_architecture"):
        return fields.whole("num_kv_heads", heads)
    return 1 if fields.flag("multi_query", default=True) else heads


def falcon(fields: Fields, parts: Parts) -> Parts:
    """Biases everywhere or nowhere; one norm where attention and MLP stand beside each other."""
    biased = fields.flag("bias")
    parallel = fields.flag("parallel_attn", default=True)
    norms = 1 if parallel and not fields.flag("new_decoder_architecture") else 2
    norms = fields.whole("num_ln_in_parallel_attn", norms)
    bias: Bias = "all" if biased else "none"
    return replace(parts, attention_bias=bias, mlp_bias=biased, norms=norms, parallel=parallel)


def neox(fields: Fields, parts: Parts) -> Parts:
    return replace(parts, parallel=fields.flag("use_parallel_residual", default=True))


def one_kv_head(fields: Fields, heads: int) -> int:
    return 1 if fields.flag("multi_query", default=True) else heads


def chatglm_heads(fields: Fields, heads: int) -> int:
    return fields.whole("kv_groups") if fields.flag("multi_query_attention") else heads


def mpt_heads(fields: Fields, heads: int) -> int:
    kinds = fields.mapping("attn_config")
    kv_heads = kinds.get("kv_n_heads") or heads
    return kv_heads if type(kv_heads) is int and 0 < kv_heads <= heads else 1


def mpt(fields: Fields, parts: Parts) -> Parts:
    biased = not fields.flag("no_bias", default=True)
    bias: Bias = "all" if biased else "none"
    return replace(parts, norm_bias=biased, mlp_bias=biased, attention_bias=bias)


def mpt_positions(fields: Fields, frame: Frame, vocabulary: int) -> int:
    """Learned, where there is no ALiBi."""
    if fields.mapping("attn_config").get("alibi") is True:
        return 0
    return (
        positions(fields, frame, vocabulary) if fields.flag("learned_pos_emb", default=True) else 0
    )


def cohere(fields: Fields, parts: Parts) -> Parts:
    return replace(parts, query_key_norm="width" if fields.flag("use_qk_norm") else "none")


def starcoder(fields: Fields, parts: Parts) -> Parts:
    biased = fields.flag("use_bias", default=True)
    bias: Bias = "all" if biased else "none"
    return replace(parts, attention_bias=bias, mlp_bias=biased)


def stablelm(fields: Fields, parts: Parts) -> Parts:
    bias: Bias = "query_key_value" if fields.flag("use_qkv_bias") else "none"
    parallel = fields.flag("use_parallel_residual")
    return replace(parts, attention_bias=bias, norms=1 if parallel else 2, parallel=parallel)
