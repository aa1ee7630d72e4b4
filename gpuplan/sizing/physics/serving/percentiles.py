"""Other statistics of the times of a service than those that `latency.py` gives.

Lengths of prompts and of answers are log-normal with their means and 95th percentiles, as a replay
draws them; the queue has an exponential tail; spreads that are independent add in squares. Nothing
is fitted. Beside replays of random services the median is within 11 %, and nine of ten are from
41 % less to 55 % more (tests/replay/test_promises.py).
"""

from __future__ import annotations

from functools import cache

from gpuplan.plan.times import TIMES, Statistic, time_name
from gpuplan.sizing.evidence.sheet import Line, Sheet, sheet

# Standard deviations of a normal above its mean, and the part of the requests beyond.
_NORMAL: dict[Statistic, tuple[float, float]] = {
    "p50": (0, 0.5),
    "p95": (1.645, 0.05),
    "p99": (2.326, 0.01),
}
_LENGTHS = sheet("""
    prompt_sigma: 1 = 1.645 - sqrt(max(1.645 ** 2
        - 1.386294361 * log2(max(input_p95 / input_mean, 1)), 0))
        # spread of log-normal prompts with that mean and 95th percentile
    answer_sigma: 1 = 1.645 - sqrt(max(1.645 ** 2
        - 1.386294361 * log2(max(output_p95 / output_mean, 1)), 0))
        # spread of log-normal answers with that mean and 95th percentile
""")
# A request's own mean over its tokens. Within n tokens others' prompts come as a Poisson process,
# each of which delays those behind it: the delay cycle of an M/G/1 queue, whose variance is
# rate * n * token * mean square / (1 - load) ** 3 (Takacs). Short answers spread over more.
_PACE_SPREAD = """
    own_token_seconds: s = token_factor * decode_seconds  # of a request without others' prompts
    earlier_shared: 1 = stalled_seconds / (backlog_seconds / sqrt(prefill_load) + stalled_seconds)
        # how far what it waits for is the same for short and for long answers
    token_excess_seconds: s = time_per_output_token - own_token_seconds + earlier_seconds
        * (exp(earlier_shared * (1 + earlier_shared) * answer_sigma ** 2 / 2) - 1)
        / max(decoded_tokens, 0.001)
        # mean over requests: those with short answers wait longer for each of their tokens
    token_spread_seconds: s = sqrt({dispersion}replica_rate * own_token_seconds
        * (prompt_step_seconds * exp(prompt_sigma ** 2 / 2 + answer_sigma ** 2 / 2)) ** 2
        / ((1 - prefill_load) ** 3 * max(decoded_tokens, 0.001))
        + (2 / prefill_load - 1) * (earlier_seconds * exp(earlier_shared
        * (1 + 2 * earlier_shared) * answer_sigma ** 2 / 2) / max(decoded_tokens, 0.001)) ** 2)
        # standard deviation: the delay cycle of an M/G/1 queue, and an exponential wait that only
        # so many requests have
    token_sigma: 1 = sqrt(0.693147181 * log2(1
        + (token_spread_seconds / token_excess_seconds) ** 2))  # taken as log-normal
"""
_PACE = """
    time_per_output_token_{s}: s = own_token_seconds
        + token_excess_seconds * exp({z} * token_sigma - token_sigma ** 2 / 2)
        # percentile over requests
"""
# Of those beside a request as many come as go: their number is a Poisson one, whose mean over the
# request's life has two thirds of its variance, since each stays about as long as it does.
_PACE_TAIL = """
    batch_spread_seconds: s = sqrt(2 / 3) * token_factor * (fuller_seconds - decode_seconds)
        * time_per_output_token / own_token_seconds
        # standard deviation of what a request's tokens take by who is beside it
    stalled_token_{s}: s = own_token_seconds
        + token_excess_seconds * exp({z} * token_sigma - token_sigma ** 2 / 2)
        # percentile over requests, by others' prompts alone
    time_per_output_token_{s}: s = time_per_output_token
        + sqrt(max(stalled_token_{s} - time_per_output_token, 0) ** 2
        + ({z} * batch_spread_seconds) ** 2)
        # percentile over requests: spreads add in squares
"""
_FIRST_MEAN = sheet("""
    time_to_first_token_mean: s = first_token_seconds + queue_seconds  # with the wait for others
""")
_PROMPT = """
    prompt_{s}: 1 = input_mean * exp({z} * prompt_sigma - prompt_sigma ** 2 / 2)
        # percentile of the prompts
    queue_{s}_seconds: s = queue_seconds / prefill_load * 0.693147181
        * log2(max(prefill_load / {beyond}, 1))  # percentile of the wait, exponential tail
"""
_FIRST_MEDIAN = """
    time_to_first_token_p50: s = first_token_seconds + queue_seconds
        - sqrt(min(first_prefill_factor * prefill_seconds * (1 - prompt_p50 / input_mean),
        first_token_seconds) ** 2 + (queue_seconds - queue_p50_seconds) ** 2)
        # median: of a short prompt and a short queue, spreads add in squares
"""
_FIRST_TAIL = """
    prompt_{s}_excess: 1 = (prompt_{s} - input_mean) / max(input_p95 - input_mean, 1)
        # over that of the 95th percentile
    time_to_first_token_{s}: s = first_token_seconds + queue_seconds
        + sqrt((first_prefill_factor * (longest_prefill_seconds - prefill_seconds)
        * prompt_{s}_excess) ** 2 + max(queue_{s}_seconds - queue_seconds, 0) ** 2)
        # percentile: of a long prompt and a long queue, spreads add in squares
"""
_ANSWER = """
    answer_{s}: 1 = output_mean * exp({z} * answer_sigma - answer_sigma ** 2 / 2)
        # percentile of the answers
"""
_LATENCY = """
    answer_spread_seconds: s = sqrt({dispersion}replica_rate * output_mean * token_factor
        * decode_seconds * (prompt_step_seconds * exp(prompt_sigma ** 2 / 2)) ** 2
        / (1 - prefill_load) ** 3 + (2 / prefill_load - 1) * earlier_seconds ** 2)
        # standard deviation of a mean answer: the delay cycle of an M/G/1 queue
    request_latency_{s}: s = request_latency {sign} sqrt(((answer_{s} - output_mean)
        * time_per_output_token) ** 2 + ({z} * answer_spread_seconds) ** 2
        + ({first} - first_token_seconds - queue_seconds) ** 2)
        # percentile: of an answer's length and stalls and of its first token, spreads add in
        # squares
"""


