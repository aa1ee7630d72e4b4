"""Two pools, one for prefill and one for decode, by hand and by trying every pair of numbers."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.sizing.ask.demand import LanguageDemand
from gpuplan.sizing.decide.capacity import capacities
from gpuplan.sizing.kinds.serving.limit import holds
from gpuplan.sizing.kinds.serving.split import Part, _decode, _pairs, _prefill, split
from gpuplan.sizing.physics.serving.replica import Replica
from tests.support.sizing_cases import CHAT_70B, offer, replica, site, wanted

GPU = "h200-sxm-141gb"
NVLINK = 450e9  # bytes per second, each way
TOKEN_BYTES = 2 * 80 * 8 * 128 * 2  # keys and values of 80 layers of 8 heads of 128, in bf16
PARTS = st.lists(
    st.builds(Part, st.sampled_from((1, 2, 4, 8)), st.floats(0.1, 9), st.just(1.0)),
    min_size=1,
    max_size=3,
)


@settings(max_examples=60)
@given(PARTS, PARTS, st.sampled_from((1, 2, 3)))
def test_no_numbers_of_replicas_serve_more_than_the_best_pair(
    first: list[Part], token: list[Part], nodes: int
) -> None:
    room = 8 * nodes
    possible = [
        min(a * p.rate, b * d.rate)
        for p, d in product(first, token)
        for a, b in product(range(1, room + 1), repeat=2)
        if a * p.gpus + b * d.gpus <= room
    ]
    pairs = [*_pairs(offer(GPU, node_count=nodes), first, token)]
    assert max((pair[0] for pair in pairs), default=0) == max(possible, default=0)
    for served, prefill, some, decode, more in pairs:
        assert served == min(some * prefill.rate, more * decode.rate)
        assert some * prefill.gpus + more * decode.gpus <= room
        assert some == 1 or (some - 1) * prefill.rate < more * decode.rate  # and none for nothing


def served(text: str = CHAT_70B) -> tuple[LanguageDemand, Replica]:
    demand = wanted(text)
    assert isinstance(demand, LanguageDemand)
    return demand, replica(demand, GPU, 4)


def test_a_decode_replica_runs_as_many_as_are_in_time_without_prompts() -> None:
    _, one = served()
    part = _decode(one)
    assert part is not None
    limit = 0.04 / one.slowness

    def step(sequences: int) -> float:
        return one.times(sequences)["decode_seconds"]

    assert part.seconds == step(part.sequences) <= limit
    assert step(part.sequences + 1) > limit or not holds(one, part.sequences + 1)
    assert part.rate == pytest.approx(part.sequences / (300 * part.seconds * one.slowness))
    _, slow = served(CHAT_70B.replace("40 ms", "1 ms"))
    assert _decode(slow) is None


def first_token(one: Replica, load: float) -> float:
    """95th percentile of a replica that is busy with prompts for a part `load` of its time."""
    times, scope = one.times(1), one.scope
    spread = (4000 / 1200 - 1) / 1.645
    wait = times["prefill_work_seconds"] * (1 + spread**2) / 2 * load / (1 - load)
    late = wait / load * math.log(max(load / 0.05, 1))
    long = times["longest_prefill_seconds"] - times["prefill_seconds"]
    likely = scope["first_overhead"].value + times["prefill_seconds"]
    likely += 1200 * TOKEN_BYTES / 4 / NVLINK
    return likely + wait + math.hypot(long, late - wait)


@pytest.mark.parametrize("limit", ["1 s", "2 s", "100 s", None])
def test_a_prefill_replica_is_as_busy_as_the_first_token_allows(limit: str | None) -> None:
    """To 95 % of its time; to 80 % where nothing is asked of the first token."""
    text = CHAT_70B.replace("time_to_first_token: 1 s, ", f"time_to_first_token: {limit}, ")
    if limit is None:
        text = CHAT_70B.replace("time_to_first_token: 1 s, ", "")
    _, one = served(text)
    part = _prefill(one)
    assert part is not None
    load = part.rate * one.times(1)["prefill_work_seconds"] * one.slowness
    assert part.seconds == pytest.approx(first_token(one, load), rel=1e-6)
    assert part.sequences == 1
    if limit is None or limit == "100 s":
        assert load == pytest.approx(0.8 if limit is None else 0.95)
        return
    allowed = float(limit.removesuffix(" s")) / one.slow("time_to_first_token")
    assert 0.001 < load < 0.95
    assert part.seconds <= allowed < first_token(one, load * 1.001)


def test_a_prompt_that_takes_too_long_alone_has_no_pool() -> None:
    demand, one = served(CHAT_70B.replace("1 s", "50 ms"))
    assert _prefill(one) is None
    assert split(demand, offer(GPU, node_count=2), site(GPU)) is None


def test_bursts_leave_a_prefill_replica_less_to_do() -> None:
    """A busiest second of the mean changes nothing; one of four times as many does."""
    bursty = CHAT_70B.replace("peak: 20}", "peak: 20}, burst: %s")
    plain, even, uneven = (_prefill(served(text)[1]) for text in (CHAT_70B, bursty % 1, bursty % 6))
    assert plain is not None
    assert even is not None
    assert uneven is not None
    assert even.rate == pytest.approx(plain.rate)
    assert uneven.rate < 0.99 * plain.rate


def test_what_two_pools_serve_is_what_their_parts_do() -> None:
    demand, one = served()
    (found,) = capacities(demand, site(GPU), 2, splitting=True)
    pools = found.split
    assert pools is not None
    prefill = _prefill(replica(demand, GPU, pools.prefill_tensor_parallel_size))
    decode = _decode(replica(demand, GPU, pools.decode_tensor_parallel_size))
    assert prefill is not None
    assert decode is not None
    rates = pools.prefill_replicas * prefill.rate, pools.decode_replicas * decode.rate
    assert pools.assured == pytest.approx(min(rates))
    assert pools.requests_per_second.value == pytest.approx(min(rates) * one.slowness, rel=0.05)
    assert pools.time_to_first_token == pytest.approx(prefill.seconds)
    assert pools.time_per_output_token == pytest.approx(decode.seconds)
    assert pools.sequences == decode.sequences
