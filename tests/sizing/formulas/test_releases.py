"""What an engine does from one release on: in that release, and not in the one before."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from gpuplan.sizing.evidence.formula import constant
from gpuplan.sizing.physics.serving.pieces import pieces, whole_steps
from gpuplan.sizing.physics.serving.releases import asynchronous, scaled_within
from gpuplan.sizing.physics.serving.replica import Replica
from gpuplan.sizing.physics.serving.service import Declared, Division, Service
from tests.support.sizing_cases import CASES, replica, wanted

NVIDIA, AMD = "nvidia", "amd"


def asked(engine: str, release: str, gpu: str = "h100-sxm-80gb", **changes: Any) -> Service:
    """A service on one GPU, with another engine."""
    made = replica(wanted(CASES["chat 8B"]), gpu, 1).service
    return replace(made, engine=engine, release=release, **changes)


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
    made = Replica(asked(engine, release, gpu))
    steps = [made.modelled(sequences).get("beyond_whole", 0.0) for sequences in (1.0, 64.0)]
    assert steps == [float(pieced)] * 2


# By what a server takes at once: the largest step that is one graph, of vllm/config/vllm.py.
WHOLE = [(1, 1), (2, 2), (3, 2), (7, 4), (12, 8), (16, 16), (100, 96), (258, 256), (271, 256)]


@pytest.mark.parametrize(("told", "whole"), [*WHOLE, (272, 272), (600, 512)])
def test_a_step_of_more_than_the_largest_whole_graph_is_in_pieces(told: int, whole: int) -> None:
    made = Replica(asked("vllm", "0.27.1", max_num_seqs=float(told)))
    beyond = [made.modelled(float(n)).get("beyond_whole", 0.0) for n in (whole, whole + 1)]
    assert beyond == [0.0, float(told != whole)]
    slow, fast = (made.modelled(float(n))["decode_seconds"] for n in (whole + 1, whole))
    assert slow >= fast


@pytest.mark.parametrize(
    ("engine", "release", "changes"),
    [("sglang", "0.5.16", {}), ("vllm", "0.27.1", {"division": Division(pipeline_stages=2)})],
)
def test_where_other_numbers_decide_none_is_reckoned(
    engine: str, release: str, changes: dict[str, Any]
) -> None:
    service = asked(engine, release, max_num_seqs=7.0, **changes)
    assert (pieces(service), whole_steps(service) is None) == ({}, True)


@pytest.mark.parametrize("tokens", [2, 3, 4, 5, 6])
def test_requests_that_draft_fill_a_graph_too(tokens: int) -> None:
    """Of the engine's sizes, each rounded up to whole requests (vllm/config/compilation.py,
    adjust_cudagraph_sizes_for_spec_decode), each that a service takes is one."""
    usual = [1, 2, 4, *range(8, 256, 8), *range(256, 513, 16)]
    captured = {-(-size // tokens) * tokens for size in usual}
    declared = Declared(draft_tokens=constant(tokens - 1, "1", "test"))
    made = Replica(asked("vllm", "0.27.1", declared=declared))
    taken = {made.needs(n / 2)["max_num_seqs"] for n in range(1, 2 * 512 // tokens - 80)}
    assert {most * tokens for most in taken if most * tokens <= 512} <= captured
    assert len(taken) > 5


@pytest.mark.parametrize(("release", "apart"), [("0.10.2", 1), ("0.11.0", 8), ("0.27.1", 16)])
def test_a_service_takes_as_many_as_its_largest_graph_holds(release: str, apart: int) -> None:
    made = Replica(asked("vllm", release))
    for running in (1.0, 2.5, 17.0, 260.0):
        needs = made.needs(running)
        most, least = needs["max_num_seqs"], math.ceil(running + 2.326 * running**0.5)
        assert max(2, least) <= most < max(2, least) + apart
        if apart > 1:
            assert pieces(asked("vllm", release, max_num_seqs=most)) == {}
    assert made.needs(260.0)["max_num_seqs"] == {1: 298, 8: 304, 16: 304}[apart]


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
