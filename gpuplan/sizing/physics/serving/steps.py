"""Seconds of one step of an inference engine: a decode step of a batch, or the prefill of a prompt.

The kernels (`kernels.py`) are added up with factors, and the engine's own time with overheads, both
calibrated on served models (`data/serving.py`). A step never beats the roofline: the formula takes
the larger.
"""

from __future__ import annotations

from collections.abc import Container
from functools import cache

from gpuplan.sizing.evidence.sheet import Sheet, sheet
from gpuplan.sizing.physics.serving import kernels
from gpuplan.sizing.physics.serving.kernels import Phase

__all__ = ["Phase", "beside", "step"]


@cache
def step(
    phase: Phase,
    *,
    moe: bool,
    parallel: bool,
    windowed: bool,
    linear: bool = False,
    sparse: bool = False,
    spread: bool = False,
    staged: bool = False,
    across: bool = False,
    pieced: bool = False,
    unfused: bool = False,
    slower: bool = False,
    graphed: bool = False,
    mixed: bool = False,
) -> Sheet:
    """The sheet of a `decode` or `prefill` step of `tokens`, of which `outputs` are sampled;
    `work_seconds` leaves the engine's overhead out. `linear`: some layers have a state; `sparse`:
    latent attention to chosen tokens; `spread`: attention is data-parallel; `staged`: the layers
    are a pipeline over groups of GPUs; `across`: those lie on several nodes; `pieced`: the host
    starts each layer's part of a decode step; `unfused`: the norm after an exchange is a kernel of
    its own; `slower`: prompts take `prompt_factor` times as long as the kernels of others;
    `graphed`: steps with short prompts are graphs between their attention; `mixed`: prompts are
    computed in steps of others."""
    parts = {
        "attention": kernels.attention(phase, windowed=windowed, sparse=sparse),
        "projection": kernels.PRODUCTS,
        "dense": kernels.DENSE,
        "head": kernels.HEAD,
    }
    parts |= {"expert": kernels.EXPERTS} if moe else {}
    parts |= {"state": kernels.STATES[phase]} if linear else {}
    if sparse:
        parts |= {"index": kernels.INDEX} if phase == "decode" else {"gathered": kernels.GATHER}
    parts |= _exchanges(parallel=parallel, spread=spread, staged=staged, across=across)
    parts["elementwise"] = kernels.ELEMENTWISE
    names = frozenset(parts) | ({"unfused"} if unfused else set())
    if phase == "decode":
        last = _pieces(names) if pieced else _REPLAYED
    else:
        last = _launched(names, graphed=graphed)
    if phase == "prefill" and mixed:
        last += _own(names, slower=slower)
    return sum(parts.values(), Sheet(())) + _totals(phase, names, slower=slower) + last


def _exchanges(*, parallel: bool, spread: bool, staged: bool, across: bool) -> dict[str, Sheet]:
    parts = {"all_reduce": kernels.ALL_REDUCE} if parallel else {}
    if spread:
        parts |= {"crossing": kernels.CROSSING} if across else {"exchange": kernels.EXCHANGE}
    if staged:
        parts |= {"hops": kernels.HOPS} if across else {"transfer": kernels.TRANSFER}
    return parts


@cache
def beside(
    *,
    moe: bool,
    parallel: bool,
    spread: bool,
    staged: bool,
    across: bool,
    slower: bool,
    **_others: bool,
) -> Sheet:
    """What a prompt adds to a decode step in which it is computed, as `growth_seconds`: products
    read their weights once for all. Needs the scope of that step, evaluated, and of a prompt the
    `prefill_tokens` that are computed and the `prefill_own_seconds`."""
    parts = {"projection": kernels.PRODUCTS, "dense": kernels.DENSE, "head": kernels.HEAD}
    parts |= {"expert": kernels.EXPERTS} if moe else {}
    parts |= _exchanges(parallel=parallel, spread=spread, staged=staged, across=across)
    products = _work(parts)
    each = "prompt_factor * " if slower else ""
    first = sheet(f"""
        decode_products_seconds: s = {products}  # of the decode step
        prompts_beside: 1 = max(1, sequences * stalling_ranks / max(output_mean, 1))
            # that a step with prompts has: those of the requests that take the places of the ones
            # that end in a step
        tokens: 1 = tokens + prompts_beside * prefill_tokens  # of the step with its prompts
        outputs: 1 = outputs + prompts_beside  # and the first token of each
    """)
    return (
        first
        + sum(parts.values(), Sheet(()))
        + sheet(f"""
        added_seconds: s = {products} - decode_products_seconds
            # for which all of its prompts make the products longer
        growth_seconds: s = prefill_own_seconds + {each}added_seconds / prompts_beside
            # for which a prompt makes a decode step longer
    """)
    )


