"""An objective that not even an idle replica meets is refused with the time that it takes."""

from __future__ import annotations

import pytest

from gpuplan.plan.model import Shortfall
from gpuplan.sizing.decide.tried import tried
from gpuplan.sizing.hardware.devices import whole
from tests.support.sizing_cases import IMAGES, READER, SPEECH, TAGGER, site, wanted

CASES = {"reader": READER, "images": IMAGES, "speech": SPEECH, "tagger": TAGGER}


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


@pytest.mark.parametrize(("model", "holds"), [("microsoft/phi-4", False), ("BAAI/bge-m3", True)])
def test_a_model_that_a_gpu_does_not_hold_is_refused_with_the_memory_that_would(
    model: str, holds: bool
) -> None:
    """14.7 G parameters of two bytes are more than the 24 GB of an L4."""
    text = READER.replace("BAAI/bge-m3", model) + "    pooling: embed\n"
    asked = wanted(text, numbers={"slo.request_latency": None})
    by_gpu = {o.gpu.identifier: (o, g) for o, g in tried(asked, site("l4", "h100-sxm-80gb"))}
    assert any(c.feasible for c in by_gpu["h100-sxm-80gb"][1])
    small, group = by_gpu["l4"]
    assert any(c.feasible for c in group) == holds
    for candidate in () if holds else group:
        (gate,) = candidate.shortfalls
        assert gate.resource == "gpu_memory"
        assert gate.requested > 2 * 14.6e9
        assert gate.capacity == pytest.approx(0.9 * whole(small).memory_bytes.value, rel=0.02)
        assert candidate.flip is not None
        assert candidate.flip.needed == pytest.approx(gate.requested / 0.9, rel=0.02)
