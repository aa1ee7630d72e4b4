"""Two pools, one for prefill and one for decode, by hand and by trying every pair of numbers."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import cache
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.sizing.ask.demand import LanguageDemand
from gpuplan.sizing.decide.capacity import capacities
from gpuplan.sizing.hardware.devices import fabric_rate
from gpuplan.sizing.kinds.serving.halves import decoding, prefilling
from gpuplan.sizing.kinds.serving.limit import holds
from gpuplan.sizing.kinds.serving.pairs import PoolReplica, anywhere, in_each, pairs
from gpuplan.sizing.kinds.serving.split import split
from gpuplan.sizing.physics.serving.replica import Replica
from tests.support.sizing_cases import CHAT_8B, CHAT_70B, offer, replica, site, wanted, work

GPU = "h200-sxm-141gb"
NVLINK = 450e9  # bytes per second, each way
TOKEN_BYTES = 2 * 80 * 8 * 128 * 2  # keys and values of 80 layers of 8 heads of 128, in bf16
PART = st.builds(PoolReplica, st.sampled_from((1, 2, 4, 8)), st.floats(0.1, 9), st.just(1.0))


@settings(max_examples=60)
@given(PART, PART, st.sampled_from((1, 2, 3)))
def test_no_numbers_of_replicas_serve_more_than_the_best_pair(
    prefill: PoolReplica, decode: PoolReplica, nodes: int
) -> None:
    room = 8 * nodes
    possible = [
        min(a * prefill.rate, b * decode.rate)
        for a, b in product(range(1, room + 1), repeat=2)
        if a * prefill.gpus + b * decode.gpus <= room
    ]
    found = [*pairs(prefill, decode, 8, nodes)]
    assert max((p.served for p in found), default=0) == max(possible, default=0)
    for pair in found:
        some, more = pair.prefills, pair.decodes
        assert pair.served == min(some * prefill.rate, more * decode.rate)
        assert pair.gpus == some * prefill.gpus + more * decode.gpus <= room
        assert some == 1 or (some - 1) * prefill.rate < more * decode.rate  # and none for nothing


def fits(sizes: list[int], nodes: int, room: int) -> bool:
    """Whether nodes of `room` GPUs hold `sizes`, by trying every place of each."""

    @cache
    def put(rest: tuple[int, ...], free: tuple[int, ...]) -> bool:
        return not rest or any(
            put(rest[1:], tuple(sorted((*free[:n], f - rest[0], *free[n + 1 :]))))
            for n, f in enumerate(free)
            if f >= rest[0] and f not in free[:n]
        )

    return put(tuple(sorted(sizes, reverse=True)), (room,) * nodes)


SMALL = st.builds(PoolReplica, st.sampled_from((1, 2, 3, 4, 8)), st.floats(0.5, 4), st.just(1.0))


@settings(max_examples=100)
@given(SMALL, SMALL, st.sampled_from((4, 6, 8)), st.floats(0.5, 5))
def test_pools_lie_on_the_fewest_nodes(
    prefill: PoolReplica, decode: PoolReplica, room: int, rate: float
) -> None:
    numbers = math.ceil(rate / prefill.rate - 1e-9), math.ceil(rate / decode.rate - 1e-9)
    sizes = [prefill.gpus] * numbers[0] + [decode.gpus] * numbers[1]
    found = anywhere(prefill, decode, room, rate)
    if max(sizes) > room:
        assert found is None
        return
    assert found is not None
    nodes, pair = found
    assert (pair.prefills, pair.decodes) == numbers
    assert fits(sizes, nodes, room)
    assert not fits(sizes, nodes - 1, room)


@settings(max_examples=100)
@given(SMALL, SMALL, st.sampled_from((4, 6, 8)), st.floats(0.5, 60))
def test_nodes_with_both_pools_serve_their_part_each(
    prefill: PoolReplica, decode: PoolReplica, room: int, rate: float
) -> None:
    found = in_each(prefill, decode, room, rate)
    best = max((p.served for p in pairs(prefill, decode, room)), default=0.0)
    if not best:
        assert found is None
        return
    assert found is not None
    nodes, pair = found
    assert pair.gpus <= nodes * room
    assert pair.prefills % nodes == pair.decodes % nodes == 0
    assert pair.served >= rate * (1 - 1e-6)
    assert (nodes - 1) * best < rate


def served(text: str = CHAT_70B) -> tuple[LanguageDemand, Replica]:
    demand = wanted(text)
    assert isinstance(demand, LanguageDemand)
    return demand, replica(demand, GPU, 4)


def test_a_decode_replica_runs_as_many_as_are_in_time_without_prompts() -> None:
    _, one = served()
    part = decoding(one)
    assert part is not None
    limit = 0.04 / one.slowness

    def step(sequences: int) -> float:
        return one.times(sequences)["decode_seconds"]

    assert part.seconds == step(part.sequences) <= limit
    assert step(part.sequences + 1) > limit or not holds(one, part.sequences + 1)
    assert part.rate == pytest.approx(part.sequences / (300 * part.seconds * one.slowness))
    _, slow = served(CHAT_70B.replace("40 ms", "1 ms"))
    assert decoding(slow) is None


def test_a_decode_replica_may_run_a_single_sequence() -> None:
    """A limit that a token alone just meets, and two together miss."""
    _, one = served()
    alone, two = (one.times(n)["decode_seconds"] for n in (1, 2))
    assert alone < two
    limit = (alone + two) / 2 * one.slowness * 1000
    _, hurried = served(CHAT_70B.replace("40 ms", f"{limit:.6f} ms"))
    part = decoding(hurried)
    assert part is not None
    assert (part.sequences, part.seconds) == (1, pytest.approx(alone))


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
    part = prefilling(one)
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
    assert prefilling(one) is None
    assert split(demand, offer(GPU, node_count=2), site(GPU)) is None


def test_bursts_leave_a_prefill_replica_less_to_do() -> None:
    """A busiest second of the mean changes nothing; one of four times as many does."""
    bursty = CHAT_70B.replace("peak: 20}", "peak: 20}, burst: %s")
    plain, even, uneven = (
        prefilling(served(text)[1]) for text in (CHAT_70B, bursty % 1, bursty % 6)
    )
    assert plain is not None
    assert even is not None
    assert uneven is not None
    assert even.rate == pytest.approx(plain.rate)
    assert uneven.rate < 0.99 * plain.rate


def test_a_slow_fabric_leaves_less_time_for_the_prompt() -> None:
    """Within a node the cache goes by its links; between nodes by the fabric, slower or not."""
    _, one = served()
    near, far, slow = prefilling(one), prefilling(one, sent=50e9), prefilling(one, sent=1e9)
    assert near is not None
    assert far is not None
    assert slow is not None
    assert near.rate > far.rate > slow.rate
    sent = 1200 * TOKEN_BYTES / 4 / 1e9
    assert prefilling(served(CHAT_70B.replace("1 s", f"{sent:.3f} s"))[1], sent=1e9) is None


def test_what_two_pools_serve_is_what_their_parts_do() -> None:
    demand, one = served()
    (found,) = capacities(demand, site(GPU), 2, splitting=True)
    pools = found.split
    assert pools is not None
    there = site(GPU)
    sent = None
    if pools.over == "fabric":
        assert there.fabric is not None
        sent = fabric_rate(there.gpus[0], there.fabric, None).value
    prefill = prefilling(replica(demand, GPU, pools.prefill_tensor_parallel_size), sent=sent)
    decode = decoding(replica(demand, GPU, pools.decode_tensor_parallel_size))
    assert prefill is not None
    assert decode is not None
    rates = pools.prefill_replicas * prefill.rate, pools.decode_replicas * decode.rate
    assert pools.assured == pytest.approx(min(rates))
    assert pools.requests_per_second.value == pytest.approx(min(rates) * one.slowness, rel=0.05)
    assert pools.time_to_first_token == pytest.approx(prefill.seconds)
    assert pools.time_per_output_token == pytest.approx(decode.seconds)
    assert pools.sequences == decode.sequences


def test_pools_that_cost_less_are_named_and_serve_the_load() -> None:
    """Of long prompts, beside tokens of which none may wait, at 16 requests/s a pool for both
    takes three nodes, and two pools take two."""
    busy = CHAT_70B.replace("{mean: 8, peak: 20}", "16").replace("1 s,", "4 s,")
    busy = busy.replace("{mean: 1200, p95: 4000}", "{mean: 2500, p95: 6000}")
    found = work(busy.replace("40 ms", "30 ms"), site("h100-sxm-80gb"))
    pools = found.cheaper_split
    assert found.gpu_count > 16
    assert pools is not None
    assert pools.nodes == 2
    assert pools.usd_per_hour == Decimal(2 * 8 * 4)
    assert pools.assured >= 16
    prefills = pools.prefill_replicas * pools.prefill_tensor_parallel_size
    assert prefills + pools.decode_replicas * pools.decode_tensor_parallel_size <= 16


@pytest.mark.parametrize(
    "text",
    [
        CHAT_8B,
        CHAT_70B.replace("requests_per_second: {mean: 8, peak: 20}", "concurrency: 900"),
        CHAT_70B.replace("{mean: 8, peak: 20}", "28") + "    overrides: {replicas: 9}\n",
    ],
    ids=["one GPU", "users who wait", "replicas that are given"],
)
def test_what_two_pools_would_serve_is_not_said_of_everything(text: str) -> None:
    assert work(text, site("h100-sxm-80gb")).cheaper_split is None


@pytest.mark.parametrize("rate", [3, 9, 17, 30, 55, 100])
def test_no_pools_are_named_that_cost_as_much(rate: int) -> None:
    where = site("h100-sxm-80gb", "h200-sxm-141gb", "l40s")
    found = work(CHAT_70B.replace("{mean: 8, peak: 20}", str(rate)), where)
    if (pools := found.cheaper_split) is not None:
        chosen = next(t for t in found.tradeoffs if t.chosen)
        assert pools.gpu == found.gpu
        assert pools.usd_per_hour is not None
        assert chosen.usd_per_hour is not None
        assert pools.usd_per_hour < chosen.usd_per_hour
        assert pools.assured >= rate * (1 - 1e-6)
