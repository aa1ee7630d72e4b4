"""The first token of a server: what a request alone waits for, and what others add to it."""

from __future__ import annotations

import pytest

from gpuplan.sizing.calibration.anchors import Anchors, Field
from tests.support.sizing_cases import CHAT_8B, CHAT_70B, replica, wanted


def idle(gpu: str, gpus: int = 1) -> float:
    """Seconds to the first token of a prompt of 800 tokens, with hardly a request an hour."""
    one = replica(wanted(CHAT_8B), gpu, gpus)
    return one.modelled(0.01)["modelled_first_seconds"]


@pytest.mark.parametrize("gpu", ["h100-sxm-80gb", "l40s"])
def test_an_idle_server_takes_the_prompt_and_some_milliseconds(gpu: str) -> None:
    one = replica(wanted(CHAT_8B), gpu, 1)
    times = one.modelled(0.01)
    alone = times["modelled_first_seconds"] - times["prefill_seconds"]
    assert 0 < alone < 0.012


def test_what_others_add_grows_from_nothing_with_the_load() -> None:
    one = replica(wanted(CHAT_8B), "h100-sxm-80gb", 1)
    loads = [0.1, 1, 1.25, 2, 4, 16, 64]
    firsts = [one.modelled(load)["modelled_first_seconds"] for load in loads]
    assert firsts[0] == firsts[1]
    assert firsts[1:] == sorted(firsts[1:])
    assert firsts[2] < 1.2 * firsts[1]
    assert firsts[-1] > 1.2 * firsts[1]


def test_contention_is_not_counted_twice() -> None:
    """A service's queue is modelled: prompts before its own are not in the first token, too."""
    one = replica(wanted(CHAT_8B), "h100-sxm-80gb", 1)
    times = one.times(32)
    assert times["first_prefill_factor"] == 1
    assert times["time_to_first_token"] > times["first_token_seconds"] + times["queue_seconds"]


def test_fifty_milliseconds_need_no_second_gpu_where_one_takes_twenty() -> None:
    text = CHAT_8B + "    slo: {time_to_first_token: 50 ms, time_per_output_token: 60 ms}\n"
    text = text.replace("input_tokens: 800", "input_tokens: 300").replace(
        "second: 2", "second: 0.1"
    )
    assert idle("h100-sxm-80gb") < 0.03
    one = replica(wanted(text), "h100-sxm-80gb", 1)
    likely = one.times(0.05)["time_to_first_token"]
    assert likely < 0.03


def test_a_prediction_of_a_new_site_holds_what_sites_differ_by() -> None:
    """One that measured the very setting is narrower; the others' mean is not one site's."""
    one = replica(wanted(CHAT_70B), "h100-sxm-80gb", 4)
    field: Field = Anchors()("time_per_output_token")
    here = one.planned(32)
    known = next(a.features for a in field.anchors if a.features["layout"] == here["layout"])
    new = {**known, **{name: here[name] for name in ("source", "practice", "harness")}}
    assert field.sigma(new) > 1.3 * field.sigma(known)
    assert "source" in {effect.name for effect in field.effects(known)}
    assert "source" not in {effect.name for effect in field.effects(new)}
    low, high = field.beside(here, here)
    wide = field.correction(here)
    assert high / low < wide.high / wide.low
    assert low < 1 < high
    least, most = field.beside(here, one.planned(256))
    assert high / low < most / least <= wide.high / wide.low, "what one load tells of another"