_FACTORS = {
    "projection": "matmul_factor * ",
    "dense": "matmul_factor * ",
    "attention": "attention_factor * ",
    "state": "attention_factor * ",
    "index": "attention_factor * ",
    "gathered": "attention_factor * ",
    "head": "",
    "expert": "expert_factor * ",
    "all_reduce": "link_factor * ",
    "exchange": "link_factor * ",
    "transfer": "link_factor * ",
    "crossing": "",
    "hops": "",
    "elementwise": "elementwise_factor * ",
}
# The parts that read, and those that compute, at the peak of their format.
READ = ("matmul", "attention", "head", "expert", "state")
COMPUTED_AT = {
    "projection": "matmul",
    "dense": "dense",
    "attention": "bf16",
    "expert": "expert",
}
_WORK = {"expert": "routed_flop"}  # without what fills tiles


def _totals(phase: Phase, names: frozenset[str], *, slower: bool) -> Sheet:
    read = " + ".join(f"{n}_bytes" for n in READ if n == "matmul" or n in names)
    products = ((_WORK.get(n, f"{n}_flop"), peak) for n, peak in COMPUTED_AT.items() if n in names)
    computed = " + ".join(f"{flop} / {peak}_peak" for flop, peak in products)
    work = _work(names)
    work = f"prompt_factor * ({work})" if slower and phase == "prefill" else work
    overhead = "step_overhead + layer_pairs * layer_overhead + scaled_inputs * scaling_overhead"
    overhead += " + block_inputs * block_overhead"
    overhead += " + expert_layers * routing_overhead" if "expert" in names else ""
    overhead += " + linear_layers * state_overhead" if "state" in names else ""
    overhead += " + unfused_exchanges * unfused_seconds" if "unfused" in names else ""
    if phase == "decode":
        overhead += " + sequences * sequence_overhead"
    return sheet(f"""
        roofline_seconds: s = max(({read}) / bandwidth, ({computed}) / compute_share)
            # no step is faster than its reads at peak bandwidth, nor its products at peak
        work_seconds: s = max(roofline_seconds, {work})  # kernels, calibrated on served models
        overhead_seconds: s = {overhead}  # the engine's own time, calibrated on served models
    """)


def _work(names: Container[str]) -> str:
    return " + ".join(f"{factor}{n}_seconds" for n, factor in _FACTORS.items() if n in names)


# The kernels of a prompt that no other token of its step shares.
_OWN = frozenset(("attention", "state", "gathered", "elementwise"))


def _own(names: frozenset[str], *, slower: bool) -> Sheet:
    work = _work(names & _OWN)
    work = f"prompt_factor * ({work})" if slower else work
    return sheet(f"""
        own_seconds: s = {work}  # of the kernels that no other token of its step shares
    """)


_REPLAYED = sheet("""
    seconds: s = work_seconds + overhead_seconds  # one step, a CUDA graph
""")


def _pieces(names: frozenset[str]) -> Sheet:
    """A graph that leaves attention out: the host starts it and the pieces between, while the GPU
    computes."""
    return sheet(f"""
        beyond_whole: 1 = min(1, max(sequences - whole_sequences, 0))
            # 1 of a step of more requests than the largest one that is one CUDA graph
        pieces_seconds: s = beyond_whole * {_split(names)} * piece_seconds
            + sequences * sequence_overhead  # for which the host starts the pieces of its graph
        seconds: s = max(work_seconds + overhead_seconds, pieces_seconds)  # one step
    """)


def _split(names: frozenset[str]) -> str:
    """Layers whose attention or state is in no graph."""
    return "(cached_layers + linear_layers)" if "state" in names else "cached_layers"


def _launched(names: frozenset[str], *, graphed: bool) -> Sheet:
    """A long prompt is in no CUDA graph: the host starts its kernels one by one."""
    launches = "cached_layers * eager_attention"
    launches += " + expert_layers * eager_experts" if "expert" in names else ""
    launches += " + linear_layers * eager_state" if "state" in names else ""
    launches += " + index_layers * eager_index" if "gathered" in names else ""
    each = sheet(f"""
        launch_seconds: s = eager_seconds * ({launches})  # of its kernels, by the host
    """)
    if graphed:
        each = sheet(f"""
        beyond_graphs: 1 = min(1, max(tokens - graphed_tokens, 0))
            # 1 of a step with more tokens than the largest CUDA graph
        kernels_seconds: s = eager_seconds * ({launches})  # for which the host starts each
        launch_seconds: s = min(kernels_seconds,
            {_split(names)} * piece_seconds + beyond_graphs * kernels_seconds)
            # for which the host starts the kernels, or the graphs between attention
        """)
    return each + sheet("""
        seconds: s = max(work_seconds + overhead_seconds, launch_seconds)  # one step
    """)
