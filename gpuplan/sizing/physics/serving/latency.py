"""What users of a served model see, from the times of a decode step and of a prefill.

`steps.py` gives both. Arrivals are taken as Poisson; lengths spread as their 95th percentiles say.
A request's first token waits for the prompts before it (M/G/1, exponential tail). That queue is not
measured, closed loops are: a time to first token is extrapolated everywhere.
"""

from __future__ import annotations

from gpuplan.sizing.evidence.sheet import sheet

# Coefficients of variation, from 95th percentiles; what is cached half way through. Of answers of
# unlike lengths, the long ones run longest: most of those that run at once are such. Beyond a
# variation of 1.645, a 95th percentile says no more: a smaller mean would bring more tokens.
LENGTHS = sheet("""
    prompt_spread: 1 = min((input_p95 / input_mean - 1) / 1.645, 1.645)
        # coefficient of variation, from the 95th percentile
    output_spread: 1 = min((output_p95 / output_mean - 1) / 1.645, 1.645)
        # coefficient of variation, from the 95th percentile
    longer_input: 1 = input_mean * (1 + prompt_spread ** 2)
        # mean prompt that a token stands in: the long ones have most of them
    longer_output: 1 = output_mean * (1 + output_spread ** 2)
        # mean answer of the requests that run at once, weighed by how long each runs
    context: 1 = input_mean + longer_output / 2  # cached tokens half way through
    decoded_tokens: 1 = max(output_mean - 1, 0)  # of an answer; its first one ends the prefill
""")
# Solves t = decode + stall * t / (prefill + output * t): of the prefills of all others, a request's
# tokens wait for those that fall into the part of its life that decodes.
TOKEN = sheet("""
    ending: 1 = max(sequences * stalling_ranks / max(output_mean, 1), 0.0001)
        # requests that end in a step; the prompts of those that take their places start together
    launch_share: 1 = (1 - exp(-ending)) / ending  # launches of prompts, for each of them
    prompt_work_seconds: s = max(interference * growth_seconds,
        launch_share * max(prefill_launch_seconds - decode_seconds, 0))
        # for which a prompt keeps the GPU from others' tokens: a step with prompts, whose launches
        # the host starts while the step before it runs, takes the place of one without
    stall_seconds: s = (1 - burst_share / 2) * sequences * stalling_ranks * prompt_work_seconds
        # prefills of the other sequences, each once in a request's life; of those that started at
        # once, half were before its own first token
    decode_excess: s = stall_seconds + output_mean * decode_seconds - prefill_seconds
        # coefficient of the equation below
    modelled_token_seconds: s = (decode_excess + sqrt(decode_excess ** 2
        + 4 * output_mean * decode_seconds * prefill_seconds)) / (2 * output_mean)
        # a decode step, and the stalls in the decoding part of a request's life
""")
# A request alone takes its arrival and its prompt; what others add grows from nothing with the
# load. Of a service, whose requests come at random, `contended_prefill` is 0: its queue is
# modelled.
PROMPT = sheet("""
    prompt_seconds: s = max(prefill_seconds,
        prompt_routing * prefill_work_seconds + prefill_overhead_seconds)
        # prompts of a mixture are routed less evenly than the tokens its kernels are measured on,
        # which nobody sees where the host is still starting kernels
""")
_CONTENDED = (
    sheet("""
    contended: 1 = 1 - 1 / max(sequences, 1)  # how far a request is not alone
    gathered: 1 = max(sequences, 1) / (max(sequences, 1) + gathering)
        # how much of its work for others an engine has by then
    first_prefill_factor: 1 = 1 + contended * contended_prefill
        # how much longer a prompt takes beside others
""")
    + PROMPT
)
_FIRST = """
    modelled_first_seconds: s = first_overhead + {prompts}
        + contended * (gathered * contended_overhead
        + max(gathered * first_step_factor, half_a_step) * modelled_token_seconds
        + sequences * gathered * first_sequence_overhead)
        # arrival and prefill; beside others the wait for a step, chunked output, host work{more}
"""
FIRST = _CONTENDED + sheet(_FIRST.format(prompts="first_prefill_factor * prompt_seconds", more=""))
# Of a measured closed loop. Prompts that come at once share steps, whose weights are read once: a
# request waits for its own step and for half of those before. Where all answers have one length,
# each prompt of the burst has its step, and its successors come in that order: they wait for the
# step that runs, and for a prompt.
LOOPED = sheet("""
    step_prompts: 1 = max(1, default_step_tokens / input_mean)  # that a full step computes
""")
LOOP = (
    _CONTENDED
    + sheet("""
    crowd: 1 = max(sequences * stalling_ranks, 1)  # prompts, where all come at once
    together: 1 = min(crowd, step_prompts)  # in a step
    together_seconds: s = prefill_work_seconds + (together - 1) / max(step_prompts - 1, 0.001)
        * (full_work_seconds - prefill_work_seconds)  # such a step
    crowd_seconds: s = burst_factor * prompt_routing
        * (together_seconds * (crowd / together + 1) / 2 - prefill_work_seconds)
        # mean wait for prompts that come at once: those of one's step, and half of the steps
    line_seconds: s = in_step * (1 - burst_share) * min(crowd_seconds, line_steps * prompt_routing
        * (prefill_work_seconds
        + full_work_seconds * min(1, default_step_tokens / input_mean)))
        # mean wait of those that come in step, for a prompt and the tokens of a step
    prompt_load: 1 = min(0.8, crowd * prompt_routing * prefill_work_seconds
        / (prefill_seconds + output_mean * modelled_token_seconds))
        # part of the time in which some prompt is processed
    queued_seconds: s = at_random * prompt_routing * prefill_work_seconds
        * prompt_load / (1 - prompt_load)  # mean wait, where requests come at random (M/G/1)
    beside_seconds: s = max(contended_prefill * prompt_seconds, line_seconds)
        + queued_seconds + uncached_burst * crowd_seconds  # what a prompt waits for others
""")
    + sheet(
        _FIRST.format(
            prompts="prompt_seconds + contended * beside_seconds",
            more=",\n        # and the prompts of the burst in which a closed loop starts",
        )
    )
)
_MEASURED = sheet("""
    closed_token_seconds: s = max(modelled_token_seconds * token_correction,
        min(modelled_token_seconds, roofline_seconds), token_floor)
        # corrected by the measured points near it, never beyond the roofline
""")
QUEUE = sheet("""
    queue_seconds: s = prompt_step_seconds * wait_steps * prefill_load / (1 - prefill_load)
        # mean wait of an M/G/1 queue (Pollaczek and Khinchine)
    queue_p95_seconds: s = queue_seconds / prefill_load * 0.693147181
        * log2(max(prefill_load / 0.05, 1))  # 95th percentile of that wait, exponential tail
""")
VARIATION = sheet("""
    queue_variation: 1 = (1 + prompt_spread ** 2) / 2  # of Poisson arrivals and such prompts
""")
PROMPTS_ALONE = sheet("""
    wait_steps: 1 = queue_variation  # nothing but prompts is waited for
""")
# Every place is always taken, as a batch does it and as servers are measured.
_CLOSED = sheet("""
    time_per_output_token: s = closed_token_seconds  # as measured: in a closed loop
    request_seconds: s = max(prefill_seconds + output_mean * time_per_output_token,
        sequences * growth_seconds)
        # how long a request keeps its place, in which every other prompt is processed once
    replica_rate: 1/s = sequences / request_seconds  # Little's law
    prompt_step_seconds: s = prefill_work_seconds  # of the queue below
    prefill_load: 1 = min(0.95, replica_rate * prefill_work_seconds)
        # part of the time in which some prompt is processed
""")
# Requests come at random. A prompt waits for those before it, W, and those that come until it is
# processed keep its first tokens waiting: with n requests there on average, n (1 - load) is
# rate * (W + free_seconds), and W is prompt_step_seconds * wait_steps * load / (1 - load). Solved
# for load.
_OPEN = sheet("""
    token_factor: 1 = closed_token_seconds / modelled_token_seconds  # what measured points change
    answer_seconds: s = decoded_tokens * token_factor * decode_seconds
        # decode steps of an answer, without the prompts of others
    free_seconds: s = prefill_seconds + answer_seconds  # a request without the prompts of others
    accompanied: 1 = 1 - exp(-sequences * answer_seconds / free_seconds)
        # probability that some request decodes while a prompt is processed (Poisson)
    prompt_step_seconds: s = stalling_ranks * (accompanied * token_factor * prompt_work_seconds
        + (1 - accompanied) * prefill_seconds)
        # for which a prompt keeps all others waiting
    wait_steps: 1 = queue_variation
        * (prompt_step_seconds + accompanied * token_factor * decode_seconds) / prompt_step_seconds
        * sqrt(interference * growth_seconds / prompt_work_seconds)
        # a step computes prompts and a token of every running request; those that wait together are
        # started together: the root is fitted to replays
    free_steps: 1 = free_seconds / prompt_step_seconds  # in steps of a prompt
    prefill_load: 1 = 2 * sequences / (2 * sequences + free_steps
        + sqrt(free_steps ** 2 + 4 * sequences * wait_steps))
        # part of the time in which some prompt is processed
    replica_rate: 1/s = prefill_load / prompt_step_seconds  # every request brings one prompt
    request_seconds: s = sequences / replica_rate  # Little's law
""")
_OPEN_TOKEN = sheet("""
    decoding_seconds: s = answer_seconds / (1 - prefill_load)
        # from the first token to the last, with the prompts that come between them
    backlog_seconds: s = prefill_load / (1 - prefill_load) * (queue_seconds + prefill_seconds)
        # until the prompts are processed that came before its first token
    stalled_seconds: s = decoded_tokens * prompt_step_seconds
        * min(1, max_num_batched_tokens / input_mean)
        # every one of its tokens waits for a step with prompts
    earlier_seconds: s = backlog_seconds * stalled_seconds
        / (backlog_seconds / sqrt(prefill_load) + stalled_seconds)
        # of prompts that came before its first token, what it waits for: until they are processed
        # or it has its tokens; the root is fitted to replays
    time_per_output_token: s = (decoding_seconds + earlier_seconds) / max(decoded_tokens, 0.001)
        # of both; 0 where an answer is one token
""")
_ALL = sheet("""
    first_token_seconds: s = max(first_correction * modelled_first_seconds, first_floor)
        # calibrated on served models, corrected by the measured points near it
    time_to_first_token: s = first_token_seconds + queue_seconds
        + sqrt((first_prefill_factor * (longest_prefill_seconds - prefill_seconds)) ** 2
        + max(queue_p95_seconds - queue_seconds, 0) ** 2)
        # 95th percentile: of a long prompt and a long queue, spreads add in squares; where few
        # wait at all, that of the waits is below their mean
    request_latency: s = first_token_seconds + queue_seconds
        + (output_mean - 1) * time_per_output_token  # mean: the first token, then the others
""")
_HEAD = TOKEN + FIRST + _MEASURED + VARIATION
_STEADY = _CLOSED + PROMPTS_ALONE + QUEUE + _ALL
CLOSED = _HEAD + _STEADY
MEASURED = TOKEN + LOOP + _MEASURED + VARIATION + _STEADY
OPEN = _HEAD + _OPEN + QUEUE + _OPEN_TOKEN + _ALL
