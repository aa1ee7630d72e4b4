"""The formulas of a served model, line by line, on small numbers that differ.

What is on the right is the formula with the numbers in it: a product takes 2 FLOP, bf16 2 bytes,
fp32 4.
"""

from __future__ import annotations

from math import exp, log2, sqrt

import pytest

from gpuplan.sizing.evidence.sheet import Sheet
from gpuplan.sizing.kinds.serving import load, record
from gpuplan.sizing.memory import cache, serving
from gpuplan.sizing.model import shapes
from gpuplan.sizing.physics.serving import declared, kernels, latency
from gpuplan.sizing.physics.serving.steps import beside, step
from tests.support.formulas import KNOWN, agree

SERVING = {
    "sequences": 6.0,
    "tokens": 12.0,
    "outputs": 8.0,
    "prompt": 40.0,
    "around": 45.0,
    "context": 90.0,
    "top_k": 24.0,
    "layers": 10.0,
    "layer_pairs": 9.0,
    "cached_layers": 8.0,
    "full_layers": 5.0,
    "sliding_layers": 3.0,
    "sliding_window": 16.0,
    "linear_layers": 4.0,
    "expert_layers": 7.0,
    "hidden_size": 32.0,
    "vocabulary": 100.0,
    "mlp_width": 48.0,
    "tensor_parallel_size": 4.0,
    "data_parallel_size": 2.0,
    "pipeline_stages": 3.0,
    "ranks": 8.0,
    "projection_parameters": 500.0,
    "dense_parameters": 900.0,
    "matmul_bytes_each": 1.5,
    "dense_bytes_each": 0.75,
    "projection_bytes": 750.0,
    "projection_flop": 12000.0,
    "projection_launches": 20.0,
    "dense_bytes": 675.0,
    "dense_flop": 21600.0,
    "dense_launches": 14.0,
    "matmul_launch": 0.01,
    "matmul_small": 3.0,
    "matmul_read": 0.8,
    "matmul_compute": 0.7,
    "matmul_norm": 4.0,
    "matmul_peak": 900.0,
    "compute_share": 0.9,
    "bandwidth": 50.0,
    "routed_tokens": 24.0,
    "experts": 16.0,
    "active_experts": 3.0,
    "expert_spread": 0.6,
    "touched_experts": 9.0,
    "expert_parameters": 60.0,
    "expert_bytes_each": 0.5,
    "routed_flop": 50000.0,
    "expert_tile": 5.0,
    "head_parameters": 800.0,
    "all_reduces": 15.0,
    "link_launch": 0.02,
    "link_small": 7.0,
    "link_rate": 40.0,
    "reduced_bytes": 1152.0,
    "gather_launch": 0.03,
    "gather_small": 11.0,
    "gather_rate": 30.0,
    "exchanged_bytes": 2688.0,
    "state_width": 70.0,
    "index_layers": 2.0,
    "index_launch": 0.04,
    "index_width": 26.0,
    "index_heads": 32.0,
    "index_read": 0.6,
    "gathered_tokens": 160.0,
    "cache_width": 18.0,
    "score_width": 22.0,
    "prompt_width": 27.0,
    "prompt_io_width": 31.0,
    "kv_bytes_each": 2.0,
    "attended": 610.0,
}


def every(phase: kernels.Phase, *, graphed: bool = False, mixed: bool = False) -> Sheet:
    """All parts of a step but those that choose tokens."""
    kinds = ("moe", "parallel", "windowed", "linear", "spread", "staged")
    return step(phase, **dict.fromkeys(kinds, True), graphed=graphed, mixed=mixed)


def test_the_reads_and_products_of_a_decode_step() -> None:
    agree(
        every("decode"),
        SERVING,
        {
            "attended": 5 * 90 + 3 * 16,
            "attention_bytes": 6 * 610 * 18 * 2,
            "attention_flop": 2 * 6 * 610 * 22,
            "projection_bytes": 500 * 1.5,
            "projection_flop": 2 * 12 * 500,
            "dense_bytes": 900 * 0.75,
            "dense_flop": 2 * 12 * 900,
            "matmul_bytes": 750 + 675,
            "matmul_flop": 12000 + 21600,
            "head_parameters": 32 * 100 / 4,
            "head_bytes": 800 * 2,
            "head_flop": 2 * 800 * 8,
            "routed_tokens": 12 * 2,
            "touched_experts": 16 * (1 - exp(-0.6 * 24 * 3 / 16)),
            "expert_bytes": 7 * 9 * 60 * 0.5,
            "routed_flop": 2 * 7 * 60 * 24 * 3,
            "expert_flop": 50000,
            "state_bytes": 2 * 4 * 70 * 6,
            "state_flop": 3 * 2 * 70 * 12,
            "reduced_bytes": 2 * (3 / 4) * 12 * 32 * 2,
            "all_reduce_seconds": 15 * (0.02 + (1152 + sqrt(7 * 1152)) / 40),
            "exchanged_bytes": 2 * (7 / 8) * 24 * 32 * 2,
            "exchange_seconds": 7 * (0.03 + (2688 + sqrt(11 * 2688)) / 30),
            "transfer_seconds": 2 * (0.02 + 12 * 32 * 2 / 40),
            "elementwise_seconds": 2 * 9 * 12 * (12 * 32 + 4 * 48 / 4) / 50,
        },
    )
    agree(every("decode"), SERVING | {"context": 10.0}, {"attended": 8 * 10})
    tiled = SERVING | {"routed_flop": 1.0}
    agree(every("decode"), tiled, {"expert_flop": 2 * 7 * 60 * 5 * 9})


