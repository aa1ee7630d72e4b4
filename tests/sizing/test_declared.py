"""What a manifest declares of a service: drafts, a prefix cache, bursts, users in a closed loop."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.engines import arguments
from gpuplan.manifest.load import load_text
from gpuplan.plan.model import Workload
from gpuplan.render.commented import Because
from gpuplan.sizing.ask.demand import Demand, ServingDemand
from gpuplan.sizing.ask.given import numbers
from gpuplan.sizing.ask.parts import ClosedLoop
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.decide.capacity import capacities
from gpuplan.sizing.evidence.formula import evaluate
from gpuplan.sizing.physics.serving.replica import Replica
from tests.support.sizing_cases import (
    CHAT_8B,
    CHAT_70B,
    DEEPSEEK,
    refusals,
    site,
    size,
    wanted,
    work,
)
from tests.support.sizing_cases import replica as replica_of

SERVED = {"dense": CHAT_70B, "small": CHAT_8B, "latent": DEEPSEEK}
DRAFTS = {
    "speculative.accepted_tokens": 2.5,
    "speculative.draft_tokens": 3.0,
    "speculative.draft_cost": 0.1,
}
workloads = st.sampled_from(sorted(SERVED))
shares = st.floats(0, 0.99)
bursts = st.floats(1, 30)
batches = st.floats(0.5, 300)


def declaring(name: str, **changes: float) -> Demand:
    """A case with numbers of the manifest, by field with "__" for the dot."""
    return wanted(SERVED[name], numbers={f.replace("__", "."): v for f, v in changes.items()})


def drafting(name: str, **changes: float) -> Demand:
    return declaring(name, **({f.replace(".", "__"): v for f, v in DRAFTS.items()} | changes))


def closed(name: str, users: float, think: float) -> Demand:
    numbers = {
        "load.requests_per_second": None,
        "load.concurrency.users": users,
        "load.concurrency.think_time": think,
    }
    return wanted(SERVED[name], numbers=numbers)


def replica(demand: Demand) -> Replica:
    return replica_of(demand, "h200-sxm-141gb", 8)


def gpus(demand: Demand) -> float:
    answer = size(demand, site("h200-sxm-141gb", node_count=1000))
    return answer.workload.gpu_count if isinstance(answer, Sized) else float("inf")


@settings(max_examples=40)
@given(workloads, shares, shares, batches)
def test_a_larger_hit_share_is_never_slower_nor_takes_more_gpus(
    name: str, one: float, two: float, batch: float
) -> None:
    less, more = (declaring(name, load__prefix_cache=h) for h in sorted((one, two)))
    slow, fast = replica(less).times(batch), replica(more).times(batch)
    for time in ("prefill_seconds", "time_to_first_token", "time_per_output_token"):
        # as many requests, each sooner done, bring a little more prompts
        assert fast[time] <= slow[time] * (1 + 1e-4)
    assert gpus(more) <= gpus(less)


@settings(max_examples=40)
@given(workloads, st.floats(1, 4), st.floats(1, 4), batches)
def test_more_accepted_tokens_are_never_slower_nor_take_more_gpus(
    name: str, one: float, two: float, batch: float
) -> None:
    few, many = (drafting(name, speculative__accepted_tokens=a) for a in sorted((one, two)))
    slow, fast = replica(few).times(batch), replica(many).times(batch)
    for time in ("decode_seconds", "time_per_output_token", "request_seconds"):
        assert fast[time] <= slow[time] * (1 + 1e-9)
    assert gpus(many) <= gpus(few)


@settings(max_examples=40)
@given(workloads, bursts, bursts, batches)
def test_burstier_arrivals_never_wait_less_nor_take_fewer_gpus(
    name: str, one: float, two: float, batch: float
) -> None:
    calm, wild = (declaring(name, load__burst=b) for b in sorted((one, two)))
    assert (
        replica(calm).times(batch)["queue_seconds"] <= replica(wild).times(batch)["queue_seconds"]
    )
    assert replica(calm).needs(batch)["used_bytes"] <= replica(wild).needs(batch)["used_bytes"]
    assert gpus(calm) <= gpus(wild)


def test_bursts_cost_gpus_where_they_are_felt() -> None:
    assert gpus(declaring("dense", load__burst=20)) > gpus(wanted(CHAT_70B))


@pytest.mark.parametrize("name", sorted(SERVED))
def test_what_changes_nothing_is_as_if_it_were_not_written(name: str) -> None:
    plain = replica(wanted(SERVED[name]))
    same = replica(declaring(name, load__prefix_cache=0, load__burst=1))
    for batch in (1, 30, 200):
        before, after = plain.times(batch), same.times(batch)
        for time in ("time_to_first_token", "time_per_output_token", "request_seconds"):
            assert after[time] == pytest.approx(before[time], rel=1e-12)
        assert same.needs(batch)["used_bytes"] == plain.needs(batch)["used_bytes"]


def test_drafts_that_are_not_accepted_only_cost() -> None:
    plain, wasted = (
        replica(wanted(CHAT_70B)),
        replica(drafting("dense", speculative__accepted_tokens=1)),
    )
    assert wasted.times(30)["decode_seconds"] > 1.1 * plain.times(30)["decode_seconds"]
    assert wasted.needs(30)["used_bytes"] > plain.needs(30)["used_bytes"]


def test_drafts_pay_where_reading_weights_is_what_a_step_does() -> None:
    plain, drafted = replica(wanted(CHAT_70B)), replica(drafting("dense"))
    gains = [
        plain.times(n)["decode_seconds"] / drafted.times(n)["decode_seconds"] for n in (1, 300)
    ]
    assert 1.5 < gains[0] < 2.5 / 1.1
    assert gains[1] < gains[0]


def test_a_draft_model_takes_memory() -> None:
    small = replica(drafting("dense", speculative__draft_memory=2e9))
    used = small.needs(9)["used_bytes"] - replica(drafting("dense")).needs(9)["used_bytes"]
    assert 2e9 <= used < 2.3e9


def test_half_a_prompt_in_the_cache_is_more_than_half_the_attention() -> None:
    whole_prompt = replica(wanted(CHAT_70B)).times(9)["prefill_work_seconds"]
    half = replica(declaring("dense", load__prefix_cache=0.5)).times(9)["prefill_work_seconds"]
    assert 0.45 * whole_prompt < half < 0.7 * whole_prompt


@settings(max_examples=30)
@given(workloads, st.integers(1, 3000), st.integers(0, 1000), st.floats(0, 100))
def test_more_users_never_take_fewer_gpus_and_pauses_never_more(
    name: str, users: int, more: int, pause: float
) -> None:
    assert gpus(closed(name, users, pause)) <= gpus(closed(name, users + more, pause))
    assert gpus(closed(name, users, pause + 5)) <= gpus(closed(name, users, pause))


def test_users_of_a_closed_loop_are_never_more_at_once_than_there_are() -> None:
    for think in (0.0, 20.0):
        answer = size(closed("dense", 100, think), site("h100-sxm-80gb"))
        assert isinstance(answer, Sized)
        values = {e.quantity.removeprefix("work."): e.value for e in answer.evidence}
        running = values["sequences"] * values["replicas"]
        seconds = values["request_seconds"]
        assert running == pytest.approx(100 * seconds / (think + seconds), rel=1e-3)


def test_a_rack_serves_as_many_users_as_are_sized_on_it() -> None:
    rack = site("h100-sxm-80gb", node_count=1)
    (found,) = capacities(closed("dense", 10, 20.0), rack, 1)
    assert found.users is not None
    assert isinstance(size(closed("dense", found.users, 20.0), rack), Sized)
    assert not isinstance(size(closed("dense", found.users + 1, 20.0), rack), Sized)


def evidence(demand: Demand) -> tuple[Workload, dict[str, float]]:
    answer = size(demand, site())
    assert isinstance(answer, Sized)
    values = {e.quantity: e.value for e in answer.evidence}
    for entry in answer.evidence:
        if entry.formula:
            assert evaluate(entry.formula, {i.name: i.value for i in entry.inputs}) == entry.value
            for item in entry.inputs:
                kind, _, name = item.source.partition(":")
                assert kind != "quantity" or values[name] == item.value, (entry.quantity, item)
    return answer.workload, values


@pytest.mark.parametrize(
    "demand",
    [
        drafting("dense", load__prefix_cache=0.4, load__burst=4, speculative__draft_memory=1e9),
        drafting("latent"),
        closed("small", 50, 10),
    ],
    ids=["all", "latent", "closed"],
)
def test_every_declared_number_is_evidence_that_adds_up(demand: Demand) -> None:
    found, values = evidence(demand)
    for number in numbers(demand):
        assert values[f"work.{number.field.path.removeprefix('overrides.')}"] == number.value
    for metric in found.metrics:
        assert values[f"work.{metric.name}"] == metric.estimate.value
        if metric.limit is not None:
            assert metric.probability is not None
            assert metric.probability >= 0.8 - 1e-3


def test_what_is_declared_is_not_called_measured() -> None:
    plain, drafted = (evidence(d)[0].metrics[0] for d in (wanted(CHAT_70B), drafting("dense")))
    assert (plain.name, plain.estimate.basis) == ("time_per_output_token", "calibrated")
    assert drafted.estimate.basis == "extrapolated"


CHAT = (Path(__file__).parents[2] / "examples" / "assistant-70b.yaml").read_text("utf-8")
WRITTEN = """    speculative: {accepted_tokens: 2.4, draft_tokens: 3, draft_cost: 0.05}
"""


def test_nothing_turns_drafts_on_unless_the_command_does() -> None:
    def notes(text: str) -> list[str]:
        answer = size(wanted(text), site())
        assert isinstance(answer, Sized)
        return [d.message for d in answer.diagnostics]

    assert any("speculative decoding" in m for m in notes(CHAT_70B + WRITTEN))
    assert not notes(CHAT_70B + WRITTEN + "    command: [vllm, serve]\n")


def test_vllm_prepares_no_step_ahead_of_drafts_that_the_host_makes() -> None:
    """Nor of those of a method that nobody names."""

    def seconds(method: str) -> float:
        written = WRITTEN.replace("{", f"{{{method}")
        return replica(wanted(CHAT_70B + written, "vllm")).times(64)["time_per_output_token"]

    ahead, host = seconds("method: mtp, "), seconds("method: ngram, ")
    assert ahead < host == seconds("")


def drafted(text: str, engine: str = "vllm") -> list[str]:
    """What the engine is told, beside the sizes."""
    answer = size(
        wanted(CHAT_70B + WRITTEN.replace("accepted", f"{text}, accepted"), engine), site()
    )
    assert isinstance(answer, Sized)
    assert not any("speculative decoding" in d.message for d in answer.diagnostics)
    say = {"vllm": arguments.vllm, "sglang": arguments.sglang}[engine]
    told = [str(a) for a in say(answer.workload) if not isinstance(a, Because)]
    return [a.removeprefix("--speculative-") for a in told if a.startswith("--speculative")]


def test_the_engine_is_told_to_draft_as_many_tokens_as_were_sized() -> None:
    (config,) = drafted("method: mtp")
    assert json.loads(config.removeprefix("config=")) == {
        "method": "mtp",
        "num_speculative_tokens": 3,
    }
    (config,) = drafted("method: eagle3, model: example/head")
    assert json.loads(config.removeprefix("config="))["model"] == "example/head"
    assert drafted("method: eagle3, model: example/head", "sglang") == [
        "algorithm=EAGLE3",
        "draft-model-path=example/head",
        "num-steps=3",
        "eagle-topk=1",
        "num-draft-tokens=4",
    ]
    pinned = "method: eagle3, model: example/head, revision: 0e9e39f2"
    (config,) = drafted(pinned)
    assert json.loads(config.removeprefix("config="))["revision"] == "0e9e39f2"
    assert "draft-model-revision=0e9e39f2" in drafted(pinned, "sglang")
    assert drafted("method: ngram", "sglang") == ["algorithm=NGRAM", "num-draft-tokens=3"]


def test_a_draft_model_lies_on_the_volume_too() -> None:
    text = WRITTEN.replace("accepted", "draft_memory: 3 GiB, accepted")
    plain, more = (
        work(CHAT_70B + t).volumes[0].size_bytes
        for t in (text, text.replace("draft_m", "method: draft_model, model: a/b, draft_m"))
    )
    assert more - plain >= 3 * 2**30


def test_users_stand_in_for_requests_per_second() -> None:
    text = CHAT_8B.replace(
        "requests_per_second: 2", "concurrency: {users: 40, think_time: 15 s}, burst: 3"
    )
    for users, seconds in (("{users: 40, think_time: 15 s}", 15), ("40", 0)):
        demand = wanted(text.replace("{users: 40, think_time: 15 s}", users))
        assert isinstance(demand, ServingDemand)
        assert isinstance(demand.arrivals, ClosedLoop)
        assert demand.arrivals.think_time.value == seconds
        assert isinstance(size(demand, site()), Sized)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CHAT_70B + WRITTEN.replace("2.4", "4.5"), "are drafted"),
        (CHAT_70B + WRITTEN.replace("acc", "method: eagle, acc", 1), "needs a draft model"),
        (CHAT_70B + WRITTEN.replace("acc", "method: mtp, model: x, acc", 1), "has no draft model"),
        (CHAT_70B + WRITTEN.replace("acc", "model: x, acc", 1), "without the method"),
        (
            CHAT_8B.replace("requests_per_second: 2,", "concurrency: 9, requests_per_second: 2,"),
            "both",
        ),
        (CHAT_8B.replace("requests_per_second: 2, ", ""), "missing field 'requests_per_second'"),
    ],
)
def test_what_cannot_be_is_refused(text: str, said: str) -> None:
    assert said in "; ".join(d.message for d in refusals(text))


@pytest.mark.parametrize(
    ("value", "said"), [("120 %", "at most 0.99"), ("half", "not a share"), ("1.0", "at most 0.99")]
)
def test_a_share_is_part_of_one(value: str, said: str) -> None:
    text = CHAT.replace("idle: 8 h", f"prefix_cache: {value}")
    (problem,) = load_text(text, "m.yaml").problems
    assert said in problem.message + problem.label


@pytest.mark.parametrize("value", ["0.6", "60 %", "60%"])
def test_a_share_is_a_number_or_percent(value: str) -> None:
    (loaded,) = load_text(CHAT.replace("idle: 8 h", f"prefix_cache: {value}"), "m.yaml").manifests
    load = loaded.manifest.workloads[0].load
    assert load is not None
    assert load.prefix_cache == 0.6
