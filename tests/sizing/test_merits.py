"""What a candidate gives for its price, by which equally dear ones are told apart: the room that
its plan has, and the seconds that are waited for it."""

from __future__ import annotations

import pytest

from gpuplan.sizing.candidates.choose import Candidate, best
from gpuplan.sizing.decide.tried import tried
from tests.sizing.test_interruptions import figures
from tests.sizing.test_kinds_told import KINDS, POOLS
from tests.support.sizing_cases import site, sized, wanted

WHERE = site("h100-sxm-80gb")
# The capacity of a service in what its load asks for.
SERVED = {
    "chat": "requests_per_second",
    "images": "images_per_second",
    "texts": "requests_per_second",
    "audio": "requests_per_second",
    "pictures": "requests_per_second",
}
ENDING = [name for name in KINDS if name not in (*SERVED, "notebooks")]


def chosen(text: str) -> Candidate:
    found = best(c for _, group in tried(wanted(text), WHERE) for c in group)
    assert found is not None
    return found


@pytest.mark.parametrize("case", SERVED)
def test_a_service_has_what_it_serves_over_what_is_asked(case: str) -> None:
    text = KINDS[case].replace("peak: 1}", "peak: 2}")  # one divides as it multiplies
    text = text.replace("requests_per_second: 2,", "requests_per_second: 3,")  # of a chat
    known, (room, seconds) = figures(sized(text, WHERE)), chosen(text).merit.point
    assert room == -float(f"{known[SERVED[case]] / known['sized_rate']:.3g}")
    # That of a chat is solved for less finely.
    assert seconds == pytest.approx(known["request_latency"], rel=0.06 if case == "chat" else 0.005)


@pytest.mark.parametrize("case", ENDING)
def test_what_ends_has_the_time_that_it_may_take_over_what_it_takes(case: str) -> None:
    text = KINDS[case]
    limited = "finish_within" in text
    known, (room, seconds) = figures(sized(text, WHERE)), chosen(text).merit.point
    assert seconds == float(f"{known['time_to_finish']:.3g}")
    if not limited:
        assert room == -1
        return
    (line,) = (row for row in text.splitlines() if "finish_within" in row)
    for hours in (20, 40):
        other = text.replace(line, f"    slo: {{finish_within: {hours} h}}")
        told, layout = figures(sized(other, WHERE)), chosen(other)
        asked = hours * 3600 / told["time_to_finish"]
        assert layout.merit.point[0] == -float(f"{asked:.3g}")


def test_pools_have_what_the_scarcer_one_serves_and_a_prompt_and_an_answer() -> None:
    known, (room, seconds) = figures(sized(POOLS, WHERE)), chosen(POOLS).merit.point
    served = min(known[f"{p}_replicas"] * known[f"{p}_rate"] for p in ("prefill", "decode"))
    assert room == pytest.approx(-served / known["sized_rate"], rel=0.005)
    answer = 300 * known["limit.decode.seconds"]
    assert answer + known["first_token_seconds"] < seconds < answer + 1  # the limit of the first
