"""What an engine does from one release on: in that release, and not in the one before."""

from __future__ import annotations

import pytest

from gpuplan.sizing.physics.serving.pieces import pieces
from gpuplan.sizing.physics.serving.releases import asynchronous, scaled_within
from tests.support.sizing_cases import offer

NVIDIA, AMD = "nvidia", "amd"


@pytest.mark.parametrize(
    ("engine", "release", "gpu", "pieced"),
    [
        ("vllm", "0.7.3", "h100-sxm-80gb", False),
        ("vllm", "0.8.0", "h100-sxm-80gb", True),
        ("vllm", "0.10.2", "h100-sxm-80gb", True),
        ("vllm", "0.11.0", "h100-sxm-80gb", False),
        ("vllm", "0.9.1", "mi300x-192gb", False),
        ("sglang", "0.9.1", "h100-sxm-80gb", False),
        ("vllm", "nightly", "h100-sxm-80gb", False),
    ],
)
def test_steps_are_in_pieces_from_vllms_v1_engine_to_its_whole_graphs(
    engine: str, release: str, gpu: str, pieced: bool
) -> None:
    assert bool(pieces(engine, release, offer(gpu).gpu)) == pieced


@pytest.mark.parametrize(
    ("engine", "release", "stages", "works_ahead"),
    [
        ("vllm", "0.13.0", 1, False),
        ("vllm", "0.14.0", 1, True),
        ("vllm", "0.14.0", 2, False),
        ("vllm", "0.15.0", 2, True),
        ("vllm", "nightly", 1, False),
        ("another", "9.9.0", 1, False),
    ],
)
def test_the_host_works_ahead_from_the_release_that_does_by_default(
    engine: str, release: str, stages: int, works_ahead: bool
) -> None:
    assert asynchronous(engine, release, stages) == works_ahead


@pytest.mark.parametrize(
    ("engine", "release", "vendor", "within"),
    [
        ("vllm", "0.17.1", NVIDIA, False),
        ("vllm", "0.18.0", NVIDIA, True),
        ("vllm", "0.18.0", AMD, True),
        ("sglang", "0.5.9", AMD, False),
        ("sglang", "0.5.10", AMD, True),
        ("sglang", "0.5.10", NVIDIA, False),
        ("tensorrt-llm", "9.9.0", NVIDIA, False),
        ("another", "9.9.0", NVIDIA, False),
        ("vllm", "nightly", NVIDIA, False),
    ],
)
def test_other_kernels_scale_inputs_from_the_release_that_has_them(
    engine: str, release: str, vendor: str, within: bool
) -> None:
    assert scaled_within(engine, release, vendor) == within
