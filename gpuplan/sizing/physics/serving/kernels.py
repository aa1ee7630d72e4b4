"""The seconds of a step's kernels as formulas: attention, matrix products, experts, communication.

Each kernel takes its launches and, combined by a norm, the time to read and the time to compute,
with measured efficiencies (`efficiency.py`). Small reads do not fill the memory's queues: reading
grows by the root of `small` bytes a launch.
"""

from __future__ import annotations

from typing import Literal

from gpuplan.sizing.evidence.formula import Formula

Line = tuple[str, Formula]
Phase = Literal["decode", "prefill"]

_KERNEL = "launches, then reading and computing, combined by a norm"


def kernel(name: str, kind: str, *, launches: str, peak: str) -> Line:
    """`name`_seconds from `name`_bytes and `name`_flop, with the numbers of `kind`."""
    text = (
        "{launches} * {kind}_launch + ((({name}_bytes + sqrt({kind}_small * {launches} * "
        "{name}_bytes)) / (bandwidth * {kind}_read)) ** {kind}_norm + ({name}_flop / "
        "({peak} * compute_share * {kind}_compute)) ** {kind}_norm) ** (1 / {kind}_norm)"
    )
    filled = text.format(name=name, kind=kind, launches=launches, peak=peak)
    return f"{name}_seconds", Formula(filled, "s", _KERNEL)