def test_the_reads_and_products_of_a_prompt() -> None:
    """A causal mask halves the scores; a window of 16 tokens, seen twice, is not halved. A
    prompt of 40 tokens attends as the 45 `around` its tokens."""
    agree(
        every("prefill"),
        SERVING,
        {
            "attended": 5 * 45 + 3 * 32,
            "attention_bytes": 8 * 40 * 31 * 2,
            "attention_flop": 2 * 40 * 610 * 27 / 2,
            "state_bytes": 2 * 4 * 70,
        },
    )
    agree(every("prefill"), SERVING | {"around": 20.0}, {"attended": 8 * 20})


def test_a_kernel_reads_and_computes_at_once() -> None:
    reading = (750 + sqrt(3 * 20 * 750)) / (50 * 0.8)
    computing = 12000 / (900 * 0.9 * 0.7)
    both = (reading**4 + computing**4) ** (1 / 4)
    agree(every("decode"), SERVING, {"projection_seconds": 20 * 0.01 + both})


ACROSS = SERVING | {
    "replica_nodes": 3.0,
    "node_gpus": 8.0,
    "fabric_rate": 5.0,
    "fabric_launch": 0.06,
    "hop_bytes": 480.0,
    "crossing_bytes": 2688.0,
    "crossing_rate": 20.0,
}


def test_what_stages_and_ranks_send_over_nodes() -> None:
    """Each of 4 ranks sends its part by its own card; between 3 nodes and 3 stages lie 2 hops."""
    agree(
        kernels.HOPS,
        ACROSS,
        {
            "hop_bytes": 2 * 12 * 32 * 2,
            "hops_seconds": 2 * (0.06 + 480 / (4 * 5)) + 2 * (0.02 + 480 / 40),
        },
    )
    agree(
        kernels.CROSSING,
        ACROSS,
        {
            "crossing_bytes": 2 * (7 / 8) * 24 * 32 * 2,
            "crossing_rate": 30.0,
            "crossing_seconds": 7 * (0.03 + 2 * 2 * 0.06 + (2688 + sqrt(11 * 2688)) / 20),
        },
    )
    agree(kernels.CROSSING, ACROSS | {"node_gpus": 4.0}, {"crossing_rate": 20.0})


def test_each_stage_and_each_group_has_its_own_sequences() -> None:
    agree(record.STAGED, SERVING, {"replica_sequences": 6 * 3})
    agree(record.GROUPS, SERVING, {"all_sequences": 6 * 2})
    agree(declared.STALLS, SERVING, {"stalling_ranks": 2 - 1 / 3})


def test_attention_to_chosen_tokens() -> None:
    decode, prefill = (
        step(phase, moe=False, parallel=False, windowed=False, sparse=True)
        for phase in ("decode", "prefill")
    )
    scored = 1 * 6 * 90 * 26 * 32 / 64 / (50 * 0.6)
    agree(decode, SERVING, {"attended": 5 * 24, "index_seconds": 2 * 0.04 + scored})
    agree(decode, SERVING | {"context": 9.0}, {"attended": 5 * 9})
    agree(
        prefill,
        SERVING,
        {
            "attended": 5 * 24,
            "gathered_tokens": 10 * (40 - 24),
            "gathered_bytes": 160 * 24 * 18,
            "gathered_flop": 2 * 160 * (24 * 22 + 40 * 32 * 26 / 2 / 2),
        },
    )
    agree(prefill, SERVING | {"around": 9.0}, {"attended": 5 * 9})
    agree(prefill, SERVING | {"prompt": 9.0}, {"gathered_tokens": 0})


