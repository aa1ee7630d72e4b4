"""GPUs as measurements write them."""

from __future__ import annotations

import pytest

from gpuplan.accuracy.points.devices import Devices, find_devices
from gpuplan.catalog.load import load_catalog
from gpuplan.sizing.hardware.efficiency import kernel, measured_on, unmeasured


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("H100-SXM-80GB", "h100-sxm-80gb"),
        ("H100-SXM-80GB?", "h100-sxm-80gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm-80gb"),
        ("H100 SXM5", "h100-sxm-80gb"),
        ("NVIDIA H100 NVL", "h100-nvl-94gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm-80gb"),
        ("NVIDIA H200", "h200-sxm-141gb"),
        ("B300-SXM-270GB", "b300-sxm-288gb"),
        ("B200-SXM-192GB", "b200-sxm-180gb"),
        ("NVIDIA GB200 NVL72", "gb200-186gb"),
        ("NVIDIA GH200 480GB", "gh200-96gb"),
        ("GH200-144GB", "gh200-144gb"),
        ("RTX-4090-24GB", "rtx-4090-24gb"),
        ("NVIDIA GeForce RTX 3090", "rtx-3090-24gb"),
        ("RTX3090Ti", "rtx-3090-ti-24gb"),
        ("RTX-PRO-6000-96GB", "rtx-pro-6000-server"),
        ("RTX-PRO-6000-MaxQ-96GB", "rtx-pro-6000-max-q"),
        ("RTX PRO 6000 Blackwell Max-Q Workstation Edition", "rtx-pro-6000-max-q"),
        ("RTX6000 Ada", "rtx-6000-ada"),
        ("A6000", "rtx-a6000"),
        ("Tesla V100-SXM2-32GB", "v100-sxm-32gb"),
        ("Tesla T4", "t4"),
        ("AMD Instinct MI300X-NPS1-SPX-192GB-750W", "mi300x-192gb"),
    ],
)
def test_a_name_finds_its_gpu(name: str, identifier: str) -> None:
    found = find_devices(name)
    assert not isinstance(found, str), found
    assert found.gpu.identifier == identifier


@pytest.mark.parametrize(
    ("name", "identifier", "count"),
    [
        ("MI250-128GB", "mi250-64gb", 2),
        ("MI250-64GB", "mi250-64gb", 1),
        ("Intel(R) Arc Pro(R) B60", "arc-pro-b60-24gb", 1),
        ("Intel(R) Arc(TM) Pro B60 Graphics", "arc-pro-b60-24gb", 1),
        ("[MAXSUN] MS-Intel Arc Pro B60 Dual 48G Turbo", "arc-pro-b60-24gb", 2),
        ("H100-SXM-80GB", "h100-sxm-80gb", 1),
    ],
)
def test_what_is_sold_as_one_may_be_several(name: str, identifier: str, count: int) -> None:
    found = find_devices(name)
    assert not isinstance(found, str), found
    assert (found.gpu.identifier, found.count) == (identifier, count)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("MI250", "may be any of mi250-64gb, 2 x mi250-64gb"),
        ("A100", "may be any of a100-pcie-40gb"),
        ("V100-32GB", "may be any of v100-pcie-32gb, v100-sxm-32gb"),
        ("H100-SXM-94GB", "is not in the catalogue"),
        ("GeForce RTX 4090 Laptop GPU", "is not in the catalogue"),
        ("TPU v5e", "is not in the catalogue"),
        ("", "is not in the catalogue"),
    ],
)
def test_a_name_that_tells_too_little_or_too_much_gives_a_reason(name: str, words: str) -> None:
    found = find_devices(name)
    assert isinstance(found, str)
    assert words in found


# Nothing that was measured is near enough: see the notes of their files.
ALONE = {"arc-pro-b50-16gb", "arc-pro-b60-24gb", "arc-pro-b70-32gb", "mi250-64gb"}


def test_every_gpu_has_efficiencies_and_is_found_by_its_identifier() -> None:
    catalog = load_catalog()
    for identifier in catalog.gpu_ids:
        gpu = catalog.gpu(identifier)
        assert gpu is not None
        assert find_devices(identifier) == Devices(gpu=gpu, count=1)
        if identifier in ALONE:
            assert unmeasured(gpu)
            continue
        found = kernel("matmul", gpu, "vllm", "bf16")
        assert 0 < found["compute"].value <= 1
        assert 0 < found["read"].value <= 1


@pytest.mark.parametrize(
    ("slower", "faster"),
    # A card that is held back by power reaches less of its peak than its relative.
    [("h100-pcie-80gb", "h100-sxm-80gb"), ("mi300x-192gb", "h200-sxm-141gb")],
)
def test_what_a_gpu_reaches_of_its_peak_is_its_own(slower: str, faster: str) -> None:
    catalog = load_catalog()
    one, other = catalog.gpu(slower), catalog.gpu(faster)
    assert one is not None
    assert other is not None
    assert measured_on(one) == measured_on(other)
    less = kernel("matmul", one, "", "bf16")["compute"]
    assert less.value < kernel("matmul", other, "", "bf16")["compute"].value
    assert "gpu_benchmark" in less.source
