"""Whose kernels and exchanges are taken for a GPU, and what becomes of them on another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.catalog.model import Achieved, Gpu, StandIn
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.hardware.efficiency import collective, kernel, peak, unsupported
from gpuplan.sizing.hardware.measured import NotMeasured
from gpuplan.sizing.hardware.reached import achieved, reached
from tests.support.sizing_cases import offer

H100 = offer("h100-sxm-80gb").gpu
A10 = offer("a10").gpu  # Ampere without NVLink: the kernels of A100, the exchanges of L40S
L40S = offer("l40s").gpu
RATES = {2: 280.3e9, 4: 348e9, 8: 477.5e9}  # of vLLM's all-reduce on H100, bytes a second


def rate(gpu: Gpu, gpus: int) -> float:
    return collective("all_reduce", gpu, "vllm", gpus)["rate"].value


def test_an_exchange_is_that_of_the_nearest_number_of_gpus() -> None:
    assert {n: rate(H100, n) for n in RATES} == RATES
    assert [rate(H100, n) for n in (1, 3, 6, 7, 16)] == [RATES[n] for n in (2, 2, 4, 8, 8)]
    measured = collective("all_reduce", H100, "vllm", 8)
    assert measured["launch"].value == 4.552e-06
    assert measured["small"].value == 5623000
    assert "all-reduce over 8 h100-sxm-80gb" in measured["rate"].source
    assert "median residual 4%" in measured["rate"].source
    assert collective("all_reduce", H100, "unheard-of", 8) == measured


@pytest.mark.parametrize("part", [0.5, 1.0, 2.0])
def test_a_stand_ins_rate_is_scaled_by_a_slower_link_only(part: float) -> None:
    link = replace(A10.pcie_bytes_per_s, value=part * L40S.link_bytes_per_s.value)
    other = replace(A10, pcie_bytes_per_s=link)
    assert rate(other, 2) == pytest.approx(min(1.0, part) * rate(L40S, 2))
    # Its own rates are as they were measured.
    slow = replace(H100, nvlink_bytes_per_s=replace(H100.link_bytes_per_s, value=1e9))
    assert rate(slow, 8) == RATES[8]


def test_kernels_are_the_engines_own_where_they_were_measured() -> None:
    source = kernel("matmul", H100, "vllm", "fp8")["read"].source
    assert "matmul fp8 on h100-sxm-80gb" in source
    assert "on a100-sxm-80gb" in kernel("matmul", A10, "vllm", "bf16")["read"].source
    assert {n: q.unit for n, q in kernel("experts", H100, "vllm", "bf16").items()} == {
        "launch": "s",
        "read": "1",
        "small": "B",
        "compute": "1",
        "norm": "1",
        "spread": "1",
        "tile": "1",
    }
    unknown = replace(H100, identifier="other", measured_as=(), collectives_as=None, kernels_as=())
    with pytest.raises(NotMeasured):
        kernel("matmul", unknown, "vllm", "bf16")
    with pytest.raises(NotMeasured):
        collective("all_reduce", unknown, "vllm", 2)


def test_weights_alone_in_fewer_bits_are_computed_in_bf16() -> None:
    bf16, fp8 = 989e12, 1978e12
    peaks = {"bf16": bf16, "fp16": bf16, "int4": bf16, "mxfp4": bf16, "fp8": fp8, "int8": fp8}
    for precision, value in peaks.items():
        fact = peak(H100, precision)
        assert fact is not None
        assert fact.value == value
    assert peak(H100, "nvfp4") is None
    b200 = offer("b200-sxm-180gb").gpu
    assert peak(b200, "mxfp4") == b200.peak_fp8
    assert peak(b200, "nvfp4") == b200.peak_fp4


@pytest.mark.parametrize(
    ("precision", "least"),
    [("fp16", 7.0), ("int8", 7.5), ("int4", 7.5), ("bf16", 8.0), ("mxfp4", 8.0), ("fp8", 8.9)],
)
def test_a_precision_needs_a_generation(precision: str, least: float) -> None:
    assert unsupported(replace(H100, compute_capability=str(least)), precision) == ()
    (short,) = unsupported(replace(H100, compute_capability=f"{least - 0.1:.1f}"), precision)
    assert short.resource == f"compute capability for {precision}"
    assert (short.requested, short.capacity) == (least, pytest.approx(least - 0.1))


def test_a_precision_needs_a_peak_that_is_known() -> None:
    capable = replace(H100, compute_capability="10.0")
    (short,) = unsupported(capable, "nvfp4")
    assert (short.resource, short.lack) == ("nvfp4 peak", "unknown")
    assert (short.requested, short.used, short.capacity) == (1.0, 0.0, 0.0)
    (old,) = unsupported(H100, "nvfp4")
    assert (old.requested, old.capacity) == (10.0, 9.0)
    # What another vendor calls its generations says nothing: its record names what has kernels.
    cdna3 = replace(H100, vendor="amd", architecture="cdna3", compute_capability=None)
    assert unsupported(cdna3, "fp8") == ()
    (absent,) = unsupported(replace(cdna3, architecture="cdna2", peak_fp8=None), "fp8")
    assert (absent.resource, absent.lack) == ("fp8 kernels for AMD's cdna2", "absent")


def test_what_a_gpu_reaches_of_its_peak_scales_what_its_kernels_reach() -> None:
    own = Achieved(most_flop_per_s=60.0, peak_flop_per_s=100.0, source="own")
    base = StandIn(
        identifier="base",
        reason="",
        of=("kernels",),
        architecture="hopper",
        link_bytes_per_s=1.0,
        achieved_bf16=Achieved(most_flop_per_s=40.0, peak_flop_per_s=80.0, source="its"),
    )
    bare = replace(base, identifier="bare", achieved_bf16=None)
    part = Quantity(0.5, "1", "measured")
    gpu = replace(H100, achieved_bf16=own, measured_as=(bare, base))
    scaled = reached(part, gpu, "base")
    assert scaled.value == pytest.approx(0.5 * 0.6 / 0.5)
    assert "x 1.20 for " in scaled.source
    assert reached(Quantity(0.9, "1", "measured"), gpu, "base").value == 1.0
    assert reached(part, gpu, gpu.identifier) == part
    # One of which nothing was measured is as the next.
    assert achieved(replace(gpu, achieved_bf16=None)) == base.achieved_bf16
    assert achieved(gpu, "bare") == base.achieved_bf16
    assert reached(part, replace(gpu, achieved_bf16=None), "base") == part
    assert reached(part, replace(gpu, measured_as=()), "base") == part