PRODUCTS: tuple[Line, ...] = (
    (
        "projection_bytes",
        Formula("projection_parameters * matmul_bytes_each", "B", "every weight is read once"),
    ),
    (
        "projection_flop",
        Formula("2 * tokens * projection_parameters", "FLOP", "two operations a weight and token"),
    ),
    kernel("projection", "matmul", launches="projection_launches", peak="matmul_peak"),
)
DENSE: tuple[Line, ...] = (
    (
        "dense_bytes",
        Formula("dense_parameters * dense_bytes_each", "B", "every weight is read once"),
    ),
    (
        "dense_flop",
        Formula("2 * tokens * dense_parameters", "FLOP", "two operations a weight and token"),
    ),
    kernel("dense", "dense", launches="dense_launches", peak="dense_peak"),
    ("matmul_bytes", Formula("projection_bytes + dense_bytes", "B", "beside the experts")),
    ("matmul_flop", Formula("projection_flop + dense_flop", "FLOP", "beside the experts")),
)
EXPERTS: tuple[Line, ...] = (
    (
        "routed_tokens",
        Formula("tokens * data_parallel_size", "1", "experts take the tokens of all ranks"),
    ),
    (
        "touched_experts",
        Formula(
            "experts * (1 - exp(-expert_spread * routed_tokens * active_experts / experts))",
            "1",
            "experts that a step reads; spread 1 would be routing at random",
        ),
    ),
    (
        "expert_bytes",
        Formula(
            "expert_layers * touched_experts * expert_parameters * expert_bytes_each",
            "B",
            "the weights of the touched experts",
        ),
    ),
    (
        "expert_flop",
        Formula(
            "expert_layers * 2 * expert_parameters "
            "* max(routed_tokens * active_experts, expert_tile * touched_experts)",
            "FLOP",
            "two operations a weight and token; a tile holds some tokens at least",
        ),
    ),
    kernel("expert", "expert", launches="expert_layers", peak="expert_peak"),
)
HEAD: tuple[Line, ...] = (
    (
        "head_bytes",
        Formula("hidden_size * vocabulary * 2 / tensor_parallel_size", "B", "bf16 weights"),
    ),
    ("head_flop", Formula("head_bytes * outputs", "FLOP", "two operations a weight and output")),
    kernel("head", "head", launches="1", peak="bf16_peak"),
)
ELEMENTWISE: Line = (
    "elementwise_seconds",
    Formula(
        "2 * layers * tokens * (12 * hidden_size + 4 * mlp_width / tensor_parallel_size) "
        "/ bandwidth",
        "s",
        "norms, rotary embedding, activations: bf16 reads and writes of a token",
    ),
)
ALL_REDUCE: tuple[Line, ...] = (
    (
        "reduced_bytes",
        Formula(
            "2 * (tensor_parallel_size - 1) / tensor_parallel_size * tokens * hidden_size * 2",
            "B",
            "what a ring moves of a layer's bf16 activations; nccl-tests PERFORMANCE.md",
        ),
    ),
    (
        "all_reduce_seconds",
        Formula(
            "all_reduces * (link_launch + (reduced_bytes + sqrt(link_small * reduced_bytes)) "
            "/ link_rate)",
            "s",
            "one after attention and one after the MLP of each layer",
        ),
    ),
)
EXCHANGE: tuple[Line, ...] = (
    (
        "exchanged_bytes",
        Formula(
            "2 * (ranks - 1) / ranks * routed_tokens * hidden_size * 2",
            "B",
            "all-gather and reduce-scatter of all ranks' bf16 activations",
        ),
    ),
    (
        "exchange_seconds",
        Formula(
            "expert_layers * (gather_launch + (exchanged_bytes + sqrt(gather_small "
            "* exchanged_bytes)) / gather_rate)",
            "s",
            "with attention data parallelism, experts see the tokens of every rank",
        ),
    ),
)
TRANSFER: Line = (
    "transfer_seconds",
    Formula(
        "(pipeline_stages - 1) * (link_launch + tokens * hidden_size * 2 / link_rate)",
        "s",
        "bf16 activations, from stage to stage",
    ),
)
STATES: dict[Phase, tuple[Line, ...]] = {
    "decode": (
        (
            "state_bytes",
            Formula("8 * state_width * sequences", "B", "fp32 states are read and written"),
        ),
        (
            "state_flop",
            Formula("6 * state_width * tokens", "FLOP", "decay, outer product and query"),
        ),
        kernel("state", "state", launches="linear_layers", peak="bf16_peak"),
    ),
    "prefill": (
        ("state_bytes", Formula("8 * state_width", "B", "one fp32 state, written and read")),
        (
            "state_flop",
            Formula("6 * state_width * tokens", "FLOP", "decay, outer product and query"),
        ),
        kernel("state", "state", launches="linear_layers", peak="bf16_peak"),
    ),
}
INDEX: tuple[Line, ...] = (
    (
        "index_seconds",
        Formula(
            "index_layers * index_launch + sequences * context * index_width * index_heads / 64 "
            "/ (bandwidth * index_read)",
            "s",
            "scoring every cached token in fp8, choosing the best; measured with 64 heads",
        ),
    ),
)
# Beyond `top_k` tokens, a prompt gathers the chosen rows of the cache for each of its tokens.
GATHER: tuple[Line, ...] = (
    (
        "gathered_tokens",
        Formula("layers * max(prompt - top_k, 0)", "1", "tokens of the prompt that choose"),
    ),
    (
        "gathered_bytes",
        Formula("gathered_tokens * top_k * cache_width", "B", "rows of the cache, in fp8"),
    ),
    (
        "gathered_flop",
        Formula(
            "gathered_tokens * (2 * top_k * score_width + prompt * index_heads * index_width "
            "/ index_layers)",
            "FLOP",
            "attention in the compressed space, and the causal scores of the indexer",
        ),
    ),
    kernel("gathered", "gathered", launches="min(layers, gathered_tokens)", peak="bf16_peak"),
)
_DECODE: tuple[Line, ...] = (
    (
        "attention_bytes",
        Formula("sequences * attended * cache_width * kv_bytes_each", "B", "the KV cache is read"),
    ),
    (
        "attention_flop",
        Formula("2 * sequences * attended * score_width", "FLOP", "scores and weighted values"),
    ),
)
_PREFILL: tuple[Line, ...] = (
    (
        "attention_bytes",
        Formula("2 * cached_layers * prompt * prompt_io_width", "B", "queries, keys, values, out"),
    ),
    (
        "attention_flop",
        Formula("prompt * attended * prompt_width", "FLOP", "causal scores and weighted values"),
    ),
)
ATTENDED = {
    "decode": (
        "full_layers * {context}",
        " + sliding_layers * min(context, sliding_window)",
        "cached tokens that a sequence attends to, over the layers",
    ),
    "prefill": (
        "full_layers * {context}",
        " + sliding_layers * min(prompt, 2 * sliding_window)",
        "tokens that a prompt attends to, over the layers; the causal mask halves the others",
    ),
}


def attention(phase: Phase, *, windowed: bool, sparse: bool) -> tuple[Line, ...]:
    """Softmax attention over the cached tokens, or over the best `top_k` of them."""
    full, sliding, source = ATTENDED[phase]
    seen = "context" if phase == "decode" else "prompt"
    seen = f"min({seen}, top_k)" if sparse else seen
    text = full.format(context=seen) + (sliding if windowed else "")
    return (
        ("attended", Formula(text, "1", source)),
        *(_DECODE if phase == "decode" else _PREFILL),
        kernel("attention", "attention", launches="cached_layers", peak="bf16_peak"),
    )
