"""Objectives are met with the probability that the manifest wants, and it is said with which."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpuplan.cli.main import main
from gpuplan.plan.model import Workload
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.kinds.serving.limit import PART
from tests.support.sizing_cases import (
    BATCH,
    CHAT_8B,
    FULL_8B,
    IMAGE_BATCH,
    IMAGES,
    offer,
    replica,
    site,
    size,
    wanted,
)

ROOT = Path(__file__).parents[2]
OBJECTIVES = {
    "first token": (CHAT_8B + "    slo: {time_to_first_token: 700 ms}\n", "time_to_first_token"),
    "token": (CHAT_8B + "    slo: {time_per_output_token: 20 ms}\n", "time_per_output_token"),
    "request": (CHAT_8B + "    slo: {request_latency: 6 s}\n", "request_latency"),
    "tokens": (CHAT_8B + "    slo: {tokens_per_second: 20000}\n", "output_tokens_per_second"),
    "batch": (BATCH, "time_to_finish"),
    "batch tokens": (
        BATCH.replace("finish_within: 24 h", "tokens_per_second: 9000"),
        "output_tokens_per_second",
    ),
    "run": (FULL_8B, "time_to_finish"),
    "run tokens": (
        FULL_8B.replace("finish_within: 2 d", "tokens_per_second: 90000"),
        "tokens_per_second",
    ),
    "image": (IMAGES, "request_latency"),
    "image batch": (IMAGE_BATCH, "time_to_finish"),
}


def sized(text: str, confidence: float) -> Workload:
    demand = wanted(text, numbers={"slo.confidence": confidence})
    answer = size(demand, site("h100-sxm-80gb", node_count=1000))
    assert isinstance(answer, Sized), [d.label for d in answer]
    return answer.workload


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_every_objective_is_met_with_the_probability_that_is_wanted(name: str) -> None:
    text, metric = OBJECTIVES[name]
    chances, costs = [], []
    for confidence in (0.5, 0.8, 0.95, 0.99):
        found = sized(text, confidence)
        (objective,) = [m for m in found.metrics if m.name == metric]
        assert objective.limit is not None
        assert objective.probability is not None
        assert objective.probability >= confidence - 1e-3
        chances.append(objective.probability)
        assert found.usd_per_hour is not None
        costs.append(found.usd_per_run or found.usd_per_hour)
    assert costs == sorted(costs), "surer is never cheaper"
    assert chances[-1] >= 0.989


def test_an_objective_that_is_missed_with_more_confidence_is_a_gate() -> None:
    """One that a lone request meets a little more often than not."""
    where = replace(site("l40s"), gpus=(offer("l40s", gpus_per_node=1),))
    alone = replica(wanted(CHAT_8B), "l40s", 1).times(PART)
    asked = {f"load.requests_per_second.{part}": 0.001 for part in ("mean", "peak")}
    asked["slo.time_per_output_token"] = alone["time_per_output_token"] * 1.01
    likely, sure = (
        size(wanted(CHAT_8B, numbers=asked | {"slo.confidence": confidence}), where)
        for confidence in (0.5, 0.99)
    )
    assert isinstance(likely, Sized)
    assert not isinstance(sure, Sized)
    assert "time_per_output_token" in sure[0].label


def test_explain_says_with_which_probability_and_which_is_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "examples" / "assistant-70b.yaml").read_text("utf-8")
    inventory = str(ROOT / "examples" / "inventories" / "rack-7.yaml")
    text = text.replace("inventories/rack-7.yaml", inventory)
    manifest = tmp_path / "m.yaml"
    manifest.write_text(text.replace("40 ms}", "27 ms, confidence: 0.9}"), "utf-8")
    assert main(["compile", str(manifest), "-o", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["explain", str(tmp_path / "assistant-70b")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    _, _, chance = printed.partition("meets ≤ 27 ms with ")
    assert 90 <= int(chance.removeprefix("> ").partition(" %")[0]) <= 99
    wanted = "every objective must be met with 90 % (manifest: workloads.assistant.slo.confidence)"
    assert wanted in printed
