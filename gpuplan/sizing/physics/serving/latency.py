"""What users of a served model see, from the times of a decode step and of a prefill.

`steps.py` gives both. Arrivals are taken as Poisson; lengths spread as their 95th percentiles say.
A request's first token waits for the prompts before it (M/G/1, exponential tail). That queue is not
measured, closed loops are: a time to first token is extrapolated everywhere.
"""

from __future__ import annotations

from gpuplan.sizing.evidence.sheet import sheet

# Coefficient of variation of prompts, from the 95th percentile; what is cached half way through.
LENGTHS = sheet("""
    prompt_spread: 1 = (input_p95 / input_mean - 1) / 1.645
        # coefficient of variation, from the 95th percentile
    context: 1 = input_mean + output_mean / 2  # cached tokens half way through
""")
# Solves t = decode + stall * t / (prefill + output * t): of the prefills of all others, a request's
# tokens wait for those that fall into the part of its life that decodes.
TOKEN = sheet("""
    stall_seconds: s = interference * sequences * stalling_ranks * prefill_work_seconds
        # prefills of the other sequences, each once in a request's life
    decode_excess: s = stall_seconds + output_mean * decode_seconds - prefill_seconds
        # coefficient of the equation below
    modelled_token_seconds: s = (decode_excess + sqrt(decode_excess ** 2
        + 4 * output_mean * decode_seconds * prefill_seconds)) / (2 * output_mean)
        # a decode step, and the stalls in the decoding part of a request's life
""")
# Of a service, whose requests come at random, `burst_factor` is 0.
FIRST = sheet("""
    modelled_first_seconds: s = first_overhead + first_prefill_factor * prefill_seconds
        + first_step_factor * modelled_token_seconds + sequences * (first_sequence_overhead
        + burst_factor * stalling_ranks * prefill_work_seconds)
        # arrival, prefill, chunked output, host work and the burst in which a closed loop starts
""")
TIMES = (
    TOKEN
    + FIRST
    + sheet("""
    time_per_output_token: s = max(modelled_token_seconds * token_correction,
        min(modelled_token_seconds, roofline_seconds), token_floor)
        # corrected by the measured points near it, never beyond the roofline
    request_seconds: s = max(prefill_seconds + output_mean * time_per_output_token,
        sequences * prefill_work_seconds)
        # how long a request keeps its place, in which every other prompt is processed once
    replica_rate: 1/s = sequences / request_seconds  # Little's law
    prefill_load: 1 = min(0.95, replica_rate * prefill_work_seconds)
        # part of the time in which some prompt is processed
    queue_seconds: s = prefill_work_seconds * (1 + prompt_spread ** 2) * prefill_load
        / (2 * (1 - prefill_load))  # mean wait of an M/G/1 queue (Pollaczek and Khinchine)
    queue_p95_seconds: s = queue_seconds / prefill_load * 0.693147181
        * log2(max(prefill_load / 0.05, 1))  # 95th percentile of that wait, exponential tail
    first_token_seconds: s = max(first_correction * modelled_first_seconds, first_floor)
        # calibrated on served models, corrected by the measured points near it
    time_to_first_token: s = first_token_seconds + queue_seconds
        + sqrt((first_prefill_factor * (longest_prefill_seconds - prefill_seconds)) ** 2
        + (queue_p95_seconds - queue_seconds) ** 2)
        # 95th percentile: of a long prompt and a long queue, spreads add in squares
    request_latency: s = first_token_seconds + queue_seconds
        + (output_mean - 1) * time_per_output_token  # mean: the first token, then the others
""")
)
