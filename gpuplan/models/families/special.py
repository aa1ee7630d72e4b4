"""Attention that one family alone has: per-kind heads, blocks of tokens, compressed caches.

Counted as the modelling code of huggingface/transformers 5.23 builds them.
"""

from __future__ import annotations

from dataclasses import replace

from gpuplan.models.families.attention import grouped, projections
from gpuplan.models.families.experts import mixture, mlp
from gpuplan.models.families.layers import Feed, Frame, Mixer
from gpuplan.models.fields import Fields
from gpuplan.models.model import AttentionLayers, SparseAttention


def mimo(fields: Fields, frame: Frame) -> tuple[Mixer, ...]:
    """MiMo-V2-Flash: layers with a window have KV heads of their own number, and sinks."""
    value = fields.whole("v_head_dim")
    parts = replace(frame.parts, attention_sinks=True)
    window = grouped(
        replace(frame, attention_heads=fields.whole("swa_num_attention_heads"), parts=parts),
        kv_heads=fields.whole("swa_num_key_value_heads"),
        head_dim=fields.whole("swa_head_dim"),
        value_dim=fields.whole("swa_v_head_dim"),
        window=fields.whole("sliding_window"),
    )
    full = grouped(frame, value_dim=value)
    listed = fields.entries("hybrid_layer_pattern", int, "a list of 0 and 1", frame.list_length)
    return tuple(window if has else full for has in listed)


def gemma4(fields: Fields, frame: Frame) -> tuple[Mixer, ...]:
    """Gemma 4: layers that see everything have wider heads, and keys that are values as well. The
    last `num_kv_shared_layers` read what the last layers of their kind before them have cached."""
    window = grouped(frame, window=fields.whole("sliding_window"))
    heads = fields.whole("num_global_key_value_heads", frame.kv_heads)
    size = fields.whole("global_head_dim")
    full = grouped(frame, kv_heads=heads, head_dim=size)
    if fields.flag("attention_k_eq_v"):
        full = replace(full, linear=full.linear - frame.hidden_size * heads * size)
    kinds = fields.choices(
        "layer_types", ("sliding_attention", "full_attention"), frame.list_length
    )
    made = [window if kind == "sliding_attention" else full for kind in kinds]
    own = len(made) - _sharing(fields, frame)
    beside = _beside(fields, frame)
    return tuple(
        _with(mixer if place < own else _reading(mixer, frame), beside)
        for place, mixer in enumerate(made)
    )


def _sharing(fields: Fields, frame: Frame) -> int:
    count = fields.whole("num_kv_shared_layers", 0, least=0)
    fields.at_most("num_kv_shared_layers", count, "num_hidden_layers", frame.layers)
    return count


def _reading(mixer: Mixer, frame: Frame) -> Mixer:
    """Without keys and values of its own, nor the norm of the keys."""
    assert mixer.attention
    kind = replace(mixer.attention, cached_per_token=0)
    return replace(
        mixer, linear=projections(kind, frame), rest=mixer.rest - kind.head_dim, attention=kind
    )


def _beside(fields: Fields, frame: Frame) -> tuple[int, int]:
    """Of a layer's own embedding of each token: a gate, a projection and its part of the one that
    all share; a norm."""
    width = fields.whole("hidden_size_per_layer_input", 0, least=0)
    return (3 * frame.hidden_size * width, frame.hidden_size) if width else (0, 0)


def _with(mixer: Mixer, beside: tuple[int, int]) -> Mixer:
    return replace(mixer, linear=mixer.linear + beside[0], rest=mixer.rest + beside[1])


def gemma4_ends(fields: Fields, frame: Frame, vocabulary: int) -> int:
    """Gemma 4 E2B and E4B: an embedding of each token for each layer, and a norm."""
    width = fields.whole("hidden_size_per_layer_input", 0, least=0)
    words = fields.whole("vocab_size_per_layer_input", vocabulary)
    return (words * frame.layers + 1) * width


def gemma4_dense(fields: Fields, frame: Frame) -> tuple[Feed, ...]:
    """Gemma 4: with `use_double_wide_mlp`, layers that share a cache are twice as wide."""
    width, sharing = fields.whole("intermediate_size"), _sharing(fields, frame)
    wide = 2 * width if fields.flag("use_double_wide_mlp") else width
    return (mlp(frame, width),) * (frame.layers - sharing) + (mlp(frame, wide),) * sharing


def step(fields: Fields, frame: Frame) -> tuple[Mixer, ...]:
    """Step 3.5: layers with a window have more query heads; each head has a gate."""
    other = fields.within("attention_other_setting").whole("num_attention_heads")
    wide = replace(frame, attention_heads=other)
    full = _with(grouped(frame), (frame.hidden_size * frame.attention_heads, 0))
    window = _with(
        grouped(wide, window=fields.whole("sliding_window")), (frame.hidden_size * other, 0)
    )
    kinds = fields.choices("layer_types", ("sliding_attention", "full_attention"))
    return tuple(window if k == "sliding_attention" else full for k in kinds[: frame.layers])


