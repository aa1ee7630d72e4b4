"""Prompts and answers with replicas of their own, as a manifest asks for them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from gpuplan.plan.model import Evidence, Fabric
from gpuplan.plan.times import field_of
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.decide.tried import tried
from gpuplan.sizing.evidence.formula import evaluate
from gpuplan.sizing.hardware.offers import Site
from gpuplan.units import GB
from tests.support.sizing_cases import CHAT_70B, failure, refusals, site, sized, wanted, work

GPU = "h200-sxm-141gb"
APART = CHAT_70B + "    disaggregation: prefill_decode\n"


def joined(rate: float) -> Site:
    fabric = Fabric(kind="infiniband", bytes_per_s_per_gpu=rate, resource="rdma/hca")
    return replace(site(GPU), fabric=fabric)


def planned(text: str = APART, rate: float = 50 * GB) -> Sized:
    return sized(text, joined(rate))


def value(of: Sized, name: str) -> float:
    return next(e.value for e in of.evidence if e.quantity.partition(".")[2] == name)


def test_one_replica_less_of_either_kind_serves_less_than_the_peak() -> None:
    plan = planned()
    pools = plan.workload.disaggregation
    assert pools is not None
    rates = value(plan, "prefill_rate"), value(plan, "decode_rate")
    peak = value(plan, "sized_rate")
    for rate, count in zip(rates, (pools.prefill_replicas, pools.decode_replicas), strict=True):
        assert count * rate >= peak * (1 - 1e-9)
        assert count == 1 or (count - 1) * rate < peak
    both = pools.prefill_replicas + pools.decode_replicas
    assert plan.workload.replicas == both
    assert plan.workload.gpu_count == both * plan.workload.parallelism.gpus


@pytest.mark.parametrize("answers", [300, 600, 900, 1200, 1500])
def test_what_binds_is_the_pool_with_less_room(answers: int) -> None:
    plan = planned(APART.replace("output_tokens: 300", f"output_tokens: {answers}"))
    prompts, decoded = (
        value(plan, f"{pool}_replicas") * value(plan, f"{pool}_rate")
        for pool in ("prefill", "decode")
    )
    assert plan.workload.bound_by == ("prompts" if prompts < decoded else "answers")


def test_every_number_is_what_its_formula_gives() -> None:
    plan = planned()
    derived: list[Evidence] = [e for e in plan.evidence if e.formula]
    assert {"prefill_replicas", "decode_replicas", "transfer_seconds"} <= {
        e.quantity.partition(".")[2] for e in derived
    }
    for entry in derived:
        inputs = {i.name: i.value for i in entry.inputs}
        assert evaluate(entry.formula, inputs) == entry.value, entry.quantity


def test_objectives_are_met_at_the_peak_with_the_wanted_confidence() -> None:
    chances = {m.name: m.probability for m in planned().workload.metrics if m.limit is not None}
    assert {"time_to_first_token", "time_per_output_token"} <= set(chances)
    assert all(c is not None and c >= 0.8 - 1e-6 for c in chances.values()), chances


def test_a_percentile_of_the_pace_is_that_of_every_answer() -> None:
    """No prompt comes between tokens; how far it lies from the mean is less sure."""
    asked = "time_per_output_token: {mean: 40 ms, p95: 15 ms}"
    plan = planned(APART.replace("time_per_output_token: 40 ms", asked))
    shown = {m.name: m for m in plan.workload.metrics}
    mean, tail = shown["time_per_output_token"], shown["time_per_output_token_p95"]
    assert (mean.limit, tail.limit) == (0.040, 0.015)
    assert tail.estimate.value == mean.estimate.value
    assert tail.estimate.low < mean.estimate.low < mean.estimate.high < tail.estimate.high
    assert tail.estimate.value < 0.015
    assert tail.probability is not None
    assert tail.probability >= 0.8 - 1e-6
    assert plan.workload.gpu_count > planned().workload.gpu_count


def test_a_token_never_waits_for_a_prompt() -> None:
    """Nor does what a replica which does both adds to it appear anywhere."""
    both = sized(CHAT_70B, joined(50 * GB))
    apart = planned(APART + "    overrides: {tensor_parallel_size: 4}\n")
    assert value(apart, "time_per_output_token") == value(apart, "decode.seconds")
    assert value(both, "time_per_output_token") > value(both, "decode.seconds")


def test_a_cache_goes_over_the_fabric_and_delays_the_first_token() -> None:
    four = APART + "    overrides: {tensor_parallel_size: 4}\n"
    fast, slow = planned(four), planned(four, rate=2 * GB)
    sent = value(fast, "prompt_cache_bytes") / (50 * GB)
    assert value(fast, "transfer_seconds") == pytest.approx(sent)
    assert value(slow, "transfer_seconds") > value(fast, "transfer_seconds")
    assert slow.workload.replicas >= fast.workload.replicas


def test_what_a_slow_fabric_makes_late_is_refused_by_its_time() -> None:
    problem = failure(APART, joined(0.02 * GB))
    assert "reaches slo.time_to_first_token 1 s: the best is" in str(problem.help)


@pytest.mark.parametrize(
    ("slo", "name", "limit"),
    [
        ("{time_per_output_token: 40 ms, time_to_first_token: 1 s}", "time_to_first_token", 1.0),
        (
            "{time_per_output_token: 40 ms, time_to_first_token: 60 s, request_latency: 6 s}",
            "request_latency",
            6.0,
        ),
        (
            "{time_per_output_token: {p95: 41 ms}, time_to_first_token: {p50: 900 ms, p95: 70 s}}",
            "time_to_first_token_p50",
            0.9,
        ),
    ],
)
def test_the_objective_that_the_hand_over_misses_is_told_with_its_own_limit(
    slo: str, name: str, limit: float
) -> None:
    old = "{time_to_first_token: 1 s, time_per_output_token: 40 ms}"
    text = APART.replace(old, slo) + "    overrides: {tensor_parallel_size: 8}\n"
    ((_, (found,)),) = tried(wanted(text), joined(0.002 * GB))
    (short,) = found.shortfalls
    assert (short.resource, short.capacity, short.used, short.unit) == (name, limit, 0.0, "s")
    assert short.requested > limit
    assert found.flip is not None
    assert (found.flip.now, found.flip.needed) == (limit, short.requested)
    assert found.flip.quantity == field_of(name)
    ((_, (fast,)),) = tried(wanted(text), joined(50 * GB))
    assert fast.feasible


def test_without_a_fabric_nothing_is_planned() -> None:
    assert "platform.fabric" in str(failure(APART, replace(site(GPU), fabric=None)))


@pytest.mark.parametrize("rate", [0.5, 2.0, 7.0, 20.0, 60.0])
def test_more_requests_never_need_fewer_replicas(rate: float) -> None:
    def asked(peak: float) -> tuple[int, int]:
        text = APART.replace("{mean: 8, peak: 20}", f"{peak}")
        text += "    overrides: {tensor_parallel_size: 4}\n"
        pools = work(text, joined(50 * GB)).disaggregation
        assert pools is not None
        return pools.prefill_replicas, pools.decode_replicas

    few, many = asked(rate), asked(rate * 1.5)
    assert all(a <= b for a, b in zip(few, many, strict=True))
    assert math.prod(few) >= 1


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("engine: sglang", "'sglang' is not started as pools"),
        ("overrides: {replicas: 4}", "'overrides.replicas'"),
        ("overrides: {max_num_seqs: 64}", "'overrides.max_num_seqs'"),
        ("overrides: {partition: 1g.18gb}", "'overrides.partition'"),
        ("overrides: {pipeline_parallel_size: 2}", "'overrides.pipeline_parallel_size'"),
        ("speculative: {accepted_tokens: 2, draft_tokens: 3, draft_cost: 0}", "'speculative'"),
        ("command: [vllm, serve]", "'command'"),
    ],
)
def test_what_pools_do_not_go_with_is_named(field: str, said: str) -> None:
    (problem,) = refusals(APART + f"    {field}\n")
    assert said in problem.message
    assert problem.severity.name == "ERROR"


def test_users_who_wait_for_their_answers_are_refused() -> None:
    text = APART.replace("requests_per_second: {mean: 8, peak: 20}", "concurrency: {users: 40}")
    assert any("'load.concurrency'" in p.message for p in refusals(text))