def test_a_step_is_its_kernels_and_the_engines_own_time() -> None:
    kinds = {
        **dict.fromkeys(("projection", "dense"), ("matmul_factor", 2.0)),
        **dict.fromkeys(("attention", "state"), ("attention_factor", 3.0)),
        "expert": ("expert_factor", 5.0),
        **dict.fromkeys(("all_reduce", "exchange", "transfer"), ("link_factor", 7.0)),
        "elementwise": ("elementwise_factor", 11.0),
    }
    seconds = {f"{kind}_seconds": 10.0 + n for n, kind in enumerate(kinds)}
    work = sum(s * f for s, (_, f) in zip(seconds.values(), kinds.values(), strict=True)) + 0.5
    inputs = SERVING | seconds | dict(kinds.values()) | {"head_seconds": 0.5}
    inputs |= {"step_overhead": 0.1, "layer_overhead": 0.02, "scaled_inputs": 13.0}
    inputs |= {"scaling_overhead": 0.003, "block_inputs": 17.0, "block_overhead": 0.004}
    inputs |= {"routing_overhead": 0.05, "state_overhead": 0.06, "sequence_overhead": 0.007}
    inputs |= {"roofline_seconds": 1.0, "work_seconds": 30.0, "overhead_seconds": 4.0}
    own = 0.1 + 9 * 0.02 + 13 * 0.003 + 17 * 0.004 + 7 * 0.05 + 4 * 0.06
    for phase, more in (("decode", 6 * 0.007), ("prefill", 0.0)):
        sheet = every(phase)  # type: ignore[arg-type]
        agree(sheet, inputs, {"work_seconds": work, "overhead_seconds": own + more})
        agree(sheet, inputs | {"launch_seconds": 30.0}, {"seconds": 34.0})
        agree(sheet, inputs | {"roofline_seconds": 1e6}, {"work_seconds": 1e6})
    eager = {"eager_seconds": 3.0, "eager_attention": 1.5, "eager_experts": 0.4, "eager_state": 2.0}
    cached, linear, routed = (SERVING[f"{n}_layers"] for n in ("cached", "linear", "expert"))
    launches = 3.0 * (cached * 1.5 + routed * 0.4 + linear * 2.0)
    agree(every("prefill"), inputs | eager, {"launch_seconds": launches})
    agree(every("prefill"), inputs | {"launch_seconds": 35.0}, {"seconds": 35.0})
    split = every("prefill", graphed=True)
    graphs = {"kernels_seconds": launches, "piece_seconds": 0.5, "graphed_tokens": 512.0}
    pieces = 0.5 * (cached + linear)
    for tokens, beyond, last in ((512.0, 0, pieces), (513.0, 1, launches)):
        inside = graphs | {"tokens": tokens, "beyond_graphs": float(beyond)}
        expected = {"beyond_graphs": beyond, "launch_seconds": last}
        agree(split, inputs | eager | inside, expected)
    slow = graphs | {"piece_seconds": 50.0, "beyond_graphs": 0.0}
    agree(split, inputs | eager | slow, {"launch_seconds": launches})  # no more than each kernel
    own = 3.0 * (seconds["attention_seconds"] + seconds["state_seconds"])
    own += 11.0 * seconds["elementwise_seconds"]
    agree(every("prefill", mixed=True), inputs, {"own_seconds": own})
    reads = {"matmul": 100.0, "attention": 200.0, "head": 30.0, "expert": 40.0, "state": 5.0}
    bound = SERVING | {f"{name}_bytes": size for name, size in reads.items()}
    bound |= {"dense_peak": 600.0, "bf16_peak": 300.0, "expert_peak": 1200.0}
    flop = {"projection": 90.0, "dense": 60.0, "attention": 30.0, "routed": 120.0, "expert": 1e9}
    bound |= {f"{name}_flop": count for name, count in flop.items()}
    agree(every("decode"), bound, {"roofline_seconds": 375 / 50})
    computed = (90 / 900 + 60 / 600 + 30 / 300 + 120 / 1200) / 0.9
    agree(every("decode"), bound | {"bandwidth": 1e9}, {"roofline_seconds": computed})


def test_a_prompt_makes_a_step_longer_by_what_it_adds() -> None:
    kinds = dict.fromkeys(("moe", "parallel", "spread", "staged"), True) | {"across": False}
    seconds = {"projection": 10.0, "dense": 11.0, "expert": 13.0, "all_reduce": 17.0}
    seconds |= {"exchange": 19.0, "transfer": 23.0, "head": 29.0}
    factors = {"matmul_factor": 2.0, "expert_factor": 5.0, "link_factor": 7.0}
    products = 2 * (10 + 11) + 5 * 13 + 7 * (17 + 19 + 23) + 29
    inputs = SERVING | factors | {f"{name}_seconds": s for name, s in seconds.items()}
    inputs |= {"stalling_ranks": 2.0, "output_mean": 4.0, "prefill_tokens": 50.0}
    inputs |= {"prompts_beside": 3.0, "added_seconds": 90.0, "prefill_own_seconds": 1.5}
    inputs |= {"decode_products_seconds": 500.0, "prompt_factor": 1.25}
    expected = {
        "decode_products_seconds": products,
        "prompts_beside": 6 * 2 / 4,
        "tokens": 12 + 3 * 50,
        "outputs": 8 + 3,
        "added_seconds": products - 500,
        "growth_seconds": 1.5 + 90 / 3,
    }
    agree(beside(**kinds, slower=False), inputs, expected)
    agree(beside(**kinds, slower=True), inputs, {"growth_seconds": 1.5 + 1.25 * 90 / 3})
    alone = inputs | {"output_mean": 400.0}
    agree(beside(**kinds, slower=False), alone, {"prompts_beside": 1})