def gemma4_feeds(fields: Fields, frame: Frame) -> tuple[Feed, ...]:
    """Gemma 4: experts stand beside the MLP, with norms of their own and a scale for each."""
    fields.must_be("use_double_wide_mlp", value=False)
    made = mixture(
        fields,
        frame,
        count="num_experts",
        active="top_k_experts",
        width="moe_intermediate_size",
        shared=1,
        shared_width=fields.whole("intermediate_size"),
    )
    beside = 4 * frame.hidden_size + fields.whole("num_experts")
    both = replace(made, rest=made.rest + beside, active_rest=made.active_rest + beside)
    return (both,) * frame.layers


def blocks(fields: Fields, frame: Frame) -> tuple[Mixer, ...]:
    """MiniMax-M3: some layers attend to the best blocks of tokens, chosen by a small indexer."""
    stated = fields.within("sparse_attention_config")
    heads, size = stated.whole("sparse_num_index_heads"), stated.whole("sparse_index_dim")
    block, dense = stated.whole("sparse_block_size"), grouped(frame)
    sparse = SparseAttention(
        layers=1,
        top_k=stated.whole("sparse_topk_blocks") * block,
        block=block,
        index_layers=1,
        index_heads=heads,
        index_head_dim=size,
        index_cached_per_token=size,
    )
    indexer = frame.hidden_size * (heads + 1) * size
    chosen = replace(
        dense, linear=dense.linear + indexer, rest=dense.rest + 2 * size, sparse=sparse
    )
    listed = stated.entries("sparse_attention_freq", int, "a list of 0 and 1", frame.list_length)
    return tuple(chosen if has else dense for has in listed)


def compressed(fields: Fields, frame: Frame) -> tuple[Mixer, ...]:
    """DeepSeek-V4: one KV head, a window, and beyond it one entry for every 4 tokens, of which an
    indexer chooses, or for every 128; `compress_ratios` says which, 0 is the window alone."""
    ratios = fields.entries("compress_ratios", int, "a list of 0, 4 and 128")[: frame.layers]
    made = {ratio: _compressed(fields, frame, ratio) for ratio in sorted(set(ratios))}
    return tuple(made[ratio] for ratio in ratios)


def _compressed(fields: Fields, frame: Frame, ratio: int) -> Mixer:
    hidden, heads, size = frame.hidden_size, frame.attention_heads, frame.head_dim
    rank, out = fields.whole("q_lora_rank"), fields.whole("o_lora_rank")
    window, groups = fields.whole("sliding_window"), fields.whole("o_groups")
    linear = hidden * rank + rank * heads * size + hidden * size
    linear += heads * size * out + groups * out * hidden
    kind = AttentionLayers(
        layers=1,
        heads=heads,
        kv_heads=1,
        head_dim=size,
        value_dim=size,
        cached_per_token=size,
        window=None if ratio else window,
        tokens_per_entry=ratio or 1,
        recent=window if ratio else 0,
    )
    own = Mixer(linear=linear, rest=rank + size + heads, attention=kind)
    if not ratio:
        return own
    wide = 2 if ratio < window else 1  # overlapping entries
    compressor = 2 * hidden * wide * size
    biases = ratio * wide * size + size
    own = replace(own, linear=own.linear + compressor, rest=own.rest + biases)
    return _indexed(fields, frame, own, ratio) if wide == 2 else own


def _indexed(fields: Fields, frame: Frame, own: Mixer, ratio: int) -> Mixer:
    """With the indexer, whose keys are compressed in the same way."""
    heads, size = fields.whole("index_n_heads"), fields.whole("index_head_dim")
    linear = 4 * frame.hidden_size * size + fields.whole("q_lora_rank") * heads * size
    rest = frame.hidden_size * heads + ratio * 2 * size + size
    sparse = SparseAttention(
        layers=1,
        top_k=fields.whole("index_topk") * ratio,
        block=ratio,
        index_layers=1,
        index_heads=heads,
        index_head_dim=size,
        index_cached_per_token=size // ratio,
    )
    return replace(own, linear=own.linear + linear, rest=own.rest + rest, sparse=sparse)


def hyper_connections(fields: Fields, frame: Frame, _vocabulary: int) -> int:
    """DeepSeek-V4: `hc_mult` residual streams, mixed before attention and MLP of every layer and
    after the last one. The experts of the first layers are found by token in a table, not
    counted."""
    streams = fields.whole("hc_mult")
    mixes = (2 + streams) * streams
    each = mixes * streams * frame.hidden_size + mixes + 3
    last = streams * streams * frame.hidden_size + streams + 1
    return frame.layers * 2 * each + last


def mllama(fields: Fields, frame: Frame) -> tuple[Mixer, ...]:
    """Llama 3.2 Vision: `cross_attention_layers` read the image, of which alone they keep a
    cache."""
    crossing = set(fields.entries("cross_attention_layers", int, "a list of layers"))
    own = grouped(frame)
    assert own.attention is not None
    kept = replace(own.attention, cached_per_token=0)
    cross = Mixer(
        linear=projections(own.attention, frame), rest=2 * frame.head_dim + 2, attention=kept
    )
    return tuple(cross if i in crossing else own for i in range(frame.layers))


def image_tokens(_fields: Fields, frame: Frame, _vocabulary: int) -> int:
    """Llama 3.2 Vision: eight embeddings more than the head has."""
    return 8 * frame.hidden_size
