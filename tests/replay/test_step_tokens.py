"""How many tokens an engine is told to compute in a step: its own default, and what a long prompt
needs to have its first token in time. A replay shows what that is for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.plan.model import Workload
from gpuplan.plan.replay import Replayed
from gpuplan.replay.run import Load, replay
from gpuplan.sizing.candidates.sized import Sized
from tests.support.sizing_cases import CHAT_8B, site, size, sized, wanted

SHORT = """    task: inference
    model: meta-llama/Llama-3.1-8B-Instruct
    load: {requests_per_second: 6, input_tokens: {mean: 300, p95: 900}, output_tokens: 100}
"""
LONG = SHORT.replace("{mean: 300, p95: 900}", "{mean: 2500, p95: 7000}")
BATCH = """    task: batch
    model: meta-llama/Llama-3.1-8B-Instruct
    load: {requests: 100000, input_tokens: 300, output_tokens: 100}
"""
FIRST = "    slo: {time_to_first_token: 3 s}\n"


def tokens(text: str, gpu: str, engine: str | None = None) -> int:
    answer = size(wanted(text, engine), site(gpu))
    assert isinstance(answer, Sized)
    assert answer.workload.serving is not None
    return answer.workload.serving.max_num_batched_tokens


@pytest.mark.parametrize(
    ("text", "gpu", "engine", "expected"),
    [
        (SHORT, "h100-sxm-80gb", None, 8192),
        (SHORT, "h200-sxm-141gb", None, 8192),
        (SHORT, "a100-sxm-80gb", None, 2048),  # known to vLLM by its name
        (SHORT, "l40s", None, 2048),
        (BATCH, "h100-sxm-80gb", None, 16384),
        (BATCH, "l40s", None, 8192),
        (SHORT, "l40s", "sglang", 4096),
        (SHORT, "h100-sxm-80gb", "sglang", 8192),
        (LONG, "l40s", None, 2048),  # nothing is asked of its first token
        (SHORT + FIRST, "l40s", None, 2048),
        (LONG + FIRST, "l40s", None, 7168),
        (LONG.replace("7000", "30000") + FIRST.replace("3 s", "30 s"), "l40s", None, 8192),
        (
            LONG.replace("7000", "30000") + FIRST.replace("3 s", "30 s"),
            "h200-sxm-141gb",
            None,
            16384,
        ),
    ],
)
def test_a_step_has_the_engines_default_or_what_a_long_prompt_takes(
    text: str, gpu: str, engine: str | None, expected: int
) -> None:
    assert tokens(text, gpu, engine) == expected


def test_the_number_says_which_default_it_is() -> None:
    answer = sized(SHORT, site("l40s"))
    (entry,) = (e for e in answer.evidence if e.quantity == "work.max_num_batched_tokens")
    (default,) = (i for i in entry.inputs if i.name == "default_step_tokens")
    assert "vllm on l40s, vllm-project/vllm vllm/engine/arg_utils.py" in default.source


def test_a_step_has_a_token_of_every_request_that_runs() -> None:
    """vLLM refuses to start with fewer."""
    text = SHORT + "    overrides: {max_num_seqs: 3000}\n"
    assert tokens(text, "b200-sxm-180gb") == 8192
    small = SHORT.replace("meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen2.5-0.5B-Instruct")
    assert tokens(small + "    overrides: {max_num_seqs: 3000}\n", "l40s") == 3000


def played(answer: Sized, step: int) -> Replayed:
    workload: Workload = answer.workload
    assert workload.serving is not None
    serving = replace(workload.serving, max_num_batched_tokens=step)
    outcome = replay(replace(workload, serving=serving), answer.evidence, Load(requests=1500))
    assert outcome is not None
    return outcome


def test_smaller_steps_delay_first_tokens_and_speed_up_others() -> None:
    """A part of a prompt is computed while the weights are read for those that decode."""
    answer = sized(LONG + FIRST, site("l40s"))
    assert answer.workload.serving is not None
    derived = played(answer, answer.workload.serving.max_num_batched_tokens)
    assert derived.delivers
    small, large = played(answer, 512), played(answer, 32768)
    first, token, _ = zip(derived.times, small.times, large.times, strict=True)
    assert first[0].name == "time_to_first_token"
    assert first[1].p95 > 1.1 * first[0].p95
    assert first[2].mean == pytest.approx(first[0].mean, rel=0.05)
    assert token[0].name == "time_per_output_token"
    assert 0.75 * token[0].mean < token[1].mean < token[0].mean
    assert token[2].mean == pytest.approx(token[0].mean, rel=0.02)


def test_a_stage_of_a_pipeline_is_replayed_with_its_part_of_the_cache() -> None:
    answer = sized(SHORT + FIRST + "    overrides: {pipeline_parallel_size: 2}\n", site("l40s"))
    outcome = played(answer, 8192)
    assert outcome.delivers
    assert answer.workload.serving is not None
    assert outcome.max_num_seqs == answer.workload.serving.max_num_seqs
    for time in outcome.times:
        assert time.planned == pytest.approx(time.value, rel=0.3), time.name
    limit = replay(answer.workload, answer.evidence, Load(name="limit", requests=2000))
    assert limit is not None
    assert limit.keeps_up


def test_the_sizing_of_a_chat_is_at_its_own_step() -> None:
    """Less work space where steps are smaller."""
    own = sized(CHAT_8B, site("l40s")).workload
    larger = CHAT_8B + "    overrides: {max_num_batched_tokens: 8192}\n"
    forced = sized(larger, site("l40s")).workload
    assert own.memory.activations_bytes < forced.memory.activations_bytes


def test_a_batch_is_answered_at_the_rate_that_it_prints() -> None:
    answer = sized(BATCH, site("l40s"))
    (rate,) = [m for m in answer.workload.metrics if m.name == "requests_per_second"]
    outcome = replay(answer.workload, answer.evidence, Load(requests=1500))
    assert outcome is not None
    assert outcome.answered == pytest.approx(rate.estimate.value, rel=0.15)
    assert outcome.running_mean > 0.95 * outcome.max_num_seqs
    assert outcome.times == ()
