"""Settings of every kind are answered as they were: which GPUs, how many, what is predicted of
them, what is told beside it, and what is refused in which words.

The settings are those of bench/sized/settings.py; what was answered stands in sized.txt, by the
constants of that day. It says that an answer changed, not that it was right. Where a change is
wanted, `make sized` records all anew and tells the differences.
"""

from __future__ import annotations

import json

import pytest

from bench.sized.answers import CONSTANTS, FITTED, differences, fixed, recorded, told
from bench.sized.settings import Base, Change, settings
from gpuplan.sizing.calibration.anchors import Anchors

RECORDED = recorded()
SETTINGS = [pytest.param(*each, id=each[0]) for each in settings()]


def test_what_is_recorded_is_what_is_asked() -> None:
    assert list(RECORDED) == [name for name, _, _ in settings()]


@pytest.mark.parametrize(("name", "base", "change"), SETTINGS)
def test_a_setting_is_answered_as_it_was(name: str, base: Base, change: Change) -> None:
    with fixed():
        assert differences(told(base, change), RECORDED[name]) == []


def test_constants_that_are_fitted_anew_change_no_answer() -> None:
    """Whoever fits them has nothing to record; what has come since the day of the record stays."""
    (base,) = (b for name, b, _ in settings() if name == "run, itself")
    constants, vllm = FITTED["training_speed"].CONSTANTS, FITTED["serving"].ENGINE["vllm"]
    then = json.loads(CONSTANTS.read_text("utf-8"))
    name = "compute.hopper.bf16"
    known, anchored = constants[name], Anchors()("training_step")
    try:
        constants[name] = known / 2
        with fixed():
            assert constants[name] == then["training_speed"]["CONSTANTS"][name]
            assert FITTED["serving"].ENGINE["vllm"].keys() == vllm.keys()
            assert Anchors()("training_step") is not anchored
            assert differences(told(base, {}), RECORDED["run, itself"]) == []
        assert constants[name] == known / 2
        assert Anchors()("training_step") is anchored
    finally:
        constants[name] = known


def test_a_difference_is_one_beyond_rounding_and_is_told() -> None:
    then = ["metrics: p95 0.499154 1", "gpu h100-sxm-80gb, replicas 3", "12 GPUs"]
    assert differences([then[0].replace("154", "1541"), *then[1:]], then) == []
    assert differences([then[0].replace("154", "254"), *then[1:]], then) == [
        "metrics: p95 0.499254 1, not metrics: p95 0.499154 1"
    ]
    assert differences([then[0], then[1].replace("h100", "h200"), then[2]], then) != []
    assert differences(then[:2], then) == ["nothing, not 12 GPUs"]
    assert differences([*then, "more"], then) == ["more, not nothing"]