# --- what users see -------------------------------------------------------------------------------

SEEN = {
    "input_mean": 1000.0,
    "input_p95": 3000.0,
    "output_mean": 200.0,
    "output_p95": 500.0,
    "prompt_spread": 1.2,
    "output_spread": 0.9,
    "longer_output": 360.0,
    "interference": 0.9,
    "sequences": 8.0,
    "stalling_ranks": 2.0,
    "prefill_work_seconds": 0.03,
    "growth_seconds": 0.025,
    "prefill_overhead_seconds": 0.018,
    "prefill_launch_seconds": 0.06,
    "prompt_work_seconds": 0.055,
    "ending": 0.08,
    "launch_share": 0.9,
    "burst_share": 0.2,
    "uncached_burst": 0.1,
    "prefill_seconds": 0.05,
    "longest_prefill_seconds": 0.15,
    "stall_seconds": 0.4,
    "decode_seconds": 0.02,
    "decode_excess": 4.35,
    "modelled_token_seconds": 0.022,
    "first_overhead": 0.01,
    "contended_overhead": 0.004,
    "contended_prefill": 0.4,
    "contended": 0.875,
    "gathering": 16.0,
    "gathered": 0.3,
    "half_a_step": 0.5,
    "first_prefill_factor": 1.35,
    "prompt_routing": 1.2,
    "prompt_seconds": 0.055,
    "first_step_factor": 2.5,
    "first_sequence_overhead": 0.001,
    "burst_factor": 0.25,
    "token_correction": 0.95,
    "roofline_seconds": 0.015,
    "token_floor": 0.001,
    "closed_token_seconds": 0.0205,
    "token_factor": 0.92,
    "time_per_output_token": 0.021,
    "request_seconds": 5.0,
    "replica_rate": 1.6,
    "prompt_step_seconds": 0.035,
    "queue_variation": 1.3,
    "wait_steps": 1.4,
    "decoded_tokens": 199.0,
    "answer_seconds": 3.6,
    "accompanied": 0.9,
    "max_num_batched_tokens": 600.0,
    "backlog_seconds": 0.14,
    "stalled_seconds": 0.7,
    "free_seconds": 4.5,
    "free_steps": 12.0,
    "prefill_load": 0.6,
    "queue_seconds": 0.04,
    "queue_p95_seconds": 0.16,
    "decoding_seconds": 0.25,
    "earlier_seconds": 0.12,
    "first_correction": 1.1,
    "modelled_first_seconds": 0.3,
    "first_floor": 0.02,
    "first_token_seconds": 0.33,
    "closed_rate": 1.7,
    "requests_in_second": 1.6,
    "burst": 5.54,
    "arrival_variation": 6.4,
}


def test_the_lengths_of_requests() -> None:
    agree(
        latency.LENGTHS,
        SEEN,
        {
            "prompt_spread": 2 / 1.645,  # 3,000 / 1,000 - 1
            "output_spread": 1.5 / 1.645,  # 500 / 200 - 1
            "longer_input": 1000 * (1 + 1.2**2),
            "longer_output": 200 * (1 + 0.9**2),
            "context": 1000 + 360 / 2,
            "decoded_tokens": 199,
        },
    )
    most = {"prompt_spread": 1.645, "output_spread": 1.645}  # of 8 / 1.645 and 3.5 / 1.645
    agree(latency.LENGTHS, SEEN | {"input_p95": 9000.0, "output_p95": 900.0}, most)


@pytest.mark.parametrize("times", [latency.CLOSED, latency.OPEN])
def test_the_latency_of_a_request(times: Sheet) -> None:
    agree(
        times,
        SEEN,
        {
            "ending": 8 * 2 / 200,
            "launch_share": (1 - exp(-0.08)) / 0.08,
            "prompt_work_seconds": 0.9 * (0.06 - 0.02),  # more than 0.9 * 0.025, its growth
            "stall_seconds": (1 - 0.2 / 2) * 8 * 2 * 0.055,
            "decode_excess": 0.4 + 200 * 0.02 - 0.05,
            "modelled_token_seconds": (4.35 + sqrt(4.35**2 + 4 * 200 * 0.02 * 0.05)) / 400,
            "contended": 7 / 8,
            "gathered": 8 / (8 + 16),
            "first_prefill_factor": 1 + 7 / 8 * 0.4,
            "prompt_seconds": 1.2 * 0.03 + 0.018,  # more than 0.05, for which the host starts it
            "modelled_first_seconds": 0.01
            + 1.35 * 0.055
            + 0.875 * (0.3 * 0.004 + 0.3 * 2.5 * 0.022 + 8 * 0.3 * 0.001),
            "closed_token_seconds": 0.95 * 0.022,
            "queue_variation": (1 + 1.2**2) / 2,
            # Pollaczek and Khinchine
            "queue_seconds": 0.035 * 1.4 * 0.6 / 0.4,
            # the exponential tail: 5 % of all wait longer
            "queue_p95_seconds": 0.04 / 0.6 * 0.693147181 * log2(0.6 / 0.05),
            "first_token_seconds": 1.1 * 0.3,
            "time_to_first_token": 0.33 + 0.04 + sqrt((1.35 * 0.1) ** 2 + 0.12**2),
            "request_latency": 0.33 + 0.04 + 199 * 0.021,
        },
    )


