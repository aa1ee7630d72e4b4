"""What part of its GPU's rates and memory a partition has (NVIDIA MIG user guide, vGPU guide)."""

from __future__ import annotations

import pytest

from gpuplan.sizing.hardware.devices import Device, partitions, whole
from gpuplan.units import GB
from tests.support.sizing_cases import CHAT_8B, NOTEBOOKS, site, sized

A100 = "a100-sxm-80gb"
SMALL = CHAT_8B.replace("meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-0.6B")


def parts(gpu: str, target: str = "kubernetes") -> dict[str, Device]:
    where = site(gpu, target=target)
    return {str(part.partition): part for part in partitions(where.gpus[0], where)}


def shares(part: Device) -> tuple[float, float]:
    return part.compute_share.value, part.bandwidth_share.value


@pytest.mark.parametrize(
    ("gpu", "of"),
    [
        (A100, {"1g.10gb": (1, 1), "1g.20gb": (1, 2), "2g.20gb": (2, 2), "3g.40gb": (3, 4)}),
        ("h200-sxm-141gb", {"1g.18gb": (1, 1), "1g.35gb": (1, 2), "3g.71gb": (3, 4)}),
    ],
)
def test_an_instance_has_its_seventh_of_compute_and_eighth_of_memory(
    gpu: str, of: dict[str, tuple[int, int]]
) -> None:
    found = parts(gpu)
    sizes = [(part.memory_bytes.value, shares(part)) for part in found.values()]
    assert sizes == sorted(sizes)
    for name, (compute, memory) in of.items():
        assert shares(found[name]) == pytest.approx((compute / 7, memory / 8)), name


def test_of_a_gpu_of_four_slices_each_is_a_fourth_of_both() -> None:
    found = parts("rtx-pro-6000-server")
    assert {name: shares(part) for name, part in found.items()} == {
        "1g.24gb": (0.25, 0.25),
        "2g.48gb": (0.5, 0.5),
    }


def test_a_guest_has_an_equal_share_of_turns_and_that_of_its_instance() -> None:
    turns, both = parts("l40s", "libvirt"), parts(A100, "libvirt")
    for found in (turns, both):
        for name, part in found.items():
            if name.count("-") == 1:
                assert shares(part) == pytest.approx((1 / part.per_gpu,) * 2), name
    assert turns["L40S-16C"].per_gpu == 3
    assert turns["L40S-16C"].memory_bytes.value == pytest.approx(16 * GB, rel=0.01)
    assert shares(both["A100DX-1-20C"]) == pytest.approx((1 / 7, 1 / 4))
    assert shares(both["A100DX-3-40C"]) == pytest.approx((3 / 7, 1 / 2))
    assert shares(both["A100DX-40C"]) == (0.5, 0.5)


def test_a_whole_gpu_has_all_of_it() -> None:
    (one,) = site(A100).gpus
    assert shares(whole(one)) == (1, 1)


@pytest.mark.parametrize("gpu", [A100, "h200-sxm-141gb"])
def test_a_service_on_a_part_reads_at_its_share_of_the_bandwidth(gpu: str) -> None:
    answer = sized(SMALL + "    tenancy: {isolation: shared}\n", site(gpu))
    entries = {e.quantity.removeprefix("work."): e for e in answer.evidence}
    of = {each.name: each.value for each in entries["bandwidth"].inputs}
    (chosen,) = (p for n, p in parts(gpu).items() if n == answer.workload.partition)
    assert of["bandwidth_share"] == chosen.bandwidth_share.value
    assert entries["bandwidth"].value == of["gpu_bandwidth"] * chosen.bandwidth_share.value


def test_users_get_the_smallest_part_that_holds_what_they_ask() -> None:
    wanted = NOTEBOOKS + "    tenancy: {isolation: shared}\n"
    for memory, part in (("9 GiB", "1g.10gb"), ("15 GiB", "1g.20gb"), ("30 GiB", "3g.40gb")):
        answer = sized(wanted.replace("9 GiB", memory), site(A100))
        assert answer.workload.partition == part