FULLER = sheet("""
    fuller_sequences: 1 = max(sequences, 1) + sqrt(sequences)
        # one standard deviation more than on average
""")


def asks_for_fuller(latency: Sheet) -> bool:
    """Whether it takes `fuller_seconds`, those of a decode step at `fuller_sequences`."""
    return any(name == "batch_spread_seconds" for name, _ in latency.lines)


@cache
def with_statistics(latency: Sheet, names: tuple[str, ...], *, bursts: bool) -> Sheet:
    """The `latency` sheet of a service, and the times of `names` that it does not have."""
    known = {name for name, _ in latency.lines}
    more: dict[str, Line] = {}
    for name in names:
        if name not in known:
            more |= {line[0]: line for line in _lines(*TIMES[name], bursts).lines}
    added = tuple(line for name, line in more.items() if name not in known)
    return Sheet((*latency.lines, *added)) if added else latency


def _lines(time: str, statistic: Statistic, bursts: bool) -> Sheet:
    if statistic == "mean":
        return _FIRST_MEAN
    z, beyond = _NORMAL[statistic]
    crowds = "arrival_variation * " if bursts else ""
    words = {"s": statistic, "z": z, "beyond": beyond, "dispersion": crowds}
    if time == "time_per_output_token":
        pace = _PACE if statistic == "p50" else _PACE_TAIL
        return _LENGTHS + sheet((_PACE_SPREAD + pace).format(**words))
    first = _FIRST_MEDIAN if statistic == "p50" else _FIRST_TAIL
    text = "" if statistic == "p95" else (_PROMPT + first).format(**words)
    if time == "request_latency":
        sign = "-" if statistic == "p50" else "+"
        of_first = time_name("time_to_first_token", statistic)
        text += (_ANSWER + _LATENCY).format(**words, sign=sign, first=of_first)
    return _LENGTHS + sheet(text)


def answers(statistic: Statistic, known: Sheet) -> Sheet:
    """The percentile of the answers' lengths, and what it needs that `known` lacks."""
    z, _ = _NORMAL[statistic]
    lines = (_LENGTHS + sheet(_ANSWER.format(s=statistic, z=z))).lines
    known_names = {name for name, _ in known.lines}
    return Sheet(tuple(line for line in lines if line[0] not in known_names))