def test_prompts_of_a_measured_loop_wait_for_each_other() -> None:
    """16 prompts of 1,000 tokens at once, four in a step of 4,000."""
    looped = {
        "crowd": 16.0,
        "step_prompts": 4.0,
        "together": 3.0,
        "together_seconds": 0.07,
        "full_work_seconds": 0.09,
        "default_step_tokens": 4000.0,
        "crowd_seconds": 0.3,
        "line_seconds": 0.03,
        "line_steps": 1.5,
        "in_step": 1.0,
        "at_random": 0.0,
        "prompt_load": 0.1,
        "queued_seconds": 0.004,
        "beside_seconds": 0.11,
    }
    agree(latency.LOOPED, SEEN | looped, {"step_prompts": 4})
    agree(
        latency.MEASURED,
        SEEN | looped,
        {
            "crowd": 8 * 2,
            "together": 4,
            # of the step's four prompts, what three read and compute more than one
            "together_seconds": 0.03 + 2 / 3 * 0.06,
            "crowd_seconds": 0.25 * 1.2 * (0.07 * (16 / 3 + 1) / 2 - 0.03),
            # less than the crowd: one and a half steps and prompts
            "line_seconds": 0.8 * 1.5 * 1.2 * (0.03 + 0.09),
            "prompt_load": 16 * 1.2 * 0.03 / (0.05 + 200 * 0.022),
            "queued_seconds": 0,
            "beside_seconds": 0.03 + 0.004 + 0.1 * 0.3,
            "modelled_first_seconds": 0.01
            + 0.055
            + 0.875 * (0.11 + 0.3 * 0.004 + 0.3 * 2.5 * 0.022 + 8 * 0.3 * 0.001),
        },
    )
    spread = SEEN | looped | {"in_step": 0.0, "at_random": 1.0, "line_seconds": 0.0}
    queued = {
        "line_seconds": 0,
        "queued_seconds": 1.2 * 0.03 * 0.1 / 0.9,
        "beside_seconds": 0.4 * 0.055 + 0.004 + 0.1 * 0.3,
    }
    agree(latency.MEASURED, spread, queued)
    few = SEEN | looped | {"crowd_seconds": 0.02, "crowd": 2.0}
    agree(latency.MEASURED, few, {"together": 2, "line_seconds": 0.8 * 0.02})
    long = looped | {"input_mean": 16000.0}  # in four steps, of which a line waits for one
    agree(latency.LOOPED, SEEN | long, {"step_prompts": 1})
    line = 0.8 * 1.5 * 1.2 * (0.03 + 0.09 / 4)
    agree(latency.MEASURED, SEEN | long, {"line_seconds": line})


def test_every_place_of_a_closed_loop_is_taken() -> None:
    agree(
        latency.CLOSED,
        SEEN,
        {
            "time_per_output_token": 0.0205,
            "request_seconds": 0.05 + 200 * 0.021,
            "replica_rate": 8 / 5,
            "prompt_step_seconds": 0.03,
            "prefill_load": 1.6 * 0.03,
            "wait_steps": 1.3,
        },
    )


def test_the_prompts_of_an_open_loop_queue() -> None:
    agree(
        latency.OPEN,
        SEEN,
        {
            "token_factor": 0.0205 / 0.022,
            "answer_seconds": 199 * 0.92 * 0.02,
            "accompanied": 1 - exp(-8 * 3.6 / 4.5),
            # nine of ten prompts stall what decodes, the others take a step of their own
            "prompt_step_seconds": 2 * (0.9 * 0.92 * 0.055 + 0.1 * 0.05),
            # a step computes a token of 0.92 × 0.02 s beside the prompt of 0.035 s
            # those that wait together are started together
            "wait_steps": 1.3 * (0.035 + 0.9 * 0.92 * 0.02) / 0.035 * sqrt(0.9 * 0.025 / 0.055),
            "free_seconds": 0.05 + 3.6,
            "free_steps": 4.5 / 0.035,
            "prefill_load": 16 / (16 + 12 + sqrt(12**2 + 4 * 8 * 1.4)),
            "replica_rate": 0.6 / 0.035,
            "request_seconds": 8 / 1.6,
            "decoding_seconds": 3.6 / 0.4,
            "backlog_seconds": 0.6 / 0.4 * (0.04 + 0.05),
            "stalled_seconds": 199 * 0.035 * 600 / 1000,  # prompts of 1,000 tokens in chunks
            "earlier_seconds": 0.14 * 0.7 / (0.14 / sqrt(0.6) + 0.7),
            "time_per_output_token": (0.25 + 0.12) / 199,
        },
    )
    agree(latency.OPEN, SEEN | {"input_mean": 500.0}, {"stalled_seconds": 199 * 0.035})


