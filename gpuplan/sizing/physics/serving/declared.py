"""What `Declared` changes in the sheets of `steps`, `latency` and `memory`: speculative decoding (a
draft model or multi-token prediction), a prefix cache, bursts; and what a pipeline changes."""

from __future__ import annotations

import re
from functools import cache

from gpuplan.sizing.evidence.formula import Formula
from gpuplan.sizing.evidence.sheet import Sheet, sheet

_VERIFIED = sheet("""
    tokens: 1 = sequences * (draft_tokens + 1)
        # a step verifies the drafts of every sequence and one token more (Leviathan et al. 2023)
    outputs: 1 = tokens  # every one of them is sampled
""")
_ACCEPTED = sheet("""
    seconds: s = step_seconds * (1 + draft_cost) / accepted_tokens
        # drafting and verifying, for each token that is accepted
""")
_COMPUTED = sheet("""
    tokens: 1 = max(1, prompt * (1 - prefix_hit_share))  # tokens that are not in the prefix cache
""")
_VARIATION = sheet("""
    requests_in_second: 1 = closed_rate * second  # mean requests of a second
    arrival_variation: 1 = max(1, requests_in_second * ((burst - 1) / 2.27) ** 2)
        # variance over mean of the requests of a second, whose busiest of 60 is `burst` times the
        # mean (2.27 deviations above it, the median of the largest of 60)
""")
_RUNNING = sheet("""
    max_num_seqs: 1 = max(2,
        ceil(sequences + 2.326 * sqrt(sequences * (1 + arrival_variation) / 2)))
        # 99th percentile of the running requests: the peakedness of bursts with exponential service
        # (Whitt 1984)
""")


@cache
def verified(decode: Sheet) -> Sheet:
    """A decode step that verifies drafts; its `seconds` are those of one accepted token."""
    more = _changed(
        decode, "attention_flop", "({}) * (draft_tokens + 1)", "of every verified token"
    )
    (_, one), rest = more.lines[-1], more.lines[:-1]
    verifies = Formula(one.expression, one.unit, "a step that verifies")
    return _VERIFIED + Sheet((*rest, ("step_seconds", verifies))) + _ACCEPTED


@cache
def partly_cached(prefill: Sheet) -> Sheet:
    """The prefill of a prompt whose first part is in the cache: what is left attends to all."""
    less = _changed(
        prefill,
        "attention_flop",
        "({}) * (1 - prefix_hit_share ** 2)",
        "of the tokens that are not in the prefix cache, to all before them",
    )
    return _COMPUTED + less


_RATE = sheet("""
    closed_rate: 1/s = sequences / (prefill_seconds + output_mean * closed_token_seconds)
        # requests of as many sequences, where nothing waits
""")


@cache
def bursting(times: Sheet, before: Sheet = _RATE) -> Sheet:
    """The wait of Allen and Cunneen instead of that of Poisson arrivals; `before` gives the rate of
    which bursts are told."""
    more = _changed(
        times,
        "queue_variation",
        "({}) + (arrival_variation - 1) / 2",
        "of a G/G/1 queue (Allen and Cunneen)",
    )
    place = next(n for n, (name, _) in enumerate(more.lines) if name == "queue_variation")
    return Sheet(more.lines[:place]) + before + _VARIATION + Sheet(more.lines[place:])


@cache
def with_draft(memory: Sheet) -> Sheet:
    """The memory of a replica that verifies drafts."""
    logits = "({}) + (bf16_bytes + 2 * fp32_bytes) * max_num_seqs * draft_tokens * vocabulary"
    more = _changed(memory, "activations_bytes", logits, "and the logits of the drafts")
    return _changed(more, "own_bytes", "({}) + draft_bytes", "and the draft model")


STALLS = sheet("""
    stalling_ranks: 1 = 2 - 1 / pipeline_stages
        # a prompt holds up its own batch in every stage, those of the others in one stage each
""")


@cache
def of_each_stage(running: Sheet) -> Sheet:
    """The running requests of a pipeline: those of each stage's batch, for itself."""
    (name, all_of_them), *_ = running.lines[-1:]
    one = re.sub(r"\bsequences\b", "(sequences / pipeline_stages)", all_of_them.expression)
    why = f"{all_of_them.source}; of each stage's batch for itself"
    each = Formula(f"pipeline_stages * ({one})", all_of_them.unit, why)
    return Sheet((*running.lines[:-1], (name, each)))


CROWDED = _VARIATION + _RUNNING  # the running requests of a service with bursts


def _changed(lines: Sheet, name: str, expression: str, more: str) -> Sheet:
    """`lines` with the line `name` as `expression`, in which `{}` is what it was. `more` is added
    to its source."""
    place = next(n for n, (line, _) in enumerate(lines.lines) if line == name)
    old = lines.lines[place][1]
    new = Formula(expression.format(old.expression), old.unit, f"{old.source}; {more}")
    return Sheet((*lines.lines[:place], (name, new), *lines.lines[place + 1 :]))
