"""Seconds of one step of an engine that reads texts and writes none: BERT and its family, decoders
as embedding models.

The kernels are those of a prompt (`serving/kernels.py`), with the same factors and overheads; there
is no output layer, and an encoder's tokens see those after them too.
"""

from __future__ import annotations

from functools import cache

from gpuplan.sizing.evidence.sheet import Sheet, sheet
from gpuplan.sizing.physics.serving import kernels
from gpuplan.sizing.physics.serving.latency import LENGTHS

SPREAD = Sheet(
    tuple(line for line in LENGTHS.lines if line[0] in ("prompt_spread", "longer_input"))
)
_ATTENTION = sheet("""
    attended: 1 = full_layers * longer_input + sliding_layers * min(longer_input, sliding_window)
        # tokens that one attends to, over the layers; long texts have most of them
    attention_bytes: B = cached_layers * tokens * prompt_io_width * bf16_bytes
        # queries, keys, values, out
    attention_flop: FLOP = mac_flop * tokens * attended * prompt_width * seen_share
        # scores and weighted values
""") + kernels.kernel("attention", "attention", launches="cached_layers", peak="bf16_peak")
_TOTALS = sheet("""
    roofline_seconds: s = max((matmul_bytes + attention_bytes) / bandwidth,
        (projection_flop / matmul_peak + dense_flop / dense_peak + attention_flop / bf16_peak)
        / compute_share)  # no step is faster than its reads, nor its products at peak
    work_seconds: s = max(roofline_seconds, matmul_factor * (projection_seconds + dense_seconds)
        + attention_factor * attention_seconds + elementwise_factor * elementwise_seconds)
        # kernels, calibrated on served models
    overhead_seconds: s = step_overhead + layers * layer_overhead
        + scaled_inputs * scaling_overhead  # the engine's own time, calibrated on served models
    formula_seconds: s = work_seconds + overhead_seconds  # one step, by the formulas alone
    step_seconds: s = max(roofline_seconds, formula_seconds / rate_correction)
        # one step, as the measured rates near it correct it
""")


@cache
def step() -> Sheet:
    """The sheet of a step of `tokens`: needs the shape, `SPREAD`, and `rate_correction`."""
    return kernels.PRODUCTS + kernels.DENSE + _ATTENTION + kernels.ELEMENTWISE + _TOTALS


# What a request takes of a replica whose steps are full, and alone.
REQUEST = sheet("""
    request_tokens: 1 = texts * input_mean  # of all its texts
    request_seconds: s = request_tokens * step_seconds / max_num_batched_tokens
        # its part of full steps
    service_seconds: s = max(request_seconds, host_seconds)
        # the GPU and the API server work beside each other: the slower one holds up the rest
    added_seconds: s = request_tokens * (step_seconds - fixed_seconds) / max_num_batched_tokens
        # by which it makes the step longer that it is in
    size_variation: 1 = prompt_spread ** 2 / texts
        # square of the coefficient of variation of a request's tokens: the sum of its texts'
""")