def test_an_answer_of_one_token_waits_for_none() -> None:
    single = {"decoded_tokens": 0.0, "answer_seconds": 0.0, "stalled_seconds": 0.0}
    agree(latency.LENGTHS, SEEN | {"output_mean": 1.0}, {"decoded_tokens": 0.0})
    expected = {"answer_seconds": 0.0, "stalled_seconds": 0.0, "earlier_seconds": 0.0}
    agree(latency.OPEN, SEEN | single, expected | {"accompanied": 0.0, "decoding_seconds": 0.0})


def test_the_load_of_an_open_loop_solves_its_equation() -> None:
    """n · (1 - load) = rate · (queue + free), of n requests that are there on average."""
    found = latency.OPEN(dict(KNOWN | SEEN))
    load = found["prefill_load"]
    there = found["replica_rate"] * (found["queue_seconds"] + found["free_seconds"])
    assert 0 < load < 1
    assert there == pytest.approx(8 * (1 - load))


def test_a_token_takes_the_time_that_solves_its_equation() -> None:
    """t = decode + stall · t / (prefill + output · t)."""
    scope = dict(KNOWN | SEEN)
    found = latency.TOKEN(scope)
    token = found["modelled_token_seconds"]
    stalled = found["stall_seconds"] * token / (0.05 + 200 * token)
    assert token == pytest.approx(0.02 + stalled)


def test_no_bound_of_a_latency_is_passed() -> None:
    slow = SEEN | {"token_correction": 0.1, "first_correction": 0.0, "replica_rate": 99.0}
    bounds = {"closed_token_seconds": 0.015, "first_token_seconds": 0.02}
    for times in (latency.CLOSED, latency.OPEN):
        agree(times, slow, bounds)
        above = SEEN | {"token_correction": 0.1, "roofline_seconds": 9.0, "token_floor": 0.005}
        agree(times, above, {"closed_token_seconds": 0.022})
        agree(times, SEEN | {"token_floor": 0.5}, {"closed_token_seconds": 0.5})
        agree(times, SEEN | {"prefill_load": 0.04}, {"queue_p95_seconds": 0.0})
    agree(latency.CLOSED, slow, {"prefill_load": 0.95})  # of 99 × 0.03
    agree(latency.CLOSED, SEEN | {"growth_seconds": 0.7}, {"request_seconds": 8 * 0.7})


def test_bursts_and_drafts() -> None:
    bursts = declared.bursting(latency.OPEN)
    agree(
        bursts,
        SEEN,
        {
            "closed_rate": 8 / (0.05 + 200 * 0.0205),
            "requests_in_second": 1.7,
            "arrival_variation": 1.6 * 2.0**2,
            "queue_variation": (1 + 1.2**2) / 2 + (6.4 - 1) / 2,
        },
    )
    agree(bursts, SEEN | {"burst": 1.1}, {"arrival_variation": 1.0})
    agree(declared.CROWDED, SEEN | {"sequences": 0.1, "burst": 1.0}, {"max_num_seqs": 2})
    # 8 + 2.326 × √29.6 = 20.65
    agree(declared.CROWDED, SEEN, {"max_num_seqs": 21})
    drafting = SERVING | {"draft_tokens": 3.0, "work_seconds": 0.3, "overhead_seconds": 0.1}
    drafting |= {"step_seconds": 0.5, "draft_cost": 0.2, "accepted_tokens": 2.5}
    expected = {"tokens": 24.0, "outputs": 12.0, "step_seconds": 0.4, "seconds": 0.5 * 1.2 / 2.5}
    verified = declared.verified(every("decode"))
    agree(verified, drafting, expected | {"attention_flop": 2 * 6 * 610 * 22 * 4})
    cached = SERVING | {"prefix_hit_share": 0.75}
    partly = declared.partly_cached(every("prefill"))
    left = 2 * 40 * 610 * 27 / 2 * (1 - 0.75**2)
    agree(partly, cached, {"tokens": 10.0, "attention_flop": left})
    agree(partly, cached | {"prefix_hit_share": 1.0}, {"tokens": 1.0})


def test_replicas_follow_littles_law() -> None:
    scope = {"sized_rate": 20.0, "slowness": 1.2, "request_seconds": 3.0, "limit_sequences": 16.0}
    scope |= {"replicas": 4.0, "all_requests": 9000.0}
    agree(load.REPLICAS, scope, {"replicas": 5})  # 72 / 16 = 4.5
    agree(load.REPLICAS, scope | {"limit_sequences": 24.0}, {"replicas": 3})
    agree(load.REPLICAS, scope | {"sized_rate": 0.0}, {"replicas": 1})
    agree(load.CAPACITY, scope, {"requests_per_second": 4 * 16 / 3})
    agree(load.OFFERED, scope, {"offered_sequences": 20 * 3 / 4})
    agree(load.CONCURRENCY, scope | {"request_seconds": 3.03}, {"concurrency": 61})
    agree(load.FINISH, scope, {"time_to_finish": 9000 * 3 / (16 * 4)})


