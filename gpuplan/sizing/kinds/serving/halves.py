"""One replica of a pool that only prefills, and of one that only decodes: the most that each may
do in time.

A prefill replica takes one prompt after the other (M/G/1), hands its KV cache over, and never
decodes; a decode replica is never stalled by a prompt. Nothing of it is measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import product

from gpuplan.plan.times import TIMES, time_name
from gpuplan.sizing.evidence.formula import constant
from gpuplan.sizing.evidence.halving import halved
from gpuplan.sizing.evidence.sheet import Sheet, sheet
from gpuplan.sizing.kinds.serving.limit import holds
from gpuplan.sizing.kinds.serving.pairs import PoolReplica
from gpuplan.sizing.physics.serving.declared import bursting
from gpuplan.sizing.physics.serving.latency import OPEN, PROMPT, PROMPTS_ALONE, QUEUE, VARIATION
from gpuplan.sizing.physics.serving.percentiles import answers, with_statistics
from gpuplan.sizing.physics.serving.replica import MOST_SEQUENCES, Replica

Decoder = tuple[Replica, PoolReplica]  # at its most sequences

ONE_BY_ONE = constant(1, "1", "how much longer a prompt takes beside others: they run one by one")
IDLE = 0.001  # busy part of a replica that is hardly asked
MOST_LOAD = 0.8  # busy part of a prefill replica, where no first token is asked for; else 0.95
FIRST = sheet("""
    transfer_seconds: s = prompt_cache_bytes / transfer_rate  # the prompt's KV cache, once
    first_token_seconds: s = first_overhead + first_prefill_factor * prompt_seconds
        + transfer_seconds  # arrival, the prompt itself, and the cache's way
""")
FIRST = PROMPT + FIRST + VARIATION + PROMPTS_ALONE + QUEUE
FIRST += Sheet(tuple(line for line in OPEN.lines if line[0] == "time_to_first_token"))
# Nothing stalls a token, so an answer takes as long as it has tokens.
_WHOLE = """
    request_latency: s = first_token_seconds + queue_seconds + decoded_tokens * token_seconds
        # mean: the first token, then the others
"""
_WHOLE_PERCENTILE = """
    request_latency_{s}: s = request_latency {sign} sqrt(((answer_{s} - output_mean)
        * token_seconds) ** 2 + ({first} - first_token_seconds - queue_seconds) ** 2)
        # percentile: of an answer's length and of its first token, spreads add in squares
