"""What a plan prints of a service is what the settings that it emits give, request by request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuplan.engines.servers import serve
from gpuplan.plan.model import Plan, Workload
from gpuplan.plan.replay import Replayed
from gpuplan.plan.times import TIMES
from gpuplan.policy.reading import read_stacks
from gpuplan.render.commented import Because
from gpuplan.replay import requests
from gpuplan.replay.requests import Lengths, Open, Queued, Request
from gpuplan.replay.run import Load, replay
from gpuplan.replay.steps import Derivations, EvidenceTimes, settings
from gpuplan.sizing.candidates.sized import Sized
from tests.support.served_manifests import sized_service
from tests.support.sizing_cases import CHAT_8B, CHAT_70B, site, size, wanted

ROOT = Path(__file__).parents[2]
ENGINES = {"vllm": 300, "sglang": 300}
REQUESTS = 500


def served() -> Iterator[tuple[Plan, Workload]]:
    for stack in read_stacks(ROOT / "stacks"):
        for workload in stack.plan.workloads:
            serving = workload.serving
            if workload.disaggregation is not None:
                continue  # no replica does both, which a replay plays
            if serving is not None and serving.images is None and not workload.command:
                yield stack.plan, workload


EXAMPLES = [pytest.param(p, w, id=f"{p.name}.{w.name}") for p, w in served()]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 4


def played(plan: Plan, workload: Workload, load: Load) -> Replayed:
    outcome = replay(workload, plan.evidence, load)
    assert outcome is not None
    return outcome


@pytest.mark.parametrize(("plan", "workload"), EXAMPLES)
def test_an_example_delivers_what_it_prints(plan: Plan, workload: Workload) -> None:
    outcome = played(plan, workload, Load())
    assert outcome.delivers
    for time in outcome.times:
        assert time.planned == pytest.approx(time.value, rel=0.35), time.name
    assert outcome.preempted <= 0.01 * outcome.requests


@pytest.mark.parametrize(("plan", "workload"), EXAMPLES)
def test_an_example_serves_the_rate_that_it_prints(plan: Plan, workload: Workload) -> None:
    (rate,) = [m for m in workload.metrics if m.name == "requests_per_second"]
    outcome = played(plan, workload, Load(name="limit"))
    assert outcome.keeps_up
    assert outcome.answered >= 0.95 * rate.estimate.value


@pytest.mark.parametrize(("plan", "workload"), EXAMPLES)
def test_the_replay_has_the_settings_of_the_emitted_arguments(
    plan: Plan, workload: Workload
) -> None:
    outcome = played(plan, workload, Load(requests=100))
    started = serve(workload)
    assert started is not None
    texts = [str(a.value if isinstance(a, Because) else a) for a in started.arguments]
    arguments = {flag: value for flag, _, value in (text.partition("=") for text in texts)}
    if workload.engine.name == "tei":  # its tokens fill a step before any number of texts does
        assert arguments["--max-batch-tokens"] == str(outcome.max_num_batched_tokens)
        return
    assert arguments["--max-num-seqs"] == str(outcome.max_num_seqs)
    assert arguments["--max-num-batched-tokens"] == str(outcome.max_num_batched_tokens)


def quantile(values: list[float], part: float) -> float:
    return sorted(values)[int(part * len(values))]


def test_percentiles_are_those_of_the_replay() -> None:
    """Of random services every statistic of every time, as `physics/serving/percentiles.py` states
    it: the median within 11 %, nine of ten from 41 % less to 55 % more."""
    ratios: dict[str, list[float]] = {}
    count, number = 0, 40_000
    while count < 130:
        number += 1
        sized = sized_service(number, every_statistic=True)
        outcome = sized and replay(sized.workload, sized.evidence, Load(requests=4 * REQUESTS))
        if outcome is None:
            continue
        count += 1
        for time in outcome.times:
            assert time.planned is not None
            ratios.setdefault(time.name, []).append(time.value / time.planned)
    assert set(ratios) == set(TIMES)
    # A plan takes the launches of prompts on average, a replay step by step: the tails differ most.
    for name, values in ratios.items():
        low, middle, high = (quantile(values, part) for part in (0.05, 0.5, 0.95))
        assert 0.89 <= middle <= 1.11, (name, middle)
        assert low >= 0.59, (name, low)
        assert high <= 1.55, (name, high)


def test_a_replay_is_as_bursty_as_its_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    load = "{requests_per_second: 20, input_tokens: 500, output_tokens: 200, burst: 4}"
    text = f"    task: inference\n    model: openai/gpt-oss-120b\n    load: {load}\n"
    sized = size(wanted(text), site("h100-sxm-80gb"))
    assert isinstance(sized, Sized)
    planned = {e.quantity.removeprefix("work."): e.value for e in sized.evidence}
    arrivals: list[Open | Queued] = []

    def opened(how: Open | Queued, lengths: Lengths, seed: int) -> Iterator[Request]:
        arrivals.append(how)
        return requests.opened(how, lengths, seed)

    monkeypatch.setattr("gpuplan.replay.run.opened", opened)
    outcome = replay(sized.workload, sized.evidence, Load(requests=10))
    assert outcome is not None
    assert outcome.arrivals == "bursts as declared"
    (how,) = arrivals
    assert isinstance(how, Open)
    each = planned["arrival_variation"] / planned["requests_in_second"]
    assert how.variation / how.per_second == pytest.approx(each)


@pytest.mark.parametrize(("stages", "places"), [(1, 41), (2, 20)])
def test_a_stage_has_its_part_of_the_places_and_of_the_memory(stages: int, places: int) -> None:
    """Of 41 places each of two stages has 20, and together they cache what fits a GPU's part."""
    fixed = f"    overrides: {{pipeline_parallel_size: {stages}, max_num_seqs: 41}}\n"
    load = CHAT_8B.replace("load: {", "load: {prefix_cache: 0.4, ")
    sized = size(wanted(load + fixed), site("h100-sxm-80gb"))
    assert isinstance(sized, Sized)
    known = Derivations(sized.workload.name, sized.evidence)
    one, memory = settings(sized.workload, known), sized.workload.memory
    assert one.max_num_seqs == places
    assert one.computed == pytest.approx(0.6)
    others = memory.weights_bytes + memory.activations_bytes + known.value("own_bytes")
    tokens = (memory.usable_bytes - others) / known.value("kv_bytes_per_token")
    assert one.blocks * one.block_tokens * stages == pytest.approx(tokens, abs=16 * stages)
    times = EvidenceTimes(known, "")
    launched = times.corrected(8) * times.launch()
    # a late launch of a prompt holds up its own batch in both stages, the other one in one
    assert times.late(8, 0.0) == pytest.approx((1.5 if stages == 2 else 1.0) * launched)