# --- memory of a replica --------------------------------------------------------------------------

PLACED = SERVING | {
    "max_num_seqs": 14.0,
    "input_mean": 1000.0,
    "input_p95": 1300.0,
    "output_mean": 200.0,
    "output_p95": 600.0,
    "longer_output": 250.0,
    "request_progress": 0.6,
    "tokens_per_request": 1120.0,
    "tokens_margin": 500.0,
    "block_tokens": 17.0,
    "max_model_len": 4096.0,
    "kv_cache_tokens": 17000.5,
    "growing_elements": 30.0,
    "kv_heads": 2.0,
    "index_bytes": 7.0,
    "window_elements": 12.0,
    "window_tokens": 64.0,
    "state_cache_bytes": 1001.0,
    "other_parameters": 90.0,
    "tower_parameters": 33.0,
    "max_num_batched_tokens": 50.0,
    "kept_parameters": 20.0,
    "dense_width": 48.0,
    "expert_padding": 1.25,
    "expert_parallel_size": 2.0,
    "expert_width": 10.0,
    "expert_hidden": 24.0,
    "logit_bytes": 10.0,
    "graph_bytes": 40.0,
    "graph_places": 28.0,
    "driver_bytes": 201.0,
    "kv_bytes_per_token": 10.0,
    "context_bytes": 800.0,
    "link_bytes": 60.0,
    "memory_bytes": 2001.0,
    "gpu_memory_utilization": 0.9,
    "weights_bytes": 500.0,
    "activations_bytes": 100.0,
    "kv_cache_bytes": 300.0,
    "own_bytes": 860.0,
}


KEPT_NOTHING = dict.fromkeys(("latent", "windowed", "states", "indexed"), False)


def replica_memory(*, staged: bool = False, **kinds: bool) -> Sheet:
    given = KEPT_NOTHING | kinds
    return serving.memory(moe=True, kept=cache.Kept(**given), staged=staged)


def test_the_memory_of_a_replica() -> None:
    agree(serving.RUNNING, PLACED, {"max_num_seqs": 12})  # 6 + 2.326 × √6 = 11.70
    # one request is there an eighth of the time: whoever comes then has a place
    agree(serving.RUNNING, PLACED | {"sequences": 0.125}, {"max_num_seqs": 2})
    agree(serving.ALL, PLACED, {"max_num_seqs": 6})
    agree(
        replica_memory(),
        PLACED,
        {
            # (500 × 1.5 + 900 × 0.75 + 7 × 16 × 60 × 0.5 × 1.25 + 103 × 2 / 4) / 3 = 1,892.2
            "weights_bytes": 1893,
            "tokens_per_request": 1000 + 0.6 * 250,
            "tokens_margin": sqrt(300**2 + 400**2),
            "kv_cache_tokens": 14 * 1120 + sqrt(14) * 500 + 14 * 16 / 2,
            # 2 KV heads lie on 4 GPUs: each has one of them
            "kv_bytes_per_token": 30 * 2 / 2 / 3,
            "kv_cache_bytes": 170005,
            # 10 × 14 × 100 + 2 × 50 × 32, and what experts of a quarter of 10 columns work in:
            # 2 × 50 × 3 × (24 + 2.5)
            "activations_bytes": 14_000 + 3200 + 7950,
            "own_bytes": 800 + 60 + 40 / 2,
            "gpu_memory": 500 + 300 + 100 + 860,
            "usable_bytes": 1620,
        },
    )
    # 2 × 50 × (3 × 48 / 4 + 4 × 32)
    agree(replica_memory(), PLACED | {"logit_bytes": 1.0}, {"activations_bytes": 16_400 + 7950})
    alone = PLACED | {"tensor_parallel_size": 1.0, "pipeline_stages": 1.0}
    agree(replica_memory(), alone, {"own_bytes": 820})
    agree(replica_memory(), alone | {"max_num_seqs": 99.0}, {"own_bytes": 840})
    staged = replica_memory(staged=True)
    # three batches, each with its own spread, or its own longest request
    places = PLACED | {"stage_places": 5.0}
    kept = 3 * (5 * 1120 + sqrt(5) * 500) + 14 * 16 / 2
    agree(staged, places, {"stage_places": 14 / 3, "kv_cache_tokens": kept})
    agree(staged, places | {"stage_places": 1.0}, {"kv_cache_tokens": 3 * 4096 + 14 * 16 / 2})
    few = PLACED | {"max_num_seqs": 1.0}
    agree(replica_memory(), few, {"kv_cache_tokens": 4096 + 8})


# Images of 9 tokens from 36 patches, 20 numbers a token; an encoder of 16 columns, its MLP of 40.
IMAGES = PLACED | {
    "image_share": 1.0,
    "image_tokens": 9.0,
    "image_patches": 36.0,
    "encoded_size": 20.0,
    "tower_hidden_size": 16.0,
    "tower_width": 40.0,
    "tower_outputs": 2.0,
    "rotary_elements": 70.0,
    "images_at_once": 5.0,
    "tower_bytes": 30_240.0,
    "encoded_bytes": 2000.0,
}


