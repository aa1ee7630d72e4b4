"""What is predicted of a part of a GPU is less sure than of the whole one, which was measured."""

from __future__ import annotations

import pytest

from gpuplan.sizing.ask.demand import PoolingDemand, SpeechDemand, VisionDemand
from gpuplan.sizing.hardware.devices import Device, partitions, whole
from gpuplan.sizing.kinds.pooling import search as readers
from gpuplan.sizing.kinds.speech import search as transcribers
from gpuplan.sizing.kinds.vision import search as classifiers
from tests.support.sizing_cases import READER, SPEECH, TAGGER, site, wanted

WHERE = site("h100-sxm-80gb")


def interval(text: str, device: Device) -> tuple[float, str]:
    """How far its ends lie apart, and what it rests on."""
    asked = wanted(text)
    if isinstance(asked, PoolingDemand):
        (low, high), basis = readers.replica(asked, device).interval
    elif isinstance(asked, SpeechDemand):
        (low, high), basis = transcribers.replica(asked, device).interval
    else:
        assert isinstance(asked, VisionDemand)
        (low, high), basis = classifiers.replica(asked, device, WHERE).interval
    return high / low, basis


@pytest.mark.parametrize("text", [READER, SPEECH, TAGGER])
def test_an_interval_of_a_part_is_no_narrower_and_never_calls_itself_measured(text: str) -> None:
    one = whole(WHERE.gpus[0])
    parts = list(partitions(WHERE.gpus[0], WHERE))
    assert len(parts) > 2
    for part in parts:
        width, basis = interval(text, part)
        assert width >= interval(text, one)[0]
        assert basis == "extrapolated"
