"""The seconds of a step's kernels as formulas: attention, matrix products, experts, communication.

Each kernel takes its launches and, combined by a norm, the time to read and the time to compute,
with measured efficiencies (`hardware/efficiency.py`). Small reads do not fill the memory's queues:
reading grows by the root of `small` bytes a launch.
"""

from __future__ import annotations

from typing import Literal

from gpuplan.sizing.evidence.sheet import Sheet, sheet

Phase = Literal["decode", "prefill"]


def kernel(name: str, kind: str, *, launches: str, peak: str, read: str = "") -> Sheet:
    """`name`_seconds from `name`_bytes, or the bytes `read`, and `name`_flop, with the numbers of
    `kind`."""
    read = read or f"{name}_bytes"
    return sheet(f"""
        {name}_seconds: s = {launches} * {kind}_launch  # launches, then reading and computing
            + norm(({read} + sqrt({kind}_small * {launches} * {read}))
            / (bandwidth * {kind}_read),
            {name}_flop / ({peak} * compute_share * {kind}_compute), {kind}_norm)
    """)


PRODUCTS = sheet("""
    projection_bytes: B = projection_parameters * matmul_bytes_each  # every weight is read once
    projection_flop: FLOP = mac_flop * tokens * projection_parameters  # by every token
""") + kernel("projection", "matmul", launches="projection_launches", peak="matmul_peak")
DENSE = (
    sheet("""
    dense_bytes: B = dense_parameters * dense_bytes_each  # every weight is read once
    dense_flop: FLOP = mac_flop * tokens * dense_parameters  # by every token
""")
    + kernel("dense", "dense", launches="dense_launches", peak="dense_peak")
    + sheet("""
    matmul_bytes: B = projection_bytes + dense_bytes  # beside the experts
    matmul_flop: FLOP = projection_flop + dense_flop  # beside the experts
""")
)
# Where ranks have whole experts, all wait for the one with the most tokens: it is the one that was
# measured (aiconfigurator, collector/helper.py: "EP rank with max load"), so that `spread` and the
# numbers of the kernel have it.
_EXPERTS = sheet("""
    routed_tokens: 1 = tokens * data_parallel_size  # experts take the tokens of all ranks
    touched_experts: 1 = experts  # that a step reads; spread 1 would be routing at random
        * (1 - exp(-expert_spread * routed_tokens * active_experts / experts))
    expert_bytes: B = expert_layers * touched_experts * expert_parameters * expert_bytes_each
        # the weights of the touched experts
    routed_flop: FLOP = mac_flop * expert_layers * expert_parameters * routed_tokens
        * active_experts  # by every token that is routed to an expert
    expert_flop: FLOP = max(routed_flop, mac_flop * expert_layers * expert_parameters
        * expert_tile * touched_experts)  # a tile holds some tokens at least
""")
EXPERTS = _EXPERTS + kernel("expert", "expert", launches="expert_layers", peak="expert_peak")
HEAD = sheet("""
    head_parameters: 1 = hidden_size * vocabulary / tensor_parallel_size  # the output layer
    head_bytes: B = head_parameters * bf16_bytes  # in bf16 always
    head_flop: FLOP = mac_flop * head_parameters * outputs  # by every token that is sampled
""") + kernel("head", "head", launches="1", peak="bf16_peak")
ELEMENTWISE = sheet("""
    elementwise_seconds: s = bf16_bytes * layer_pairs * tokens
        * (12 * hidden_size + 4 * mlp_width / tensor_parallel_size) / bandwidth
        # norms, rotary embedding, activations: bf16 reads and writes of a token
""")
ALL_REDUCE = sheet("""
    reduced_bytes: B = 2 * (tensor_parallel_size - 1) / tensor_parallel_size
        * tokens * hidden_size * bf16_bytes
        # what a ring moves of a layer's bf16 activations; nccl-tests PERFORMANCE.md
    all_reduce_seconds: s = all_reduces * (link_launch
        + (reduced_bytes + sqrt(link_small * reduced_bytes)) / link_rate)
        # one after attention and one after the MLP of each layer
""")
EXCHANGE = sheet("""
    exchanged_bytes: B = 2 * (ranks - 1) / ranks * routed_tokens * hidden_size * bf16_bytes
        # all-gather and reduce-scatter of all ranks' bf16 activations
    exchange_seconds: s = expert_layers * (gather_launch
        + (exchanged_bytes + sqrt(gather_small * exchanged_bytes)) / gather_rate)
        # with attention data parallelism, experts see the tokens of every rank
""")
TRANSFER = sheet("""
    transfer_seconds: s = (pipeline_stages - 1) * (link_launch
        + tokens * hidden_size * bf16_bytes / link_rate)  # activations, from stage to stage
""")
# Between nodes no measured factor stands before the wire: what crosses it takes its bytes over its
# rate at least.
HOPS = sheet("""
    hop_bytes: B = 2 * tokens * hidden_size * bf16_bytes
        # hidden states and residual, which a stage hands to the next one (vLLM, SGLang)
    hops_seconds: s = (replica_nodes - 1) * (fabric_launch
        + hop_bytes / (tensor_parallel_size * fabric_rate))
        + (pipeline_stages - 1) * (link_launch + hop_bytes / link_rate)
        # between nodes each rank sends its part by its own card; inside, each gathers the others'
""")
CROSSING = sheet("""
    crossing_bytes: B = 2 * (ranks - 1) / ranks * routed_tokens * hidden_size * bf16_bytes
        # all-gather and reduce-scatter of all ranks' bf16 activations
    crossing_rate: B/s = min(gather_rate, fabric_rate * node_gpus)
        # rings enter and leave a node by all its cards, and pass its GPUs
    crossing_seconds: s = expert_layers * (gather_launch
        + 2 * (replica_nodes - 1) * fabric_launch
        + (crossing_bytes + sqrt(gather_small * crossing_bytes)) / crossing_rate)
        # with attention data parallelism over nodes, experts see the tokens of every rank
""")
_STATE = sheet("""
    state_flop: FLOP = 3 * mac_flop * state_width * tokens  # decay, outer product and query
""") + kernel("state", "state", launches="linear_layers", peak="bf16_peak")
STATES: dict[Phase, Sheet] = {
    "decode": sheet("""
        state_bytes: B = 2 * fp32_bytes * state_width * sequences  # states are read and written
    """)
    + _STATE,
    "prefill": sheet("""
        state_bytes: B = 2 * fp32_bytes * state_width  # one state, written and read
    """)
    + _STATE,
}
INDEX = sheet("""
    index_seconds: s = index_layers * index_launch + fp8_bytes * sequences * context * index_width
        * index_heads / 64 / (bandwidth * index_read)
        # scoring every cached token in fp8, choosing the best; measured with 64 heads
""")
# Beyond `top_k` tokens, a prompt gathers the chosen rows of the cache for each of its tokens.
GATHER = sheet("""
    gathered_tokens: 1 = layers * max(prompt - top_k, 0)  # tokens of the prompt that choose
    gathered_bytes: B = gathered_tokens * top_k * cache_width * fp8_bytes  # rows of the cache
    gathered_flop: FLOP = mac_flop * gathered_tokens
        * (top_k * score_width + prompt * index_heads * index_width / index_layers / 2)
        # attention in the compressed space, and the causal scores of the indexer
""") + kernel("gathered", "gathered", launches="min(layers, gathered_tokens)", peak="bf16_peak")
_ATTENTION: dict[Phase, Sheet] = {
    "decode": sheet("""
        attention_bytes: B = sequences * attended * cache_width * kv_bytes_each
            # the KV cache is read
        attention_flop: FLOP = mac_flop * sequences * attended * score_width
            # scores and weighted values
    """),
    "prefill": sheet("""
        attention_bytes: B = cached_layers * prompt * prompt_io_width * bf16_bytes
            # queries, keys, values, out
        attention_flop: FLOP = mac_flop * prompt * attended * prompt_width / 2
            # causal scores and weighted values
    """),
}
_ATTENDED = {
    "decode": "cached tokens that a sequence attends to, over the layers",
    "prefill": "tokens that a prompt attends to, over the layers; the causal mask halves others",
}


def attention(phase: Phase, *, windowed: bool, sparse: bool) -> Sheet:
    """Softmax attention over the cached tokens, or over the best `top_k` of them."""
    seen, window = ("context", "") if phase == "decode" else ("around", "2 * ")
    all_tokens = f"min({seen}, top_k)" if sparse else seen
    sliding = f" + sliding_layers * min({seen}, {window}sliding_window)" if windowed else ""
    attended = f"attended: 1 = full_layers * {all_tokens}{sliding}  # {_ATTENDED[phase]}"
    kernels = kernel("attention", "attention", launches="cached_layers", peak="bf16_peak")
    return sheet(attended) + _ATTENTION[phase] + kernels
