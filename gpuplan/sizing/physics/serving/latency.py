"""What users of a served model see, from the times of a decode step and of a prefill.

`steps.py` gives both. Arrivals are taken as Poisson; lengths spread as their 95th percentiles say.
A request's first token waits for the prompts before it (M/G/1, exponential tail). That queue is not
measured, closed loops are: a time to first token is extrapolated everywhere.
"""

from __future__ import annotations

from gpuplan.sizing.evidence.formula import Formula
from gpuplan.sizing.evidence.sheet import Line, Sheet

LN2 = "0.693147181"

# Solves t = decode + stall * t / (prefill + output * t): of the prefills of all others, a request's
# tokens wait for those that fall into the part of its life that decodes.
TOKEN = Sheet(
    (
        (
            "stall_seconds",
            Formula(
                "interference * sequences * stalling_ranks * prefill_work_seconds",
                "s",
                "prefills of the other sequences, each once in a request's life",
            ),
        ),
        (
            "decode_excess",
            Formula(
                "stall_seconds + output_mean * decode_seconds - prefill_seconds",
                "s",
                "coefficient of the equation below",
            ),
        ),
        (
            "modelled_token_seconds",
            Formula(
                "(decode_excess + sqrt(decode_excess ** 2 "
                "+ 4 * output_mean * decode_seconds * prefill_seconds)) / (2 * output_mean)",
                "s",
                "a decode step, and the stalls in the decoding part of a request's life",
            ),
        ),
    )
)
CORRECTED: Line = (
    "time_per_output_token",
    Formula(
        "max(modelled_token_seconds * token_correction, "
        "min(modelled_token_seconds, roofline_seconds), token_floor)",
        "s",
        "corrected by the measured points near it, never beyond the roofline",
    ),
)
TIMES = TOKEN + Sheet(
    (
        CORRECTED,
        (
            "request_seconds",
            Formula(
                "max(prefill_seconds + output_mean * time_per_output_token, "
                "sequences * prefill_work_seconds)",
                "s",
                "how long a request keeps its place, in which every other prompt is processed once",
            ),
        ),
        ("replica_rate", Formula("sequences / request_seconds", "1/s", "Little's law")),
        (
            "prefill_load",
            Formula(
                "min(0.95, replica_rate * prefill_work_seconds)",
                "1",
                "part of the time in which some prompt is processed",
            ),
        ),
        (
            "queue_seconds",
            Formula(
                "prefill_work_seconds * (1 + prompt_spread ** 2) * prefill_load "
                "/ (2 * (1 - prefill_load))",
                "s",
                "mean wait of an M/G/1 queue (Pollaczek and Khinchine)",
            ),
        ),
        (
            "queue_p95_seconds",
            Formula(
                f"queue_seconds / prefill_load * {LN2} * log2(max(prefill_load / 0.05, 1))",
                "s",
                "95th percentile of that wait, exponential tail",
            ),
        ),
        (
            "first_token_seconds",
            Formula(
                "max(first_correction * (first_overhead "
                "+ first_step_factor * modelled_token_seconds "
                "+ first_sequence_overhead * sequences "
                "+ first_prefill_factor * prefill_seconds), first_floor)",
                "s",
                "arrival, prefill, chunked output and host work, calibrated on served models and "
                "corrected by the measured points near it",
            ),
        ),
        (
            "time_to_first_token",
            Formula(
                "first_token_seconds + queue_seconds "
                "+ sqrt((first_prefill_factor * (longest_prefill_seconds - prefill_seconds)) ** 2 "
                "+ (queue_p95_seconds - queue_seconds) ** 2)",
                "s",
                "95th percentile: of a long prompt and a long queue, spreads add in squares",
            ),
        ),
        (
            "request_latency",
            Formula(
                "first_token_seconds + queue_seconds + (output_mean - 1) * time_per_output_token",
                "s",
                "mean: the first token, then the others",
            ),
        ),
    )
)
SPREAD = Sheet(
    (
        (
            "prompt_spread",
            Formula(
                "(input_p95 / input_mean - 1) / 1.645",
                "1",
                "coefficient of variation, from the 95th percentile",
            ),
        ),
    )
)