def test_the_memory_of_a_replica_with_an_encoder_of_images() -> None:
    sheet = serving.memory(moe=True, kept=cache.Kept(**KEPT_NOTHING), images=True)
    agree(
        sheet,
        IMAGES,
        {
            "weights_bytes": 1893 + 2 * 70,  # the tables are on every GPU of every stage
            "images_at_once": 5,  # 50 / 9
            "tower_bytes": 2 * 5 * 36 * (2 * 40 / 4 + 4 * 16),
            "encoded_bytes": 2 * 50 * 20,
            # what the language model takes, 25,150, is less than what its encoder does
            "activations_bytes": 2000 + 30_240,
        },
    )
    agree(sheet, IMAGES | {"tower_bytes": 9.0}, {"activations_bytes": 2000 + 25_150})
    # an image that no step holds is encoded all the same, and kept
    large = IMAGES | {"image_tokens": 60.0}
    agree(sheet, large, {"images_at_once": 1, "encoded_bytes": 2 * 60 * 20})
    # two requests of 20 tokens bring two images each
    few = IMAGES | {"max_num_seqs": 2.0, "max_model_len": 20.0}
    agree(sheet, few, {"images_at_once": 4})
    agree(sheet, few | {"max_model_len": 5.0}, {"images_at_once": 2})


@pytest.mark.parametrize(
    ("kinds", "token", "tokens"),
    [
        ({"latent": True}, 30 * 2 / 3, 170005),
        ({"indexed": True}, (30 * 2 / 2 + 7) / 3, 170005),
        # 14 sequences keep 64 tokens each in layers with a window
        ({"windowed": True}, 30 * 2 / 2 / 3, 170005 + 12 * 2 / 2 / 3 * 14 * 64),
        ({"states": True}, 30 * 2 / 2 / 3, 171173),  # 14 × 1,001 / 12 = 1,167.8
    ],
)
def test_what_attention_keeps(kinds: dict[str, bool], token: float, tokens: float) -> None:
    sheet = replica_memory(**kinds)
    agree(sheet, PLACED, {"kv_bytes_per_token": token, "kv_cache_bytes": tokens})


# --- widths of a model on one GPU -----------------------------------------------------------------

WIDTHS = {
    "tensor_parallel_size": 4.0,
    "data_parallel_size": 2.0,
    "kv_heads": 2.0,
    "kv_split": 2.0,
    "head_dim": 16.0,
    "attention_heads": 12.0,
    "cached_layers": 8.0,
    "hidden_size": 32.0,
    "output_gate": 1.0,
    "cache_width": 40.0,
    "score_width": 96.0,
    "prompt_width": 54.0,
    "kv_rank": 6.0,
    "rope_dim": 3.0,
    "nope_dim": 5.0,
    "value_dim": 7.0,
    "query_rank": 9.0,
    "query_width": 11.0,
    "linear_layers": 3.0,
    "linear_width": 20.0,
    "router_width": 13.0,
    "attention_parameters": 1000.0,
    "mlp_matrices": 3.0,
    "mlp_width_sum": 70.0,
    "projection_parameters": 1400.0,
    "dense_parameters": 1680.0,
    "state_elements": 64.0,
    "expert_hidden": 24.0,
    "expert_width": 10.0,
    "ranks": 8.0,
}


def test_the_widths_of_attention() -> None:
    agree(
        shapes.GROUPED,
        WIDTHS,
        {
            "kv_split": 2.0,
            "cache_width": 2 * 2 * 16 / 2,
            "score_width": 2 * 12 * 16 / 4,
            "prompt_io_width": 96 + 40,
            "attention_parameters": 8 * 32 * (96 * 1.5 + 40),
        },
    )
    agree(shapes.GROUPED, WIDTHS | {"kv_heads": 8.0}, {"kv_split": 4.0})
    agree(
        shapes.LATENT,
        WIDTHS,
        {
            "cache_width": 6 + 3,
            "score_width": 12 * (2 * 6 + 3) / 4,
            "prompt_width": 12 * (5 + 3 + 7) / 4,
            "prompt_io_width": 2 * 54,
            "attention_parameters": 8 * (32 * (9 + 6 + 3) + 12 * (11 * 8 + 6 * 12 + 7 * 32) / 4),
        },
    )


def test_the_parameters_of_a_gpu() -> None:
    agree(
        shapes.MLP,
        WIDTHS,
        {
            "projection_parameters": 1000 + 32 * (3 * 20 / 4 + 13),
            "dense_parameters": 32 * 3 * 70 / 4,
            "matmul_parameters": 1400 + 1680,
            "state_width": 3 * 64 / 4,
        },
    )
    agree(shapes.EXPERTS, WIDTHS, {"ranks": 4 * 2, "expert_parameters": 3 * 24 * 10 / 8})
