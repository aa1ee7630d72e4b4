"""What measuring one's own replica would narrow: what a plan says of it, and of which it does."""

from __future__ import annotations

import pytest

from tests.sizing.test_interruptions import figures
from tests.sizing.test_kinds_told import KINDS, POOLS
from tests.support.sizing_cases import CHAT_8B, CHAT_70B, DEEPSEEK, site, sized

SERVED = {"8B": CHAT_8B, "70B": CHAT_70B, "mixture": DEEPSEEK}
WHERE = ("a100-sxm-80gb", "l4")


def told(text: str) -> dict[str, float]:
    known = figures(sized(text, site(*WHERE)))
    return {n.removeprefix("measuring."): v for n, v in known.items() if "measuring" in n}


@pytest.mark.parametrize("case", SERVED)
def test_a_replica_is_measured_at_its_limit_with_ten_requests_for_each_place(case: str) -> None:
    answer = sized(SERVED[case], site(*WHERE))
    known, said = figures(answer), told(SERVED[case])
    assert said["sequences"] == known["limit.sequences"]
    # all of the mean lengths: no prompt waits for one that is much longer
    assert 0.95 < said["run_seconds"] / (10 * known["limit.request_seconds"]) < 1 + 1e-6
    assert 1 <= said["replicas"] <= answer.workload.replicas
    (token,) = (m.estimate for m in answer.workload.metrics if m.name == "time_per_output_token")
    narrow = said["interval_high"] / said["interval_low"]
    assert said["interval_low"] < 1 < said["interval_high"]
    assert narrow < 0.9 * token.high / token.low


def test_a_narrower_interval_saves_replicas_of_a_large_service() -> None:
    text = CHAT_70B.replace("peak: 20", "peak: 200")
    count = sized(text, site(*WHERE)).workload.replicas
    assert told(text)["replicas"] < count


@pytest.mark.parametrize(
    "text",
    [
        CHAT_8B + "    overrides: {replicas: 2}\n",
        POOLS,
        *(KINDS[case] for case in ("batch", "images", "texts", "audio", "pictures", "run")),
    ],
)
def test_nothing_is_said_where_replicas_are_chosen_or_nothing_of_it_is_measured_so(
    text: str,
) -> None:
    assert told(text) == {}


def test_nothing_is_said_where_a_measured_replica_would_serve_no_request_in_time() -> None:
    """The first token is in time by the interval of known points, and not by that beside one."""
    text = """
    task: inference
    model: meta-llama/Llama-3.1-8B-Instruct
    load: {requests_per_second: 5, input_tokens: 500, output_tokens: 200}
    slo: {time_to_first_token: 38.2 ms, time_per_output_token: 9.06 ms, confidence: 0.99}
"""
    answer = sized(text, site("h100-sxm-80gb"))
    assert answer.workload.replicas > 1
    assert not [name for name in figures(answer) if "measuring" in name]