"""


def decoders(made: Iterable[Replica]) -> list[Decoder]:
    """Those of `made` that meet the objectives of tokens when they only decode."""
    return [(r, p) for r in made if (p := decoding(r)) is not None]


def halves(
    made: Sequence[Replica], tokens: Sequence[Decoder], sent: float | None
) -> Iterator[tuple[PoolReplica, PoolReplica]]:
    """Every two of `made` and its decoders that meet the objectives, where a GPU sends `sent` bytes
    of a cache per second; None: by the links of its kind. A limit of the whole request is divided
    among both halves: decode replicas with fewer sequences are faster, and leave more to the first
    token."""
    if not any(TIMES[name][0] == "request_latency" for r in made for name, _, _ in r.limits):
        first = [p for r in made if (p := prefilling(r, sent=sent)) is not None]
        yield from product(first, (part for _, part in tokens))
        return
    for replica, most in tokens:
        for part in _fewer(replica, most):
            for other in made:
                if (prefill := prefilling(other, part.seconds, sent=sent)) is not None:
                    yield prefill, part


def _fewer(replica: Replica, most: PoolReplica) -> Iterator[PoolReplica]:
    """The decode replica at its most sequences, and at fewer."""
    yield most
    sequences = most.sequences
    while sequences > 1:
        sequences = sequences * 3 // 4
        yield _decoding(replica, sequences)


def decoding(replica: Replica) -> PoolReplica | None:
    """The most sequences at which a token is in time, without any prompt between them."""
    limit = min(_limits(replica, "time_per_output_token").values(), default=math.inf)

    def works(sequences: int) -> bool:
        return holds(replica, sequences) and replica.times(sequences)["decode_seconds"] <= limit

    if not works(1):
        return None
    low, high = 1, MOST_SEQUENCES
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if works(middle) else (low, middle - 1)
    return _decoding(replica, low)


def _decoding(replica: Replica, sequences: int) -> PoolReplica:
    times = replica.times(sequences)
    seconds = times["decode_seconds"]
    rate = sequences / (times["output_mean"] * seconds * replica.slowness)
    return PoolReplica(replica.gpus, rate, seconds, sequences)


def _limits(replica: Replica, *times: str) -> dict[str, float]:
    """The limits of all statistics of `times`, with the wanted confidence."""
    return {name: limit / slow for name, limit, slow in replica.limits if TIMES[name][0] in times}


def prefilling(
    replica: Replica, token_seconds: float = 0.0, *, sent: float | None = None
) -> PoolReplica | None:
    """The busiest that a replica may be for the first token to be in time, and for the whole
    request where it decodes a token in `token_seconds`."""
    if not holds(replica, 1):
        return None
    limits, times = _prefilling(replica, token_seconds, sent)

    def met(load: float) -> bool:
        seconds = times(load)
        return all(seconds[name] <= limit for name, limit in limits.items())

    low, high = IDLE, 0.95 if limits else MOST_LOAD
    if not met(low):
        return None
    if not met(high):
        high, _ = halved(low, high, met, 1e-9)
    rate = high / (times(high)["prefill_work_seconds"] * replica.slowness)
    return PoolReplica(replica.gpus, rate, times(high)["time_to_first_token"], load=high)


def soonest(
    replica: Replica, token_seconds: float, *, sent: float | None
) -> tuple[dict[str, float], dict[str, float]]:
    """The limits of `prefilling`, and the times of a replica that is hardly busy: nothing is
    sooner."""
    limits, times = _prefilling(replica, token_seconds, sent)
    return limits, times(IDLE)


def _prefilling(
    replica: Replica, token_seconds: float, sent: float | None
) -> tuple[dict[str, float], Callable[[float], dict[str, float]]]:
    """The limits of a prefill replica, and its times where it is busy for a part of the time."""
    limits = _limits(replica, "time_to_first_token", *(["request_latency"] * (token_seconds > 0)))
    first = first_token(tuple(limits), bursts=replica.bursts)
    scope = replica.times(1.0) | _transfer(replica, sent) | {"token_seconds": token_seconds}
    scope["first_prefill_factor"] = ONE_BY_ONE.value
    work = scope["prefill_work_seconds"]

    def times(load: float) -> dict[str, float]:
        load_scope = {"prefill_load": load, "prompt_step_seconds": work, "closed_rate": load / work}
        return first(scope | load_scope)

    return limits, times


@cache
def first_token(names: tuple[str, ...], *, bursts: bool) -> Sheet:
    """The time to first token, and the other times of `names`, of a prefill replica."""
    made = bursting(FIRST, Sheet(())) if bursts else FIRST
    whole = [TIMES[n][1] for n in names if TIMES[n][0] == "request_latency"]
    firsts = {n for n in names if TIMES[n][0] == "time_to_first_token"}
    tails = [s for s in whole if s != "mean"]
    firsts |= {time_name("time_to_first_token", s) for s in tails}
    made = with_statistics(made, tuple(sorted(firsts)), bursts=False)
    if whole:
        made += sheet(_WHOLE)
    for statistic in tails:
        made += answers(statistic, known=made)
        sign, first = (
            "-" if statistic == "p50" else "+",
            time_name("time_to_first_token", statistic),
        )
        made += sheet(_WHOLE_PERCENTILE.format(s=statistic, sign=sign, first=first))
    return made


def _transfer(replica: Replica, sent: float | None) -> dict[str, float]:
    """The cache of a mean prompt, and the rate at which a GPU sends its part: as `sent` says, else
    by NVLink where there is one, else by PCIe."""
    gpu = replica.device.gpu
    link = gpu.nvlink_bytes_per_s or gpu.pcie_bytes_per_s
    rate = link.value if sent is None else sent
    cache = cached_token_bytes(replica) * replica.service.tokens.input_mean.value
    return {"prompt_cache_bytes": cache, "transfer_rate": rate}


def cached_token_bytes(replica: Replica) -> float:
    """What a GPU keeps of a token, with the room that blocks leave."""
    needs = replica.needs(1.0)
    return needs["kv_cache_bytes"] / needs["kv_cache_tokens"]