def test_what_is_measured_counts_between_two_loads_by_how_near_each_is() -> None:
    """By ratios: halfway between 10 and 40 requests are 20."""
    sized = size(wanted(CHAT_70B), site("h100-sxm-80gb"))
    assert isinstance(sized, Sized)
    known = Derivations(sized.workload.name, sized.evidence)
    times = EvidenceTimes(known, "")
    low, high = (known.value(f"{load}sequences") for load in ("", "limit."))
    first, last = (
        known.value(f"{load}closed_token_seconds") / known.value(f"{load}modelled_token_seconds")
        for load in ("", "limit.")
    )
    assert low < high
    assert first != last
    assert (times.corrected(low / 2), times.corrected(high * 2)) == (first, last)
    for part in (0.0, 0.25, 0.5, 1.0):
        between = times.corrected(low * (high / low) ** part)
        assert between == pytest.approx(first + part * (last - first))


def test_who_is_beside_a_request_is_in_its_pace() -> None:
    """A mixture's step takes longer with each request, however alike they are."""
    load = "{requests_per_second: 1.2, input_tokens: 2000, output_tokens: 800}"
    slo = "slo: {time_per_output_token: {p95: 1000 s, p99: 1000 s}}"
    text = f"    task: inference\n    model: openai/gpt-oss-120b\n    load: {load}\n    {slo}\n"
    sized = size(wanted(text), site("h100-sxm-80gb"))
    assert isinstance(sized, Sized)
    outcome = replay(sized.workload, sized.evidence, Load(requests=4 * REQUESTS))
    assert outcome is not None
    tails = [t for t in outcome.times if t.name.startswith("time_per_output_token_p")]
    assert len(tails) == 2
    for time in tails:
        assert time.planned == pytest.approx(time.value, rel=0.2), time.name


@pytest.mark.parametrize(("engine", "manifests"), ENGINES.items())
def test_random_manifests_deliver_what_they_print(engine: str, manifests: int) -> None:
    """At the load that they are sized for, every one; at the rate that is printed as theirs,
    each of a tenth answers what arrives. The times agree with the replay as is stated."""
    broken, overrun, ratios = [], [], dict[str, list[float]]()
    count, number = 0, 0
    while count < manifests:
        number += 1
        sized = sized_service(number, engine)
        if sized is None:
            continue
        count += 1
        outcome = replay(sized.workload, sized.evidence, Load(requests=REQUESTS))
        assert outcome is not None
        if not outcome.delivers:
            broken.append(number)
        for time in outcome.times:
            if time.planned is None:  # answers of one token have no time per output token
                assert time.name == "time_per_output_token"
                continue
            ratios.setdefault(time.name, []).append(time.value / time.planned)
        if number % 10 == 0:
            most = replay(sized.workload, sized.evidence, Load(name="limit", requests=4 * REQUESTS))
            assert most is not None
            overrun += [] if most.keeps_up else [number]
    assert not broken
    assert not overrun
    for name, values in ratios.items():
        low, middle, high = (quantile(values, part) for part in (0.05, 0.5, 0.95))
        assert 0.9 <= middle <= 1.1, (name, middle)
        assert low >= 0.7, (name, low)
        assert high <= 1.45, (name, high)


def test_replicas_over_nodes_deliver_what_they_print() -> None:
    """Pipelines and data-parallel attention over up to six nodes of any GPU: each batch of a
    replica is replayed for itself, while the plan also counts the prompts of the others."""
    ratios: dict[str, list[float]] = {}
    kinds, number = set(), 0
    while sum(map(len, ratios.values())) < 60:
        number += 1
        sized = sized_service(number, over_nodes=True)
        if sized is None or sized.workload.nodes_per_replica == 1:
            continue
        sizes = sized.workload.parallelism
        kinds.add((sizes.pipeline_parallel_size > 1, sizes.data_parallel_size > 1))
        outcome = replay(sized.workload, sized.evidence, Load(requests=REQUESTS))
        assert outcome is not None
        assert outcome.delivers, number
        for time in outcome.times:
            if time.planned is not None:
                ratios.setdefault(time.name, []).append(time.value / time.planned)
    assert kinds == {(True, False), (False, True)}
    for name, values in ratios.items():
        low, middle, high = (quantile(values, part) for part in (0.1, 0.5, 0.9))
        assert 0.7 <= middle <= 1.12, (name, middle)
        assert low >= 0.35, (name, low)
        assert high <= 1.45, (name, high)
