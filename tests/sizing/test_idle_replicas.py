"""An objective that not even an idle replica meets is refused with the time that it takes."""

from __future__ import annotations

import pytest

from gpuplan.plan.model import Shortfall
from gpuplan.sizing.decide.size import tried
from tests.support.sizing_cases import IMAGES, site, wanted

READER = """
    task: inference
    model: BAAI/bge-m3
    load: {requests_per_second: {mean: 20, peak: 60}, input_tokens: {mean: 200, p95: 500}}
    slo: {request_latency: 80 ms}
"""
SPEECH = """
    task: inference
    model: openai/whisper-large-v3
    load: {requests_per_second: {mean: 2, peak: 5}, audio: 20 s}
    slo: {request_latency: 20 s}
"""
CASES = {"reader": READER, "images": IMAGES, "speech": SPEECH}


@pytest.mark.parametrize("kind", CASES)
def test_the_time_that_is_told_is_the_least_that_can_be_asked(kind: str) -> None:
    where = site("l40s", "h100-sxm-80gb")

    def gates(seconds: float) -> dict[str, Shortfall | None]:
        """By GPU what refuses every layout on it; None where one fits."""
        asked = wanted(CASES[kind], numbers={"slo.request_latency": seconds})
        return {
            offer.gpu.identifier: None
            if any(c.feasible for c in group)
            else min((c.shortfalls[0] for c in group), key=lambda gate: gate.requested)
            for offer, group in tried(asked, where)
        }

    for gpu, gate in gates(1e-4).items():
        assert gate is not None
        assert (gate.resource, gate.capacity, gate.unit) == ("request_latency", 1e-4, "s")
        assert gates(gate.requested * 1.01)[gpu] is None
        refused = gates(gate.requested * 0.99)[gpu]
        assert refused is not None
        assert refused.requested == gate.requested
